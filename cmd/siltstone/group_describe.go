package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

type describedGroup struct {
	Group       string            `json:"group"`
	State       string            `json:"state"`
	Protocol    string            `json:"protocol"` // consumer
	Assignor    string            `json:"assignor"` // that all members have, such as range
	Coordinator int32             `json:"coordinator"`
	Members     []describedMember `json:"members"`
	Partitions  []partitionLag    `json:"partitions"`
	Topics      []topicLag        `json:"topics"`
	Total       topicLag          `json:"total"`
	// SampleSeconds lie between the samples of what is written and read; 0: there were none.
	SampleSeconds float64 `json:"sample_seconds"`
}

func newGroupDescribe(c *client) *cobra.Command {
	var json bool
	var sample time.Duration
	cmd := &cobra.Command{
		Use:   "describe GROUP...",
		Short: "Show members, committed offsets, lag, and when the lag drains",
		Long: `Show members, committed offsets, lag, and when the lag drains.

The lag of a partition is its log end minus the committed offset, or minus the
log start, where that is later or nothing is committed: the records that are
still to be read. Two samples are taken, --sample apart, and

  written/s = how far log ends moved, per second
  read/s    = how far committed offsets moved, per second

If read/s is above written/s, the lag drains in lag / (read/s - written/s). If
it is below, the lag grows by written/s - read/s. If both are the same, it stays.
Most clients commit every 5 seconds only, so a longer sample is more exact.`,
		Example: "  siltstone group describe billing\n" +
			"  siltstone group describe billing --sample 30s\n" +
			"  siltstone group describe billing --sample 0 --json | jq .[0].total.lag",
		Args:              takes("GROUP", true),
		ValidArgsFunction: c.completeGroups(0),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if sample < 0 {
				return usagef("--sample %s is below 0", sample)
			}
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			begin := time.Now()
			stop := showProgress(cmd.ErrOrStderr(), "seconds", int64(sample.Seconds()), func() int64 { return int64(time.Since(begin).Seconds()) })
			groups, err := describeGroups(cmd.Context(), adm, ids, sample)
			stop()
			if err != nil {
				return err
			}
			if json {
				return printJSON(cmd.OutOrStdout(), groups)
			}
			for i, g := range groups {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				if err := printGroup(cmd.OutOrStdout(), g); err != nil {
					return err
				}
			}
			return nil
		},
	}
	asJSON(cmd, &json)
	cmd.Flags().DurationVar(&sample, "sample", 5*time.Second, "time between two samples of what is written and read; 0 takes one and says nothing of rates")
	return cmd
}

// describeGroups takes a sample of all groups, and after a while another.
func describeGroups(ctx context.Context, adm *kadm.Client, ids []string, wait time.Duration) ([]describedGroup, error) {
	first := time.Now()
	lags, err := sampleGroups(ctx, adm, ids)
	if err != nil {
		return nil, err
	}
	before, took := lags, time.Duration(0)
	if wait > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(first.Add(wait))):
		}
		took = time.Since(first)
		if lags, err = sampleGroups(ctx, adm, ids); err != nil {
			return nil, err
		}
	}
	var groups []describedGroup
	for _, id := range ids {
		l := lags[id]
		g := describedGroup{
			Group: id, State: l.State, Protocol: l.ProtocolType, Assignor: l.Protocol, Coordinator: l.Coordinator.NodeID,
			Members: membersOf(l.Members), Partitions: partitionLags(l.Lag), SampleSeconds: took.Seconds(),
		}
		g.Topics, g.Total = topicLags(partitionLags(before[id].Lag), g.Partitions, took)
		if g.Topics == nil {
			g.Topics = []topicLag{} // no list is null in JSON
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func sampleGroups(ctx context.Context, adm *kadm.Client, ids []string) (kadm.DescribedGroupLags, error) {
	lags, err := adm.Lag(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		l := lags[id]
		switch {
		case errors.Is(l.DescribeErr, kerr.GroupIDNotFound), l.Error() == nil && l.State == "Dead":
			return nil, explainGroup(id, kerr.GroupIDNotFound, "")
		case l.Error() != nil:
			return nil, explainGroup(id, l.Error(), "")
		}
	}
	return lags, nil
}

func printGroup(w io.Writer, g describedGroup) error {
	fmt.Fprintf(w, "%s  %s, %s, %s\n", g.Group, g.State, plural(len(g.Members), "member"), plural(len(g.Partitions), "partition"))
	if g.Protocol != "" {
		fmt.Fprintf(w, "protocol %s, assignor %s, coordinator %d\n", g.Protocol, orDash(g.Assignor), g.Coordinator)
	}
	if err := printPartitions(w, g); err != nil {
		return err
	}
	if len(g.Topics) == 0 {
		fmt.Fprintln(w, "nothing is committed, and nothing assigned")
		return nil
	}
	heading := []string{"TOPIC", "LAG"}
	if g.SampleSeconds > 0 {
		fmt.Fprintf(w, "\nwithin %.1f s\n", g.SampleSeconds)
		heading = append(heading, "WRITTEN/S", "READ/S", "OUTLOOK")
	} else {
		fmt.Fprintln(w)
	}
	var rows [][]string
	for _, t := range g.Topics {
		rows = append(rows, t.row(t.Topic))
	}
	if len(g.Topics) > 1 {
		rows = append(rows, g.Total.row("(all)"))
	}
	return table(w, heading, rows)
}

func (t topicLag) row(name string) []string {
	row := []string{name, strconv.FormatInt(t.Lag, 10)}
	if t.Pace != nil {
		row = append(row, rate(t.Pace.WrittenPerSecond), rate(t.Pace.ReadPerSecond), t.Pace.String())
	}
	return row
}

// printPartitions has a row for each partition, and for each member without one.
func printPartitions(w io.Writer, g describedGroup) error {
	var rows [][]string
	for _, p := range g.Partitions {
		committed, end, lag := "-", strconv.FormatInt(p.End, 10), strconv.FormatInt(p.Lag, 10)
		if p.Committed != nil {
			committed = strconv.FormatInt(*p.Committed, 10)
		}
		if p.Error != "" {
			end, lag = "-", "-"
		}
		rows = append(rows, []string{p.Topic, strconv.Itoa(int(p.Partition)), committed, end, lag, orDash(p.Member), orDash(p.Client), orDash(p.Host)})
	}
	for _, m := range g.Members {
		if m.Partitions == 0 {
			rows = append(rows, []string{"-", "-", "-", "-", "-", m.ID, orDash(m.Client), orDash(m.Host)})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := table(w, []string{"TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER", "CLIENT", "HOST"}, rows); err != nil {
		return err
	}
	for _, p := range g.Partitions {
		if p.Error != "" {
			fmt.Fprintf(w, "%s, partition %d: %s\n", p.Topic, p.Partition, p.Error)
		}
	}
	return nil
}
