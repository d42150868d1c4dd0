package main

import (
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

func newCompletion() *cobra.Command {
	shells := map[string]func(root *cobra.Command, w io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	}
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print what a shell needs to complete commands, flags, topics and groups",
		Long: `Print what a shell needs to complete commands, flags and their values: bash,
fish, powershell or zsh. Names of topics and groups come from the cluster that
--kafka names, or SILTSTONE_KAFKA, if it answers within a second.`,
		Example: "  source <(siltstone completion bash)       # in ~/.bashrc, for good\n" +
			"  source <(siltstone completion zsh)        # in ~/.zshrc, after compinit\n" +
			"  siltstone completion fish | source        # in ~/.config/fish/config.fish",
		Args:      takes("SHELL", false),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			script, ok := shells[args[0]]
			if !ok {
				return usagef("SHELL is bash, fish, powershell or zsh, not %q", args[0])
			}
			return script(cmd.Root(), cmd.OutOrStdout())
		},
	}
}
