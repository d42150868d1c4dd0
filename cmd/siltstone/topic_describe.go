package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/siltstone-io/siltstone"
)

// durabilities say what each value of siltstone.durability costs and may lose.
var durabilities = map[string]string{
	"replicated": "acks=all waits for two zones, or for the bucket if that is first, as with one agent alone\n" +
		"  at risk: at most 10 s of records, if all in-sync agents die before the bucket has them\n" +
		"  price: $0.02 per GiB and copy between zones",
	"object": "acks=all waits for the bucket\n" +
		"  at risk: nothing\n" +
		"  price: no bytes between zones, about 250 ms until a record is acknowledged",
}

type describedTopic struct {
	Name       string               `json:"name"`
	ID         string               `json:"id"`
	Durability string               `json:"durability"`
	Partitions []describedPartition `json:"partitions"`
	Configs    []describedConfig    `json:"configs"`
}

type describedPartition struct {
	Partition   int32 `json:"partition"`
	Leader      int32 `json:"leader"`
	LeaderEpoch int32 `json:"leader_epoch"`
	Start       int64 `json:"start"`
	End         int64 `json:"end"`
}

func newTopicDescribe(c *client) *cobra.Command {
	var json, all bool
	cmd := &cobra.Command{
		Use:               "describe TOPIC...",
		Short:             "Show partitions, offsets, durability and configs of topics",
		Example:           "  siltstone topic describe orders\n  siltstone topic describe orders --all",
		Args:              takes("TOPIC", true),
		ValidArgsFunction: c.completeTopics(0),
		RunE: func(cmd *cobra.Command, names []string) error {
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			var topics []describedTopic
			for _, name := range names {
				t, err := describe(cmd.Context(), adm, name)
				if err != nil {
					return err
				}
				topics = append(topics, t)
			}
			if json {
				return printJSON(cmd.OutOrStdout(), topics)
			}
			for _, t := range topics {
				if err := printTopic(cmd.OutOrStdout(), t, all); err != nil {
					return err
				}
			}
			return nil
		},
	}
	asJSON(cmd, &json)
	cmd.Flags().BoolVar(&all, "all", false, "configs that are at their default, too")
	return cmd
}

func describe(ctx context.Context, adm *kadm.Client, name string) (describedTopic, error) {
	var none describedTopic
	details, err := adm.ListTopics(ctx, name)
	if err != nil {
		return none, err
	}
	d := details[name]
	if d.Err != nil {
		return none, explain(name, d.Err, "")
	}
	starts, err := onceLed(ctx, func() (kadm.ListedOffsets, error) { return adm.ListStartOffsets(ctx, name) })
	if err != nil {
		return none, err
	}
	ends, err := onceLed(ctx, func() (kadm.ListedOffsets, error) { return adm.ListEndOffsets(ctx, name) })
	if err != nil {
		return none, err
	}
	t := describedTopic{Name: name, ID: siltstone.TopicID(d.ID).String()}
	for _, p := range d.Partitions.Sorted() {
		start, _ := starts.Lookup(name, p.Partition)
		end, _ := ends.Lookup(name, p.Partition)
		for _, err := range []error{p.Err, start.Err, end.Err} {
			if err != nil {
				return none, fmt.Errorf("topic %q, partition %d: %w", name, p.Partition, err)
			}
		}
		t.Partitions = append(t.Partitions, describedPartition{p.Partition, p.Leader, p.LeaderEpoch, start.Offset, end.Offset})
	}
	t.Configs, err = describeTopicConfigs(ctx, adm, name)
	if err != nil {
		return none, err
	}
	for _, c := range t.Configs {
		if c.Name == "siltstone.durability" {
			t.Durability = c.Value
		}
	}
	return t, nil
}

func printTopic(w io.Writer, t describedTopic, all bool) error {
	fmt.Fprintf(w, "%s  id %s, %s\n", t.Name, t.ID, plural(len(t.Partitions), "partition"))
	if means, ok := durabilities[t.Durability]; ok {
		fmt.Fprintf(w, "durability %s: %s\n", t.Durability, means)
	}
	printConfigs(w, t.Configs, all)
	var rows [][]string
	for _, p := range t.Partitions {
		rows = append(rows, []string{
			strconv.Itoa(int(p.Partition)), strconv.Itoa(int(p.Leader)), strconv.Itoa(int(p.LeaderEpoch)),
			strconv.FormatInt(p.Start, 10), strconv.FormatInt(p.End, 10),
		})
	}
	return table(w, []string{"PARTITION", "LEADER", "EPOCH", "START", "END"}, rows)
}
