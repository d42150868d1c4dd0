package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/siltstone-io/siltstone"
)

func newTopicCreate(c *client) *cobra.Command {
	var partitions int32
	var replication int16
	var settings configFlags
	var json bool
	cmd := &cobra.Command{
		Use:   "create TOPIC...",
		Short: "Create topics",
		Long: `Create topics. How many partitions they have, where --partitions does not say it,
is the cluster's num.partitions.

Every config of Kafka is taken, or refused with a reason. Those of retention and
compaction (cleanup.policy, retention.*, ...) are checked, stored and described
already, and in force once the jobs run that carry them out.`,
		Example: "  siltstone topic create orders\n" +
			"  siltstone topic create orders --partitions 12 --config compression.type=zstd",
		Args: takes("TOPIC", true),
		RunE: func(cmd *cobra.Command, names []string) error {
			configs, err := settings.values()
			switch {
			case err != nil:
				return err
			case partitions == 0 || partitions < -1:
				return usagef("--partitions is 1 or above, or -1, not %d", partitions)
			case replication == 0 || replication < -1:
				return usagef("--replication-factor is 1 or above, or -1, not %d", replication)
			}
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			var created []listedTopic
			for _, name := range names {
				made, err := adm.CreateTopic(cmd.Context(), partitions, replication, configs, name)
				if err != nil {
					return explain(name, err, made.ErrMessage)
				}
				t := listedTopic{name, siltstone.TopicID(made.ID).String(), int(made.NumPartitions)}
				created = append(created, t)
				if !json {
					fmt.Fprintf(cmd.OutOrStdout(), "created %s (id %s, %s)\n", t.Name, t.ID, plural(t.Partitions, "partition"))
				}
			}
			if json {
				return printJSON(cmd.OutOrStdout(), created)
			}
			printWaiting(cmd.OutOrStdout(), configs)
			return nil
		},
	}
	cmd.Flags().Int32VarP(&partitions, "partitions", "p", -1, "`number` of partitions; -1 is the cluster's num.partitions")
	cmd.Flags().Int16Var(&replication, "replication-factor", -1, "`number` of copies; -1 is the cluster's own, and 1 to 3 are taken for it by Siltstone")
	settings.register(cmd, topicConfigs())
	asJSON(cmd, &json)
	return cmd
}
