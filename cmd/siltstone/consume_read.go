package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// span is what is read of a partition: [begin, end).
type span struct{ begin, end int64 }

// likelyMillis is a number that is a time in this century rather than an offset.
const likelyMillis = 1_000_000_000_000

// noEnd is the end of a span that goes on.
const noEnd = -1

// logBounds is what a partition's span is made from.
type logBounds struct{ start, end, fromTime, untilTime int64 }

// plan asks where logs start and end, and says what to read of which partition.
func (c *consumer) plan(ctx context.Context, adm *kadm.Client) (map[int32]span, error) {
	ends, err := c.ends(ctx, adm)
	if err != nil {
		return nil, err
	}
	starts, err := onceLed(ctx, func() (kadm.ListedOffsets, error) { return adm.ListStartOffsets(ctx, c.topic) })
	if err != nil {
		return nil, err
	}
	times := map[position]kadm.ListedOffsets{}
	for _, p := range []position{c.from, c.until} {
		if p.at == atTime {
			if times[p], err = onceLed(ctx, func() (kadm.ListedOffsets, error) { return adm.ListOffsetsAfterMilli(ctx, p.n, c.topic) }); err != nil {
				return nil, err
			}
		}
	}
	for _, listed := range append([]kadm.ListedOffsets{starts}, times[c.from], times[c.until]) {
		if err := listed.Error(); err != nil {
			return nil, explain(c.topic, err, "")
		}
	}
	logs := map[int32]logBounds{}
	for p, end := range ends[c.topic] {
		offset := func(of kadm.ListedOffsets) int64 {
			o, _ := of.Lookup(c.topic, p)
			return o.Offset
		}
		logs[p] = logBounds{offset(starts), end.Offset, offset(times[c.from]), offset(times[c.until])}
	}
	return c.spans(logs)
}

// ends are where the topic's logs end, for this consumer.
func (c *consumer) ends(ctx context.Context, adm *kadm.Client) (kadm.ListedOffsets, error) {
	list := adm.ListEndOffsets
	if c.committed {
		list = adm.ListCommittedOffsets
	}
	ends, err := onceLed(ctx, func() (kadm.ListedOffsets, error) { return list(ctx, c.topic) })
	if err != nil {
		return nil, err
	}
	if err := ends.Error(); err != nil {
		return nil, explain(c.topic, err, "")
	}
	return ends, nil
}

func (c *consumer) spans(logs map[int32]logBounds) (map[int32]span, error) {
	spans, last := map[int32]span{}, int64(-1)
	for p, log := range logs {
		if c.partitions != nil && !slices.Contains(c.partitions, p) {
			continue
		}
		// Where a log ends before --from, wants passes over what comes until then.
		s := span{c.from.within(log.start, log.end, log.fromTime), noEnd}
		if c.until.at != nowhere {
			s.end = c.until.within(log.start, log.end, log.untilTime)
		}
		spans[p] = s
		last = max(last, log.end)
	}
	for _, p := range c.partitions {
		if _, ok := logs[p]; !ok {
			return nil, fmt.Errorf("topic %q has no partition %d: it has %s", c.topic, p, plural(len(logs), "partition"))
		}
	}
	if c.from.at == atOffset && c.from.n > last {
		hint := ""
		if c.from.n > likelyMillis {
			hint = fmt.Sprintf(" (a time in milliseconds is marked, --from @%d)", c.from.n)
		}
		return nil, fmt.Errorf("no partition of topic %q reaches --from %d: the longest that is read ends at offset %d%s", c.topic, c.from.n, last, hint)
	}
	return spans, nil
}

// read prints until the context, the count or the end of all spans.
func (c *consumer) read(ctx context.Context, cl *kgo.Client, spans map[int32]span, w, progress io.Writer) error {
	begin, left, records := map[int32]kgo.Offset{}, map[int32]int64{}, int64(0)
	for p, s := range spans {
		if s.end != noEnd && s.begin >= s.end {
			continue // nothing to read, now or later
		}
		begin[p] = kgo.NewOffset().At(s.begin)
		if s.end != noEnd {
			left[p] = s.end
			records += s.end - s.begin
		}
	}
	if len(begin) == 0 {
		return nil
	}
	bounded := len(left) > 0
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{c.topic: begin})
	var passed atomic.Int64
	if bounded && !isTerminal(w) {
		defer showProgress(progress, "records", records, passed.Load)()
	}
	out := bufio.NewWriter(w)
	for printed := 0; !bounded || len(left) > 0; {
		fetches, failed := c.poll(ctx, cl, bounded)
		if ctx.Err() != nil {
			return nil // an interrupt is how it ends
		}
		for records := fetches.RecordIter(); !records.Done(); {
			r := records.Next()
			if end, ok := left[r.Partition]; bounded && (!ok || r.Offset >= end) {
				delete(left, r.Partition)
				continue
			} else if bounded && r.Offset+1 == end {
				delete(left, r.Partition)
			}
			passed.Add(1)
			if !c.wants(r) {
				continue
			}
			if err := c.out(out, r); err != nil {
				return err
			}
			if printed++; printed == c.count {
				return out.Flush()
			}
		}
		if err := errors.Join(out.Flush(), failed); err != nil {
			return err
		}
	}
	return nil
}

// poll waits for records, for a moment; failed is why there can be no more of
// them. Bounded is a read of records that are there.
func (c *consumer) poll(ctx context.Context, cl *kgo.Client, bounded bool) (fetches kgo.Fetches, failed error) {
	moment, cancel := context.WithTimeout(ctx, stallTick)
	defer cancel()
	fetches = cl.PollFetches(moment)
	for _, e := range fetches.Errors() {
		if errors.Is(e.Err, context.DeadlineExceeded) {
			continue
		}
		c.stall.heard.note(e.Err)
		failed = cmp.Or(failed, readFailure(e))
	}
	switch {
	case !fetches.Empty():
		c.stall.moved()
	case bounded: // else it waits for what nobody may have written
		c.stall.tick()
	}
	return fetches, failed
}

// readFailure is why a partition cannot be read on, if it is for good. The client
// is to keep errors that it would try again for ever: damage does not pass.
func readFailure(e kgo.FetchError) error {
	switch {
	case errors.Is(e.Err, kerr.CorruptMessage):
		return fmt.Errorf("partition %d of topic %q is damaged where it is to be read next: siltstone check, where the data is, names the offsets; --from one after them reads on", e.Partition, e.Topic)
	case kerr.IsRetriable(e.Err):
		return nil
	}
	return explain(e.Topic, e.Err, "")
}
