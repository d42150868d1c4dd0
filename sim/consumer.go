package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A consumer reads some partitions by long polls, from the start of their logs.
type consumer struct {
	guide      *guide
	world      *world
	history    *history
	name       string
	dice       *dice
	partitions []partition
	version    int16
	maxWait    time.Duration
	maxBytes   int32
	rest       time.Duration // between polls
	curious    bool          // it asks often where the logs end

	session *session // of incremental fetches (KIP-227); nil for who has none

	polls   int
	next    map[partition]int64
	high    map[partition]int64 // as shown last
	asked   map[partition]moment
	to      map[partition]int64 // where a pass ends; nil for who reads for ever
	passing bool
	from    map[partition]int64
	began   moment
	stopped bool
}

func (c *consumer) begin() {
	c.next, c.high, c.asked = map[partition]int64{}, map[partition]int64{}, map[partition]moment{}
	c.from, c.to = map[partition]int64{}, map[partition]int64{}
	c.began = c.history.tick()
	c.guide.refresh(c.poll)
}

// beginAt is begin for one that goes on from some offsets.
func (c *consumer) beginAt(from map[partition]int64) {
	c.begin()
	maps.Copy(c.next, from)
}

// poll finds what to ask for, where, and asks.
func (c *consumer) poll() {
	if c.stopped || c.passing && c.finished() {
		return
	}
	host, ok := c.guide.leaders[c.due()]
	if !ok {
		c.retry()
		return
	}
	if len(c.next) < len(c.partitions) {
		c.findStart(host)
		return
	}
	what := 0
	if !c.curious || !c.dice.chance(.3) {
		what = c.dice.below(30)
	}
	switch what {
	case 0:
		c.bounds(host, -1, func(partition, int64) {}, c.poll)
		return
	case 1:
		c.lookUp(host)
		return
	}
	c.fetch(host)
}

// due is the partition whose leader is asked next, for all that it leads.
func (c *consumer) due() partition {
	for _, p := range c.partitions {
		if _, known := c.next[p]; !known {
			return p
		}
	}
	first := (c.polls + 1) % len(c.partitions)
	for _, p := range slices.Concat(c.partitions[first:], c.partitions[:first]) {
		if c.next[p] < c.high[p] {
			return p
		}
	}
	return c.partitions[first]
}

// fetch asks for what comes next, of all partitions that a host leads or, in a session, of
// those whose position has changed.
func (c *consumer) fetch(host string) {
	msg := kmsg.NewPtrFetchRequest()
	msg.Version = c.version
	msg.MaxWaitMillis, msg.MinBytes, msg.MaxBytes = int32(c.maxWait/time.Millisecond), 1, c.maxBytes
	c.session.begin(msg)
	// Another partition comes first each time, as an answer may have no room
	// for more than the first.
	c.polls++
	first := c.polls % len(c.partitions)
	for _, p := range slices.Concat(c.partitions[first:], c.partitions[:first]) {
		if c.guide.leaders[p] != host || !c.session.wants(p, c.next[p]) {
			continue
		}
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = p.number, c.next[p], c.maxBytes
		part.CurrentLeaderEpoch = -1
		if n := len(msg.Topics); n == 0 || msg.Topics[n-1].Topic != p.topic {
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = p.topic, c.guide.ids[p.topic]
			msg.Topics = append(msg.Topics, t)
		}
		t := &msg.Topics[len(msg.Topics)-1]
		t.Partitions = append(t.Partitions, part)
	}
	sent := c.history.tick()
	c.guide.to(host, 1).ask(msg, true, func(resp kmsg.Response, err error) {
		if err != nil || !c.took(resp.(*kmsg.FetchResponse), sent) {
			c.session.end()
			c.retry()
			return
		}
		c.world.after(c.dice.duration(0, c.rest), c.poll)
	})
}

func (c *consumer) retry() {
	c.guide.refresh(func() {
		c.world.after(c.dice.duration(50*time.Millisecond, 200*time.Millisecond), c.poll)
	})
}

// took keeps what a fetch gave; it says whether all went well.
func (c *consumer) took(resp *kmsg.FetchResponse, sent moment) bool {
	good := !c.world.refused(c.name, resp.ErrorCode, "fetch")
	got := c.history.tick()
	if good && c.session.goesOn(resp) {
		c.keepUnchanged(resp, sent, got)
	}
	for _, t := range resp.Topics {
		for _, part := range t.Partitions {
			p := partition{c.topic(&t), part.Partition}
			if _, mine := c.next[p]; !mine {
				c.world.failf("%s was given %s, which it did not ask for", c.name, p)
				continue
			}
			if c.world.refused(c.name, part.ErrorCode, "fetch %s at %d", p, c.next[p]) {
				good = false
			}
			c.keep(p, part, sent, got)
		}
	}
	return good
}

