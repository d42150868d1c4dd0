package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

func newTopicCreate(c *client) *cobra.Command {
	var partitions int32
	var replication int16
	var settings []string
	cmd := &cobra.Command{
		Use:   "create TOPIC...",
		Short: "Create topics",
		Long: `Create topics.

Every config of Kafka is taken, or refused with a reason. Those of retention and
compaction (cleanup.policy, retention.*, ...) are checked, stored and described
already, and in force once the jobs run that carry them out.`,
		Example: "  siltstone topic create orders\n" +
			"  siltstone topic create orders --partitions 12 --config compression.type=zstd",
		Args: takes("TOPIC", true),
		RunE: func(cmd *cobra.Command, names []string) error {
			configs, err := parseConfigs(settings)
			if err != nil {
				return err
			}
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			for _, name := range names {
				made, err := adm.CreateTopic(cmd.Context(), partitions, replication, configs, name)
				if err != nil {
					return explain(name, err, made.ErrMessage)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "created %s (id %s, %s)\n", name, siltstone.TopicID(made.ID), plural(made.NumPartitions, "partition"))
			}
			if waiting := waitingConfigs(configs); len(waiting) > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: stored, and in force once the jobs for retention and compaction run\n", strings.Join(waiting, ", "))
			}
			return nil
		},
	}
	cmd.Flags().Int32VarP(&partitions, "partitions", "p", 1, "number of partitions")
	cmd.Flags().Int16Var(&replication, "replication-factor", -1, "1 to 3 are taken for the cluster's own, -1")
	cmd.Flags().StringArrayVarP(&settings, "config", "c", nil, "a topic config as `name=value`; may be repeated")
	return cmd
}

func parseConfigs(settings []string) (map[string]*string, error) {
	configs := map[string]*string{}
	for _, s := range settings {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--config %s is not name=value", s)
		}
		configs[name] = kadm.StringPtr(value)
	}
	return configs, nil
}

// waitingConfigs are those that nothing carries out yet.
func waitingConfigs(configs map[string]*string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(configs)), func(name string) bool {
		return !topic.WaitsForJobs(name)
	})
}
