// Command siltstone is the one binary: an agent with its stores (dev), a small
// client (topic, produce, consume) and tools for what is stored (segment,
// check). A file per subcommand; here is wiring, and what people read.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
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
		Version:       versionLine(),
		RunE:          helpOrUnknown,
		Args:          cobra.ArbitraryArgs,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddCommand(
		newDev(),
		newTopic(),
		newGroup(),
		newProduce(),
		newConsume(),
		newSegment(),
		newCheck(),
		newVersion(),
	)
	return root
}

// newHelp is cobra's help command, but that it refuses what is no command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			found.InitDefaultHelpFlag()
			return helpOrUnknown(found, rest)
		},
	}
}

// group makes a command that only holds others, and says so when it is given something else.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, RunE: helpOrUnknown}
	cmd.AddCommand(children...)
	return cmd
}

// helpOrUnknown is what a command does that only holds others.
func helpOrUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q: did you mean %s? (see %s --help)", args[0], strings.Join(near, " or "), cmd.CommandPath())
	}
	return fmt.Errorf("unknown command %q (see %s --help)", args[0], cmd.CommandPath())
}

// flagError says where flags are explained, and of a number that is none only
// what is wrong with it, not which function says so.
func flagError(cmd *cobra.Command, err error) error {
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		err = fmt.Errorf("%s%w", strings.TrimSuffix(err.Error(), number.Error()), number.Err)
	}
	return fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
}

// takes checks the number of arguments: one, or at least one when more is set.
func takes(what string, more bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && more:
			return fmt.Errorf("give at least one %s (see %s --help)", what, cmd.CommandPath())
		case len(args) == 0 || len(args) > 1 && !more:
			return fmt.Errorf("give one %s, not %s (see %s --help)", what, plural(len(args), "argument"), cmd.CommandPath())
		}
		return nil
	}
}

// takesNone refuses any argument.
func takesNone(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument such as %q (see %s --help)", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}
