package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/siltstone-io/siltstone/tiered/segment"
)

func newSegmentVerify() *cobra.Command {
	return &cobra.Command{
		Use:     "verify FILE...",
		Short:   "Check every CRC and every batch of segments",
		Example: "  siltstone segment verify siltstone-data/objects/*/*/*/*",
		Args:    takes("FILE", true),
		RunE: func(cmd *cobra.Command, files []string) error {
			bad := 0
			for _, file := range files {
				b, err := readObject(file)
				if err != nil {
					return err
				}
				if err := segment.Verify(b); err != nil {
					bad++
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %v\n", file, err)
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: ok\n", file)
			}
			if bad > 0 {
				return fmt.Errorf("%d of %s damaged", bad, plural(len(files), "segment"))
			}
			return nil
		},
	}
}
