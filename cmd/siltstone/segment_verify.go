package main

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/siltstone-io/siltstone/tiered/segment"
)

// verifiedSegment is what --json prints.
type verifiedSegment struct {
	File  string `json:"file"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

func newSegmentVerify() *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:     "verify FILE...",
		Short:   "Check every CRC and every batch of segments",
		Example: "  siltstone segment verify siltstone-data/objects/*/*/*/*",
		Args:    takes("FILE", true),
		RunE: func(cmd *cobra.Command, files []string) error {
			var done atomic.Int64
			stop := showProgress(cmd.ErrOrStderr(), progressBytes, sizeOf(files), done.Load)
			defer func() { stop() }()
			var verified []verifiedSegment
			bad := 0
			for _, file := range files {
				b, err := readObject(file)
				if err != nil {
					return err
				}
				v := verifiedSegment{File: file, OK: true}
				if err := segment.Verify(b); err != nil {
					bad++
					v.OK, v.Error = false, err.Error()
				}
				done.Add(int64(len(b)))
				verified = append(verified, v)
			}
			stop()
			stop = func() {}
			if json {
				if err := printJSON(cmd.OutOrStdout(), verified); err != nil {
					return err
				}
			} else {
				for _, v := range verified {
					fmt.Fprintln(cmd.OutOrStdout(), v)
				}
			}
			if bad > 0 {
				return fmt.Errorf("%d of %s damaged", bad, plural(len(files), "segment"))
			}
			return nil
		},
	}
	asJSON(cmd, &json)
	return cmd
}

func (v verifiedSegment) String() string {
	if v.OK {
		return v.File + ": ok"
	}
	return v.File + ": " + v.Error
}

// sizeOf adds up files, as far as they can be seen.
func sizeOf(files []string) (bytes int64) {
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}
