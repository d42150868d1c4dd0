package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release; a build from a checkout adds its commit.
const version = "0.1.0-dev"

// buildVersion is what this binary was built from, as --json prints it.
type buildVersion struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // empty: not known
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func newVersion() *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  siltstone version",
		Args:    takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if json {
				return printJSON(cmd.OutOrStdout(), thisVersion())
			}
			fmt.Fprintln(cmd.OutOrStdout(), thisVersion())
			return nil
		},
	}
	asJSON(cmd, &json)
	return cmd
}

func thisVersion() buildVersion {
	return buildVersion{version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
}

func (v buildVersion) String() string {
	at := ""
	if v.Commit != "" {
		at = " " + v.Commit[:min(12, len(v.Commit))]
	}
	return fmt.Sprintf("siltstone %s%s %s %s/%s", v.Version, at, v.Go, v.OS, v.Arch)
}

// commit is what the Go command stamped into the binary, if it did.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
