package sim

import (
	"encoding/binary"
	"fmt"
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

// poll finds what to ask for, where, and asks.
func (c *consumer) poll() {
	if c.stopped || c.passing && c.finished() {
		return
	}
	host, ok := c.guide.leaders[c.partitions[0]]
	if !ok {
		c.retry()
		return
	}
	if len(c.next) < len(c.partitions) {
		c.findStart(host)
		return
	}
	msg := kmsg.NewPtrFetchRequest()
	msg.Version = c.version
	msg.MaxWaitMillis, msg.MinBytes, msg.MaxBytes = int32(c.maxWait/time.Millisecond), 1, c.maxBytes
	msg.SessionEpoch = -1
	for _, p := range c.partitions {
		if c.guide.leaders[p] != host {
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
		if err != nil {
			c.retry()
			return
		}
		if !c.took(resp.(*kmsg.FetchResponse), sent) {
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
	good := resp.ErrorCode == 0
	got := c.history.tick()
	for _, t := range resp.Topics {
		topic := t.Topic
		if c.version >= 13 {
			topic = c.guide.names[t.TopicID]
		}
		for _, part := range t.Partitions {
			p := partition{topic, part.Partition}
			if _, mine := c.next[p]; !mine {
				c.world.failf("%s was given %s, which it did not ask for", c.name, p)
				continue
			}
			if part.ErrorCode != 0 {
				c.world.tracef("%s: fetch of %s at %d: error %d", c.name, p, c.next[p], part.ErrorCode)
				good = false
			}
			c.keep(p, part, sent, got)
		}
	}
	return good
}

func (c *consumer) keep(p partition, part kmsg.FetchResponseTopicPartition, sent, got moment) {
	r := &read{
		sight:  sight{partition: p, sent: sent, got: got, start: part.LogStartOffset, high: part.HighWatermark},
		reader: c.name, from: c.next[p], outOfRange: part.ErrorCode == 1,
	}
	if part.ErrorCode == 0 {
		records, err := decodeBatches(part.RecordBatches)
		if err != nil {
			c.world.failf("%s: records of %s from %d: %v", c.name, p, r.from, err)
		}
		for _, rec := range records {
			if rec.offset >= r.from {
				r.records = append(r.records, rec)
			}
		}
		c.high[p], c.asked[p] = part.HighWatermark, sent
	}
	if n := len(r.records); n > 0 {
		c.next[p] = r.records[n-1].offset + 1
		c.world.tracef("%s reads %s offsets %d to %d of %d", c.name, p, r.from, c.next[p]-1, r.high)
	}
	c.history.reads = append(c.history.reads, r)
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

// caughtUp says whether the consumer has asked after m, and was shown nothing that it has not read.
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
	msg := kmsg.NewPtrListOffsetsRequest()
	msg.Version, msg.ReplicaID = 7, -1
	for _, p := range c.partitions {
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp, part.CurrentLeaderEpoch = p.number, which, -1
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = p.topic
		t.Partitions = append(t.Partitions, part)
		msg.Topics = append(msg.Topics, t)
	}
	sent := c.history.tick()
	c.guide.to(host, 1).ask(msg, true, func(resp kmsg.Response, err error) {
		if err != nil {
			c.retry()
			return
		}
		got, good := c.history.tick(), true
		for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, part := range t.Partitions {
				if part.ErrorCode != 0 {
					good = false
					continue
				}
				s := sight{partition: partition{t.Topic, part.Partition}, sent: sent, got: got, start: -1, high: part.Offset}
				if which == -2 {
					s.start, s.high = part.Offset, -1
				}
				c.history.sights = append(c.history.sights, s)
				each(s.partition, part.Offset)
			}
		}
		if !good {
			c.retry()
			return
		}
		c.world.after(0, then)
	})
}

// decodeBatches takes apart the record batches of a fetch; the last may be cut.
func decodeBatches(b []byte) ([]readRecord, error) {
	var all []readRecord
	for len(b) >= 12 {
		size := int(int32(binary.BigEndian.Uint32(b[8:]))) + 12
		if size < 61 || len(b) < size {
			break
		}
		var batch kmsg.RecordBatch
		if err := batch.ReadFrom(b[:size]); err != nil {
			return all, err
		}
		b = b[size:]
		records := batch.Records
		for range batch.NumRecords {
			length, n := binary.Varint(records)
			if n <= 0 || int(length) > len(records)-n {
				return all, fmt.Errorf("batch at %d: record of %d bytes", batch.FirstOffset, length)
			}
			var r kmsg.Record
			if err := r.ReadFrom(records[:n+int(length)]); err != nil {
				return all, err
			}
			records = records[n+int(length):]
			if len(r.Value) < 8 {
				return all, fmt.Errorf("batch at %d: a value of %d bytes", batch.FirstOffset, len(r.Value))
			}
			all = append(all, readRecord{
				offset: batch.FirstOffset + int64(r.OffsetDelta), epoch: batch.PartitionLeaderEpoch,
				id: recordID(binary.BigEndian.Uint64(r.Value)),
			})
		}
	}
	return all, nil
}
