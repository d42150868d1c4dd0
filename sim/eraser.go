package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// An eraser has records deleted, up to some offset that there has been.
type eraser struct {
	guide      *guide
	world      *world
	history    *history
	dice       *dice
	partitions []partition
	stopped    bool
}

func (e *eraser) begin() { e.guide.refresh(e.next) }

// next deletes some records of one partition, and comes again.
func (e *eraser) next() {
	if e.stopped {
		return
	}
	p := e.partitions[e.dice.below(len(e.partitions))]
	d := &deletion{partition: p, offset: e.upTo(p), low: -1}
	e.history.deletions = append(e.history.deletions, d)
	msg := kmsg.NewPtrDeleteRecordsRequest()
	msg.Version, msg.TimeoutMillis = int16(e.dice.between(0, 2)), 5000
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Partition, part.Offset = p.number, d.offset
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic, t.Partitions = p.topic, append(t.Partitions, part)
	msg.Topics = append(msg.Topics, t)
	e.world.tracef("eraser: %s up to %d", p, d.offset)
	host := e.guide.leaders[p]
	if host == "" {
		host = e.guide.first()
	}
	sent := e.history.tick()
	e.guide.to(host, 1).ask(msg, true, func(resp kmsg.Response, err error) {
		if err == nil {
			part := resp.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]
			d.refused = part.ErrorCode == kerr.OffsetOutOfRange.Code
			if !e.world.refused("eraser", part.ErrorCode, "delete records of %s", p) {
				d.low = part.LowWatermark
				e.world.tracef("eraser: %s starts at %d", p, d.low)
				e.history.sights = append(e.history.sights, sight{partition: p, sent: sent, got: e.history.tick(), start: d.low, high: -1})
			}
		}
		e.world.after(e.dice.duration(100*time.Millisecond, 2*time.Second), func() { e.guide.refresh(e.next) })
	})
}

// upTo is an offset near those that were shown; at times -1, the high
// watermark, or one that is too high.
func (e *eraser) upTo(p partition) int64 {
	high := e.history.shownHigh(p)
	switch e.dice.below(10) {
	case 0:
		return -1
	case 1:
		return high + 1<<20
	}
	return int64(e.dice.below(int(high) + 1))
}

// shownHigh is the highest high watermark of a partition that a reader was shown.
func (h *history) shownHigh(p partition) int64 {
	high := int64(0)
	for _, r := range h.reads {
		if r.partition == p {
			high = max(high, r.high)
		}
	}
	return high
}