// keepUnchanged notes that partitions which an incremental answer leaves out
// are as they were.
func (c *consumer) keepUnchanged(resp *kmsg.FetchResponse, sent, got moment) {
	news := map[partition]bool{}
	for _, t := range resp.Topics {
		for _, part := range t.Partitions {
			news[partition{c.topic(&t), part.Partition}] = true
		}
	}
	for _, p := range c.partitions {
		if high, known := c.high[p]; known && !news[p] {
			c.asked[p] = sent
			c.history.sights = append(c.history.sights, sight{partition: p, sent: sent, got: got, start: -1, high: high})
		}
	}
}

func (c *consumer) topic(t *kmsg.FetchResponseTopic) string {
	if c.version >= 13 {
		return c.guide.names[t.TopicID]
	}
	return t.Topic
}

func (c *consumer) keep(p partition, part kmsg.FetchResponseTopicPartition, sent, got moment) {
	r := &read{
		sight:  sight{partition: p, sent: sent, got: got, start: part.LogStartOffset, high: part.HighWatermark},
		reader: c.name, from: c.next[p], outOfRange: part.ErrorCode == 1,
	}
	if part.ErrorCode == 0 {
		records, end, err := decodeBatches(part.RecordBatches)
		if err != nil {
			c.world.failf("%s: records of %s from %d: %v", c.name, p, r.from, err)
		}
		for _, rec := range records {
			if rec.offset >= r.from {
				r.records = append(r.records, rec)
			}
		}
		c.high[p], c.asked[p], r.end = part.HighWatermark, sent, end
	}
	if r.end > r.from {
		c.next[p] = r.end
		c.world.tracef("%s reads %s offsets %d to %d of %d", c.name, p, r.from, c.next[p]-1, r.high)
	}
	c.history.reads = append(c.history.reads, r)
	if r.outOfRange {
		delete(c.next, p) // it begins anew where the log does
	}
	if _, known := c.to[p]; c.passing && !known && part.ErrorCode == 0 {
		c.to[p] = part.HighWatermark
	}
}

// finished says whether a pass has come to the end that it saw first.
func (c *consumer) finished() bool {
	for _, p := range c.partitions {
		if to, known := c.to[p]; !known || c.next[p] < to {
			return false
		}
	}
	for _, p := range c.partitions {
		c.history.passes = append(c.history.passes, pass{reader: c.name, partition: p, began: c.began, from: c.from[p], to: c.to[p]})
	}
	c.stopped = true
	return true
}

// caughtUp says whether the consumer has asked after m, and has read all that
// it was shown that there is.
func (c *consumer) caughtUp(m moment) bool {
	for _, p := range c.partitions {
		if c.asked[p] < m || c.next[p] < c.high[p] {
			return false
		}
	}
	return len(c.next) == len(c.partitions)
}

// findStart asks where the logs begin, and where they end, which is a sight.
func (c *consumer) findStart(host string) {
	c.bounds(host, -2, func(p partition, offset int64) {
		if _, known := c.next[p]; !known {
			c.next[p], c.from[p] = offset, offset
		}
	}, c.poll)
}

// bounds asks for the earliest (-2) or latest (-1) offsets.
func (c *consumer) bounds(host string, which int64, each func(partition, int64), then func()) {
	sent := c.history.tick()
	c.offsets(host, which, func(p partition, offset, _ int64) {
		s := sight{partition: p, sent: sent, got: c.history.tick(), start: -1, high: offset}
		if which == -2 {
			s.start, s.high = offset, -1
		}
		c.history.sights = append(c.history.sights, s)
		each(p, offset)
	}, then)
}

// lookUp asks for the first records at or after the time of some record.
func (c *consumer) lookUp(host string) {
	sent := c.history.tick()
	ms := c.world.now.UnixMilli()
	if n := len(c.history.writes); n > 0 {
		w := c.history.writes[c.dice.below(n)]
		ms = w.made + int64(c.dice.below(len(w.records)+1))
	}
	c.offsets(host, ms, func(p partition, offset, timestamp int64) {
		c.history.lookups = append(c.history.lookups, lookup{
			partition: p, asker: c.name, sent: sent, got: c.history.tick(), ms: ms, offset: offset, timestamp: timestamp,
		})
	}, c.poll)
}

// offsets lists offsets of all partitions that a host leads by a time, or a number that stands for one.
func (c *consumer) offsets(host string, ms int64, each func(p partition, offset, timestamp int64), then func()) {
	msg := kmsg.NewPtrListOffsetsRequest()
	msg.Version, msg.ReplicaID = 7, -1
	for _, p := range c.partitions {
		if c.guide.leaders[p] != host {
			continue
		}
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp, part.CurrentLeaderEpoch = p.number, ms, -1
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = p.topic
		t.Partitions = append(t.Partitions, part)
		msg.Topics = append(msg.Topics, t)
	}
	c.guide.to(host, 1).ask(msg, true, func(resp kmsg.Response, err error) {
		if err != nil {
			c.retry()
			return
		}
		good := true
		for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, part := range t.Partitions {
				if c.world.refused(c.name, part.ErrorCode, "offsets of %s/%d", t.Topic, part.Partition) {
					good = false
					continue
				}
				each(partition{t.Topic, part.Partition}, part.Offset, part.Timestamp)
			}
		}
		if !good {
			c.retry()
			return
		}
		c.world.after(0, then)
	})
}
