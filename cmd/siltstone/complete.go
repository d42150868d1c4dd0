package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// completeTimeout bounds how long a shell waits for names.
const completeTimeout = time.Second

// completeTopics offers the cluster's topics, for as many arguments; 0: for any number.
func (c *client) completeTopics(arguments int) cobra.CompletionFunc {
	return c.completeNames(arguments, func(ctx context.Context, adm *kadm.Client) ([]string, error) {
		details, err := adm.ListTopics(ctx)
		return details.Names(), err
	})
}

// completeGroups offers the cluster's groups.
func (c *client) completeGroups(arguments int) cobra.CompletionFunc {
	return c.completeNames(arguments, func(ctx context.Context, adm *kadm.Client) ([]string, error) {
		groups, err := adm.ListGroups(ctx)
		return groups.Groups(), err
	})
}

func (c *client) completeNames(arguments int, list func(context.Context, *kadm.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if arguments > 0 && len(args) >= arguments {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		adm, done, err := c.admin(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // a shell shows no errors
		}
		defer done()
		names, err := list(ctx, adm)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeConfigs offers names of configs, with what they mean, where the shell
// shows that.
func completeConfigs(known []topic.ConfigEntry, ending string) cobra.CompletionFunc {
	var names []cobra.Completion
	for _, c := range known {
		first, _, _ := strings.Cut(c.Doc, ". ")
		names = append(names, cobra.CompletionWithDesc(c.Name+ending, first))
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	if ending != "" {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return cobra.FixedCompletions(names, directive)
}

func completeValues(cmd *cobra.Command, flag string, values []string) {
	completeFlag(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // there is no such flag: every command is made by every test
	}
}
