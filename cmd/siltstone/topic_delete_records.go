package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// trimmedPartition is a partition whose oldest records are deleted, as --json
// prints it.
type trimmedPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Start     int64  `json:"start"` // where its log starts now
}

func newTopicDeleteRecords(c *client) *cobra.Command {
	var json bool
	var before, partitions string
	cmd := &cobra.Command{
		Use:   "delete-records TOPIC",
		Short: "Delete the oldest records of a topic",
		Long: `Delete the oldest records of a topic: those before an offset, or before the
first record of a time or later, or all that there are ("end"). Logs then start
there, at once and for good.

--before is end, an offset, or a time: 2026-01-31T08:00:00Z, 2026-01-31T08:00 or
2026-01-31 (as clocks are here), 90m or 7d ago, or @ and milliseconds since 1970.`,
		Example: "  siltstone topic delete-records orders --before 7d\n" +
			"  siltstone topic delete-records orders --before 1200 --partition 0\n" +
			"  siltstone topic delete-records orders --before end",
		Args:              takes("TOPIC", false),
		ValidArgsFunction: c.completeTopics(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if before == "" {
				return usagef("give --before: what is older is deleted")
			}
			if err := notEmpty(cmd, "partition"); err != nil {
				return err
			}
			to := consumer{topic: args[0], from: position{at: atBeginning}}
			var err error
			if to.until, err = parsePosition("before", before, time.Now()); err != nil {
				return err
			}
			if partitions != "" {
				if to.partitions, err = parsePartitions(partitions); err != nil {
					return usagef("--partition is like 3 or 0,4-7, not %q", partitions)
				}
			}
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			trimmed, err := deleteRecords(cmd.Context(), adm, &to)
			if err != nil {
				return err
			}
			if json {
				return printJSON(cmd.OutOrStdout(), trimmed)
			}
			var rows [][]string
			for _, t := range trimmed {
				rows = append(rows, []string{t.Topic, strconv.Itoa(int(t.Partition)), strconv.FormatInt(t.Start, 10)})
			}
			return table(cmd.OutOrStdout(), []string{"TOPIC", "PARTITION", "START"}, rows)
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "delete what is before this `position`, see above")
	cmd.Flags().StringVarP(&partitions, "partition", "p", "", "only of these `partitions`, like 3 or 0,4-7")
	asJSON(cmd, &json)
	return cmd
}

// deleteRecords deletes what a consumer would read until its end.
func deleteRecords(ctx context.Context, adm *kadm.Client, read *consumer) ([]trimmedPartition, error) {
	spans, err := read.plan(ctx, adm)
	if err != nil {
		return nil, err
	}
	var offsets kadm.Offsets
	for p, s := range spans {
		offsets.AddOffset(read.topic, p, s.end, -1)
	}
	deleted, err := adm.DeleteRecords(ctx, offsets)
	if err != nil {
		return nil, err
	}
	trimmed := []trimmedPartition{}
	for _, d := range deleted.Sorted() {
		if d.Err != nil {
			return nil, explain(read.topic, fmt.Errorf("partition %d: %w", d.Partition, d.Err), "")
		}
		trimmed = append(trimmed, trimmedPartition{d.Topic, d.Partition, d.LowWatermark})
	}
	return trimmed, nil
}
