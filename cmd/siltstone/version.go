package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release; a build from a checkout adds its commit.
const version = "0.1.0-dev"

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return nil
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("siltstone %s%s %s %s/%s", version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commit is what the Go command stamped into the binary, if it did.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return ""
}
