// Command siltstone is the one binary: an agent (agent, or dev with stores of its own), a client
// (topic, produce, consume, group, cluster) and tools for what is stored
// (segment, check). A file per subcommand; here is what all have in common.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// A reader of the output that goes away (| head) is an error of the next
	// write, and no end in the middle of something.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(untilInterrupted(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// untilInterrupted ends with the first Ctrl-C or SIGTERM; the second ends the
// process, whatever it is about.
func untilInterrupted() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		again := <-signals
		fmt.Fprintf(os.Stderr, "siltstone: interrupted a second time: it ends at once, and leaves undone what it was about (%s)\n", again)
		os.Exit(exitInterrupted)
	}()
	return ctx
}

// errInterrupted is why a command fails that does not go on until it is interrupted.
var errInterrupted = errors.New("interrupted before it was done")

// run is main without the process: it returns the exit code, after an error
// that it prints as one line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	called, err := root.ExecuteContextC(ctx)
	if usage, ok := errors.AsType[*usageError](err); ok {
		see := usage.see
		if see == "" {
			see = called.CommandPath()
		}
		fmt.Fprintf(stderr, "siltstone: %v (see %s --help)\n", err, see)
		return exitUsage
	}
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE):
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err = errInterrupted
	}
	fmt.Fprintf(stderr, "siltstone: %v\n", err)
	return exitError
}

// helpColumns is how wide help may be.
const helpColumns = 96

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "siltstone",
		Short: "A log on object storage that speaks Kafka",
		Long: `A log on object storage that speaks Kafka.

Commands that talk to a cluster find it at --kafka, or else where
SILTSTONE_KAFKA says, or else at 127.0.0.1:9092.

Exit codes: 0; 1 after an error, which is one line on standard error that says
what to do, and where check or segment verify find damage; 2 where a command is
called in a wrong way, and has done nothing; 130 where a second Ctrl-C ends it.`,
		Example:       "  siltstone dev\n  siltstone topic create orders --partitions 3",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       thisVersion().String(),
		RunE:          helpOrUnknown,
		Args:          cobra.ArbitraryArgs,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprint(".FlagUsagesWrapped ", helpColumns)))
	root.CompletionOptions.DisableDefaultCmd = true // newCompletion is ours
	root.AddCommand(
		newDev(),
		newAgent(),
		newTopic(),
		newProduce(),
		newConsume(),
		newGroup(),
		newCluster(),
		newCost(),
		newSegment(),
		newCheck(),
		newCompletion(),
		newVersion(),
	)
	return root
}

// newHelp is cobra's help command, but that it refuses what is no command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Example: "  siltstone help topic create",
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

// parent makes a command that only holds others, and says so when it is given something else.
func parent(use, short, example string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, RunE: helpOrUnknown}
	cmd.AddCommand(children...)
	return cmd
}
