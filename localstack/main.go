// Command localstack runs the stores of a cluster on this machine, without
// Docker: MinIO, and an emulator of AWS for DynamoDB and the rest. `make up` and
// `make down` call it; docs/local.md says more. Nobody imports it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: go run ./localstack COMMAND [flags]

  up     start MinIO and the emulator of AWS, and return when both answer
  down   end what up started
  env    print what up leaves in localstack/run/env
  proxy  run a fault proxy before a store

Each command says its flags with -help.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second Ctrl-C ends it at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "localstack:", err)
		os.Exit(1)
	}
}

// errUsage has been said.
var errUsage = errors.New("called in a wrong way")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("localstack "+command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	var (
		s  stack
		p  proxy
		do func() error
	)
	switch command {
	case "up":
		s.register(flags)
		do = func() error { return s.up(ctx, stdout) }
	case "down":
		s.register(flags)
		do = func() error { return s.down(stdout) }
	case "env":
		s.register(flags)
		do = func() error { _, err := io.WriteString(stdout, s.env()); return err }
	case "proxy":
		p.register(flags)
		do = func() error { return p.run(ctx, stdout) }
	default:
		fmt.Fprint(stderr, usage)
		return errUsage
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return errUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "localstack %s takes no %q\n", command, flags.Arg(0))
		return errUsage
	}
	return do()
}
