package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// resetGroup is a reset, or what it would do, as --json prints it.
type resetGroup struct {
	Group    string            `json:"group"`
	Executed bool              `json:"executed"`
	Members  []describedMember `json:"members"` // with any, it cannot be done
	Offsets  []resetOffset     `json:"offsets"`
	Skipped  []resetPartition  `json:"skipped"`
}

// resetOffset is what becomes of a partition's committed offset.
type resetOffset struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Old       *int64 `json:"old"` // null: nothing is committed
	New       int64  `json:"new"`
	Clamped   string `json:"clamped,omitempty"` // why it is not what was asked for
}

// resetPartition is one that is left alone, and why.
type resetPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"` // -1: the whole topic
	Reason    string `json:"reason"`
}

func (p resetPartition) String() string {
	if p.Partition < 0 {
		return fmt.Sprintf("%s is left alone: %s", p.Topic, p.Reason)
	}
	return fmt.Sprintf("%s, partition %d is left alone: %s", p.Topic, p.Partition, p.Reason)
}

func newGroupReset(c *client) *cobra.Command {
	var json, execute bool
	var to resetTarget
	var topics []string
	cmd := &cobra.Command{
		Use:   "reset GROUP",
		Short: "Set a group's committed offsets anew",
		Long: `Set a group's committed offsets anew: show what would change, and with --execute
change it, for which the group must have no members.

It is about the partitions that --topic names, or about all partitions of the
topics for which the group has committed offsets. No offset is set outside of a
log: what is asked for below its start or above its end is its start or end.`,
		Example: "  siltstone group reset billing --to-earliest\n" +
			"  siltstone group reset billing --to-time 2026-01-31T08:00:00Z --topic orders --execute\n" +
			"  siltstone group reset billing --shift-by -100 --topic orders:0,4-7 --execute",
		Args:              takes("GROUP", false),
		ValidArgsFunction: c.completeGroups(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := to.check(cmd.Flags().Changed); err != nil {
				return err
			}
			only, err := parseTopicPartitions(topics)
			if err != nil {
				return err
			}
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			r, err := planReset(cmd.Context(), adm, args[0], only, to)
			if err != nil {
				return err
			}
			if execute {
				if err := r.execute(cmd.Context(), adm); err != nil {
					return err
				}
			}
			if json {
				return printJSON(cmd.OutOrStdout(), r)
			}
			return r.print(cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	asJSON(cmd, &json)
	to.register(cmd)
	cmd.Flags().StringArrayVarP(&topics, "topic", "t", nil, "only this `topic[:partitions]`, like orders or orders:0,4-7; may be repeated")
	completeFlag(cmd, "topic", c.completeTopics(0))
	cmd.Flags().BoolVar(&execute, "execute", false, "do it; without, only show what would change")
	return cmd
}

// planReset finds out what a reset changes, and who is in the way of it.
func planReset(ctx context.Context, adm *kadm.Client, id string, only []topicPartitions, to resetTarget) (resetGroup, error) {
	r := resetGroup{Group: id, Offsets: []resetOffset{}, Skipped: []resetPartition{}}
	g, _, err := describeGroup(ctx, adm, id)
	if err != nil {
		return r, err
	}
	r.Members = membersOf(g.Members)
	committed, err := adm.FetchOffsets(ctx, id)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return r, explainGroup(id, err, "")
	}
	if len(only) == 0 {
		for _, topic := range committed.Offsets().TopicsSet().Topics() {
			only = append(only, topicPartitions{topic: topic})
		}
	}
	if len(only) == 0 {
		return r, fmt.Errorf("group %q has no committed offsets: name with --topic where it is to begin", id)
	}
	logs, err := listLogs(ctx, adm, only, to)
	if err != nil {
		return r, err
	}
	for _, t := range only {
		r.plan(t, committed[t.topic], logs, to)
	}
	if len(r.Offsets) == 0 {
		return r, fmt.Errorf("group %q: nothing to reset: %s", id, r.Skipped[0])
	}
	return r, nil
}

// plan adds a topic's partitions.
func (r *resetGroup) plan(t topicPartitions, committed map[int32]kadm.OffsetResponse, logs topicLogs, to resetTarget) {
	skip := func(partition int32, reason string) {
		r.Skipped = append(r.Skipped, resetPartition{t.topic, partition, reason})
	}
	parts, there := logs[t.topic]
	if !there {
		skip(-1, "there is no such topic")
		return
	}
	for _, p := range t.of(parts) {
		log, there := parts[p]
		if !there {
			skip(p, fmt.Sprintf("there is no such partition: the topic has %s", plural(len(parts), "partition")))
			continue
		}
		var old *int64
		if c, ok := committed[p]; ok && c.At >= 0 {
			old = &c.At
		}
		at, clamped, ok := to.offset(old, log)
		if !ok {
			skip(p, "nothing is committed that could be shifted")
			continue
		}
		r.Offsets = append(r.Offsets, resetOffset{t.topic, p, old, at, clamped})
	}
}

// execute commits as somebody outside the group, which the server refuses once
// the group has members.
func (r *resetGroup) execute(ctx context.Context, adm *kadm.Client) error {
	if len(r.Members) > 0 {
		return fmt.Errorf("group %q has %s, who would commit over it: stop them first", r.Group, namedMembers(r.Members))
	}
	var offsets kadm.Offsets
	for _, o := range r.Offsets {
		offsets.AddOffset(o.Topic, o.Partition, o.New, -1)
	}
	committed, err := adm.CommitOffsets(ctx, r.Group, offsets)
	if err != nil {
		return explainGroup(r.Group, err, "")
	}
	for _, o := range r.Offsets {
		if c, _ := committed.Lookup(o.Topic, o.Partition); c.Err != nil {
			return explainGroup(r.Group, fmt.Errorf("%s, partition %d: %w", o.Topic, o.Partition, c.Err), "")
		}
	}
	r.Executed = true
	return nil
}

func (r *resetGroup) print(w, warnings io.Writer) error {
	for _, s := range r.Skipped {
		fmt.Fprintf(warnings, "siltstone: %s\n", s)
	}
	var rows [][]string
	for _, o := range r.Offsets {
		old := "-"
		if o.Old != nil {
			old = strconv.FormatInt(*o.Old, 10)
		}
		rows = append(rows, []string{o.Topic, strconv.Itoa(int(o.Partition)), old, strconv.FormatInt(o.New, 10), orDash(o.Clamped)})
	}
	if err := table(w, []string{"TOPIC", "PARTITION", "OLD", "NEW", "CLAMPED"}, rows); err != nil {
		return err
	}
	if r.Executed {
		fmt.Fprintf(w, "reset %s of %s\n", plural(len(r.Offsets), "offset"), r.Group)
		return nil
	}
	if len(r.Members) > 0 {
		fmt.Fprintf(w, "nothing is changed yet: stop %s, then --execute does it\n", namedMembers(r.Members))
		return nil
	}
	fmt.Fprintln(w, "nothing is changed yet: --execute does it")
	return nil
}
