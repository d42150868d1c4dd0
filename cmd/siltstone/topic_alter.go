package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

func newTopicAlter(c *client) *cobra.Command {
	var partitions int
	var settings configFlags
	cmd := &cobra.Command{
		Use:   "alter TOPIC...",
		Short: "Change configs of topics, and add partitions",
		Long: `Change configs of topics, and add partitions.

--partitions is how many there are to be; there can only be more. Records with a
key that had one partition may then go to another. All is checked first, of all
topics, so that what is refused changes nothing.`,
		Example: "  siltstone topic alter orders --config retention.ms=86400000 --delete-config compression.type\n" +
			"  siltstone topic alter orders --partitions 12",
		Args:              takes("TOPIC", true),
		ValidArgsFunction: c.completeTopics(0),
		RunE: func(cmd *cobra.Command, names []string) error {
			changes, err := settings.changes()
			switch {
			case err != nil:
				return err
			case cmd.Flags().Changed("partitions") && partitions < 1:
				return usagef("--partitions is 1 or above, not %d", partitions)
			case len(changes) == 0 && partitions == 0:
				return usagef("give what to change: --partitions, --config or --delete-config")
			}
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			for _, really := range []bool{false, true} {
				if err := alterTopics(cmd.Context(), adm, names, topicChange{changes, partitions, really}); err != nil {
					return err
				}
			}
			said := describeChanges(changes)
			if partitions > 0 {
				said = append(said, plural(partitions, "partition"))
			}
			for _, name := range names {
				fmt.Fprintf(cmd.OutOrStdout(), "altered %s (%s)\n", name, strings.Join(said, ", "))
			}
			values, err := settings.values()
			printWaiting(cmd.OutOrStdout(), values)
			return err
		},
	}
	settings.register(cmd, topicConfigs())
	settings.registerDelete(cmd, topicConfigs())
	cmd.Flags().IntVarP(&partitions, "partitions", "p", 0, "`number` of partitions that there are to be")
	return cmd
}

// topicChange is a change of topics.
type topicChange struct {
	configs    []kadm.AlterConfig
	partitions int  // 0: as many as there are
	really     bool // else the server only says whether it would
}

func alterTopics(ctx context.Context, adm *kadm.Client, names []string, to topicChange) error {
	alter, grow := adm.ValidateAlterTopicConfigs, adm.ValidateUpdatePartitions
	if to.really {
		alter, grow = adm.AlterTopicConfigs, adm.UpdatePartitions
	}
	if len(to.configs) > 0 {
		altered, err := alter(ctx, to.configs, names...)
		if err != nil {
			return err
		}
		for _, a := range altered {
			if a.Err != nil {
				return explain(a.Name, a.Err, a.ErrMessage)
			}
		}
	}
	if to.partitions > 0 {
		grown, err := grow(ctx, to.partitions, names...)
		if err != nil {
			return err
		}
		for _, g := range grown.Sorted() {
			if g.Err != nil {
				return explain(g.Topic, g.Err, g.ErrMessage)
			}
		}
	}
	return nil
}
