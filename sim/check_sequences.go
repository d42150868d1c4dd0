package sim

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// A sequence is what an idempotent producer writes into one partition with one id.
type sequence struct {
	id        int64
	partition partition
}

// checkSequences: of an idempotent producer each record is there once at most,
// however often it was sent, in the order in which it was made; none is missing
// before one that is there; and none is refused that continues the sequence.
func (c *checker) checkSequences() {
	c.checkIDs()
	before := map[sequence][]*write{}
	for _, w := range c.writes {
		if w.stamp == nil {
			continue
		}
		of := sequence{w.stamp.id, w.partition}
		c.checkOnce(w)
		c.checkFollows(w, before[of])
		c.checkRefusals(w, before[of])
		before[of] = append(before[of], w)
	}
}

// checkIDs: no producer id is handed out twice.
func (c *checker) checkIDs() {
	to := map[producerID]string{}
	for _, given := range c.ids {
		key := producerID{id: given.id, epoch: given.epoch}
		if other, known := to[key]; known {
			c.failf("4: producer id %d, epoch %d, was given to %s and to %s", given.id, given.epoch, other, given.to)
		}
		to[key] = given.to
	}
}

func (c *checker) checkOnce(w *write) {
	for _, id := range w.records {
		if at := c.log(w.partition).of[id]; len(at) > 1 {
			c.failf("4: record %x of %s is at offsets %v of %s", id, w.producer, at, w.partition)
		}
	}
	if w.acked > 0 && w.base < 0 {
		c.failf("4: records from %x on of %s are acknowledged at no offset of %s", w.records[0], w.producer, w.partition)
	}
}

// checkFollows holds a batch against those of its id that were made before it.
func (c *checker) checkFollows(w *write, before []*write) {
	l := c.log(w.partition)
	at := l.of[w.records[0]]
	if len(at) == 0 || len(before) == 0 {
		return
	}
	for _, b := range before {
		if was := l.of[b.records[0]]; len(was) > 0 && was[0] > at[0] {
			c.failf("4: %s wrote record %x before %x, and they are at offsets %d and %d of %s",
				w.producer, b.records[0], w.records[0], was[0], at[0], w.partition)
		}
	}
	last := before[len(before)-1]
	if last.stamp.epoch == w.stamp.epoch && len(l.of[last.records[0]]) == 0 && c.deleted[w.partition] == 0 && !c.wasLost(last) {
		c.failf("4: record %x of %s is at offset %d of %s, and %x before it is nowhere",
			w.records[0], w.producer, at[0], w.partition, last.records[0])
	}
}

// wasLost says whether a batch was acknowledged where an unclean takeover has
// left it out.
func (c *checker) wasLost(w *write) bool {
	return w.acked > 0 && c.isLost(w.partition, w.base, w.end())
}

// checkRefusals: a batch is out of order only if one before it is not written,
// and its epoch is too old only if the partition may have seen a newer one.
func (c *checker) checkRefusals(w *write, before []*write) {
	for _, r := range w.refusals {
		switch r.code {
		case kerr.OutOfOrderSequenceNumber.Code:
			if c.continues(w, before, r.sent) {
				c.failf("4: record %x of %s was refused as out of order in %s, and all before it was acknowledged", w.records[0], w.producer, w.partition)
			}
		case kerr.InvalidProducerEpoch.Code, kerr.ProducerFenced.Code, kerr.UnknownProducerID.Code:
			if !c.newerEpoch(w) {
				c.failf("4: record %x of %s was refused with error %d by %s, and its epoch is the newest", w.records[0], w.producer, r.code, w.partition)
			}
		}
	}
}

// continues says whether all batches of the same epoch before w were
// acknowledged when it was sent.
func (c *checker) continues(w *write, before []*write, sent moment) bool {
	for _, b := range before {
		if b.stamp.epoch == w.stamp.epoch && (b.acked == 0 || b.acked > sent || c.wasLost(b)) {
			return false
		}
	}
	return true
}

func (c *checker) newerEpoch(w *write) bool {
	for _, o := range c.writes {
		if o.stamp != nil && o.stamp.id == w.stamp.id && o.partition == w.partition && o.stamp.epoch > w.stamp.epoch {
			return true
		}
	}
	return false
}
