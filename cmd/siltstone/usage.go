package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitError = 1 // something failed, or something was found that is not as it must be
	exitUsage = 2 // the command is called in a wrong way, and has done nothing

	exitInterrupted = 130 // a second signal ends it; as shells number SIGINT
)

// usageError is about how a command is called.
type usageError struct {
	err error
	see string // the path of the command that explains it; empty: the one that was called
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

// helpOrUnknown is what a command does that only holds others.
func helpOrUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	err := fmt.Errorf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w: did you mean %s?", err, strings.Join(near, " or "))
	}
	return &usageError{err, cmd.CommandPath()}
}

// flagError says of a number that is none only what is wrong with it, not
// which function says so.
func flagError(_ *cobra.Command, err error) error {
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		err = fmt.Errorf("%s%w", strings.TrimSuffix(err.Error(), number.Error()), number.Err)
	}
	return usagef("%w", err)
}

// takes checks the number of arguments: one, or at least one when more is set.
func takes(what string, more bool) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && more:
			return usagef("give at least one %s", what)
		case len(args) == 0 || len(args) > 1 && !more:
			return usagef("give one %s, not %s", what, plural(len(args), "argument"))
		case slices.Contains(args, ""):
			return usagef("%s is empty", what)
		}
		return nil
	}
}

// notEmpty refuses flags that are given as nothing, as by a shell's variable
// that is not set: without them a command does more.
func notEmpty(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return usagef("--%s is empty", name)
		}
	}
	return nil
}

// takesNone refuses any argument.
func takesNone(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument such as %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneOf refuses what is not among the values of a flag.
func oneOf(flag, value string, among []string) error {
	for _, known := range among {
		if value == known {
			return nil
		}
	}
	return usagef("--%s is %s or %s, not %q", flag, strings.Join(among[:len(among)-1], ", "), among[len(among)-1], value)
}
