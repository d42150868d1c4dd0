package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// resetTarget is where a reset puts offsets: one of its flags.
type resetTarget struct {
	flag             string // the one that is given
	earliest, latest bool
	at, shift        int64
	time             string
	millis           int64 // that time is
}

var resetFlags = []string{"to-earliest", "to-latest", "to-offset", "to-time", "shift-by"}

func (to *resetTarget) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&to.earliest, "to-earliest", false, "to where each log starts")
	f.BoolVar(&to.latest, "to-latest", false, "to where each log ends")
	f.Int64Var(&to.at, "to-offset", 0, "to this `offset`")
	f.StringVar(&to.time, "to-time", "", "to the first record of a `time` or later, like "+timeSyntax+", or milliseconds since 1970")
	f.Int64Var(&to.shift, "shift-by", 0, "by so many `records`, back if it is below 0")
}

// check finds out which target is given, and what is wrong with it.
func (to *resetTarget) check(given func(flag string) bool) (err error) {
	flags := slices.DeleteFunc(slices.Clone(resetFlags), func(f string) bool { return !given(f) })
	if len(flags) != 1 {
		return usagef("give one of --%s", strings.Join(resetFlags, ", --"))
	}
	to.flag = flags[0]
	switch {
	case to.flag == "to-earliest" && !to.earliest, to.flag == "to-latest" && !to.latest:
		return usagef("--%s=false is no place to go to", to.flag)
	case to.at < 0:
		return usagef("--to-offset %d is below 0", to.at)
	case to.flag == "to-time":
		if to.millis, err = parseTime(to.time, time.Now()); err != nil {
			return usagef("--to-time is like %s, or milliseconds since 1970; not %q", timeSyntax, to.time)
		}
	}
	return nil
}

// offset is where a partition's goes. Clamped says why that is not what was
// asked for; ok is false where there is nothing to shift.
func (to resetTarget) offset(old *int64, log partitionLog) (at int64, clamped string, ok bool) {
	switch to.flag {
	case "to-earliest":
		return log.start, "", true
	case "to-latest":
		return log.end, "", true
	case "to-time":
		at = log.atTime
	case "to-offset":
		at = to.at
	case "shift-by":
		if old == nil {
			return 0, "", false
		}
		at = *old + to.shift
		if to.shift > 0 && at < *old { // past the largest number
			at = log.end + 1
		}
	}
	switch {
	case at < log.start:
		return log.start, "the log starts there", true
	case at > log.end:
		return log.end, "the log ends there", true
	}
	return at, "", true
}

// partitionLog is what a reset needs to know of a partition.
type partitionLog struct{ start, end, atTime int64 }

type topicLogs map[string]map[int32]partitionLog

// listLogs asks for the bounds of logs. A topic that is not there is not in them.
func listLogs(ctx context.Context, adm *kadm.Client, of []topicPartitions, to resetTarget) (topicLogs, error) {
	var topics []string
	for _, t := range of {
		topics = append(topics, t.topic)
	}
	details, err := adm.ListTopics(ctx, topics...)
	if err != nil {
		return nil, err
	}
	logs := topicLogs{}
	topics = topics[:0]
	for _, d := range details.Sorted() {
		if d.Err == nil {
			topics = append(topics, d.Topic)
			logs[d.Topic] = map[int32]partitionLog{}
		}
	}
	if len(topics) == 0 {
		return logs, nil
	}
	starts, err := onceLed(ctx, func() (kadm.ListedOffsets, error) { return adm.ListStartOffsets(ctx, topics...) })
	if err != nil {
		return nil, err
	}
	ends, err := onceLed(ctx, func() (kadm.ListedOffsets, error) { return adm.ListEndOffsets(ctx, topics...) })
	if err != nil {
		return nil, err
	}
	var times kadm.ListedOffsets
	if to.flag == "to-time" {
		if times, err = onceLed(ctx, func() (kadm.ListedOffsets, error) { return adm.ListOffsetsAfterMilli(ctx, to.millis, topics...) }); err != nil {
			return nil, err
		}
	}
	for _, listed := range []kadm.ListedOffsets{starts, ends, times} {
		if err := listed.Error(); err != nil {
			return nil, err
		}
	}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		at, _ := times.Lookup(end.Topic, end.Partition)
		logs[end.Topic][end.Partition] = partitionLog{start.Offset, end.Offset, at.Offset}
	})
	return logs, nil
}

// topicPartitions are some partitions of a topic.
type topicPartitions struct {
	topic      string
	partitions []int32 // sorted, each once; nil: all
}

// of names the partitions, when these are all that there are.
func (t topicPartitions) of(all map[int32]partitionLog) []int32 {
	if t.partitions != nil {
		return t.partitions
	}
	return slices.Sorted(maps.Keys(all))
}

// parseTopicPartitions reads topics like orders, orders:3 and orders:0,4-7,
// each of which may come more than once.
func parseTopicPartitions(given []string) (all []topicPartitions, err error) {
	for _, s := range given {
		name, list, some := strings.Cut(s, ":")
		t := topicPartitions{topic: name}
		if some {
			t.partitions, err = parsePartitions(list)
		}
		if err != nil || name == "" {
			return nil, usagef("--topic is like orders, orders:3 or orders:0,4-7, not %q", s)
		}
		i := slices.IndexFunc(all, func(o topicPartitions) bool { return o.topic == name })
		switch {
		case i < 0:
			all = append(all, t)
		case !some || all[i].partitions == nil:
			all[i].partitions = nil
		default:
			all[i].partitions = slices.Concat(all[i].partitions, t.partitions)
			slices.Sort(all[i].partitions)
			all[i].partitions = slices.Compact(all[i].partitions)
		}
	}
	return all, nil
}

func parsePartitions(list string) (parts []int32, err error) {
	for r := range strings.SplitSeq(list, ",") {
		low, high, some := strings.Cut(r, "-")
		if !some {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 31)
		if err != nil {
			return nil, err
		}
		last, err := strconv.ParseUint(high, 10, 31)
		if err != nil {
			return nil, err
		}
		// No topic has so many; it bounds what a slip of the finger costs.
		if last < first || last-first > 1_000_000 {
			return nil, strconv.ErrRange
		}
		for p := first; p <= last; p++ {
			parts = append(parts, int32(p))
		}
	}
	slices.Sort(parts)
	return slices.Compact(parts), nil
}
