// Command siltstone is the one binary: an agent with its stores (dev), a small
// client (topic, produce, consume) and tools for what is stored (segment,
// check). A file per subcommand; here is wiring, and what people read.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second Ctrl-C ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit code, 1 after any error,
// which it prints as one line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(stderr, "siltstone: %v\n", err)
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "siltstone",
		Short:         "A log on object storage that speaks Kafka",
		Example:       "  siltstone dev\n  siltstone topic create orders --partitions 3",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args:          cobra.NoArgs,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.AddCommand(
		newDev(),
		newTopic(),
		newProduce(),
		newConsume(),
		newSegment(),
		newCheck(),
		newVersion(),
	)
	return root
}

// group makes a command that only holds others, and says so when it is given something else.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q (see %s --help)", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(children...)
	return cmd
}

// takes checks the number of arguments: one, or at least one when more is set.
func takes(what string, more bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || len(args) > 1 && !more {
			return fmt.Errorf("give one %s, not %d arguments (see %s --help)", what, len(args), cmd.CommandPath())
		}
		return nil
	}
}
