package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// check judges a history by what DESIGN, section 8, promises (the numbers in
// the messages are its). It returns what is wrong with it.
func (h *history) check() []string {
	c := &checker{history: h, logs: map[partition]*log{}, made: map[recordID]*write{}, deleted: map[partition]int64{}}
	for _, w := range h.writes {
		for _, id := range w.records {
			c.made[id] = w
		}
	}
	c.learnDeletions()
	c.nameOffsets()
	c.checkReads()
	c.checkBounds()
	c.checkLookups()
	c.checkWrites()
	c.checkOrder()
	c.checkEpochs()
	c.checkStarts()
	c.checkSequences()
	c.checkGroups()
	return c.wrong
}

type checker struct {
	*history
	logs    map[partition]*log
	made    map[recordID]*write
	deleted map[partition]int64 // before which records may have been deleted
	wrong   []string
}

// A log is a partition as far as anybody was shown it.
type log struct {
	partition partition
	at        map[int64]shown
	of        map[recordID][]int64 // the offsets at which a record was shown, and is for good
}

type shown struct {
	id    recordID
	epoch int32 // -1: not shown
	by    string
}

// maxWrong bounds the messages: after so many, more do not help.
const maxWrong = 20

func (c *checker) failf(format string, args ...any) {
	if len(c.wrong) < maxWrong {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

func (c *checker) log(p partition) *log {
	l := c.logs[p]
	if l == nil {
		l = &log{partition: p, at: map[int64]shown{}, of: map[recordID][]int64{}}
		c.logs[p] = l
	}
	return l
}

// nameOffsets: an offset that was shown, or acknowledged with acks=all, never
// names another record, nor is it shown in another epoch.
func (c *checker) nameOffsets() {
	name := func(l *log, offset int64, now shown) {
		before, known := l.at[offset]
		switch {
		case !known:
			l.at[offset] = now
			if !c.isLost(l.partition, offset, offset+1) {
				l.of[now.id] = append(l.of[now.id], offset)
			}
		case before.id != now.id:
			c.failf("2: %s offset %d is record %x to %s, and record %x to %s", l.partition, offset, before.id, before.by, now.id, now.by)
		case before.epoch < 0:
			l.at[offset] = now
		case now.epoch >= 0 && now.epoch != before.epoch:
			c.failf("3: %s offset %d is of epoch %d to %s, and of epoch %d to %s", l.partition, offset, before.epoch, before.by, now.epoch, now.by)
		}
	}
	for _, w := range c.writes {
		if w.acked == 0 || w.acks != -1 {
			continue
		}
		for i, id := range w.records {
			name(c.log(w.partition), w.base+int64(i), shown{id: id, epoch: -1, by: w.producer})
		}
	}
	for _, r := range c.reads {
		for _, rec := range r.records {
			name(c.log(r.partition), rec.offset, shown{id: rec.id, epoch: rec.epoch, by: r.reader})
		}
	}
}

// checkReads: a fetch gives records that somebody wrote, one offset after the
// other from where it began, below the high watermark.
func (c *checker) checkReads() {
	for _, r := range c.reads {
		next := r.from
		for _, rec := range r.records {
			if rec.offset < next || !c.isLost(r.partition, next, rec.offset) {
				c.failf("1: %s was given offset %d of %s where %d was due", r.reader, rec.offset, r.partition, next)
			}
			next = rec.offset + 1
			switch w := c.made[rec.id]; {
			case w == nil:
				c.failf("1: %s was given record %x at %s offset %d: nobody wrote it", r.reader, rec.id, r.partition, rec.offset)
			case w.partition != r.partition:
				c.failf("1: %s was given record %x at %s offset %d: it was written to %s", r.reader, rec.id, r.partition, rec.offset, w.partition)
			}
		}
		if r.end > next {
			if !c.isLost(r.partition, next, r.end) {
				c.failf("1: %s was given nothing from offset %d to %d of %s", r.reader, next, r.end, r.partition)
			}
			next = r.end
		}
		if (len(r.records) > 0 || r.end > 0) && next > r.high {
			c.failf("2: %s was given offset %d of %s, the high watermark is %d", r.reader, next-1, r.partition, r.high)
		}
	}
}

// A bound is what one answer says of how far a partition reaches.
type bound struct {
	sight
	// low must not lie below any high watermark that was shown before the
	// request was sent; -1 is nothing.
	low int64
}

// checkBounds: high watermark and log start never go back, the high watermark
// passes what is acknowledged, no record is put below it, and no offset up to
// it is out of range. An answer is later than another if it was asked for
// after that had come.
func (c *checker) checkBounds() {
	bounds := map[partition][]bound{}
	add := func(s sight, low int64) {
		bounds[s.partition] = append(bounds[s.partition], bound{s, low})
	}
	for _, s := range c.sights {
		add(s, s.high)
	}
	for _, r := range c.reads {
		add(r.sight, r.high)
	}
	for _, w := range c.writes {
		s := sight{partition: w.partition, sent: w.sent, got: w.acked, start: -1, high: -1}
		if w.acks == -1 {
			s.high = w.end()
		}
		if w.acked > 0 {
			add(s, w.base)
		}
	}
	for _, p := range sortedPartitions(bounds) {
		c.checkPartition(p, bounds[p])
	}
}

func (c *checker) checkPartition(p partition, bounds []bound) {
	byGot := slices.Clone(bounds)
	slices.SortStableFunc(byGot, func(a, b bound) int { return cmp.Compare(a.got, b.got) })
	slices.SortStableFunc(bounds, func(a, b bound) int { return cmp.Compare(a.sent, b.sent) })
	seen, high, start := 0, int64(-1), int64(-1)
	for _, s := range bounds {
		for seen < len(byGot) && byGot[seen].got < s.sent {
			high, start = max(high, byGot[seen].high), max(start, byGot[seen].start)
			seen++
		}
		if s.low >= 0 && s.low < high {
			c.failf("2: high watermark of %s was %d, then %d (moments %d to %d)", p, high, s.low, s.sent, s.got)
		}
		if s.start >= 0 && s.start < start {
			c.failf("2: log start of %s was %d, then %d (moments %d to %d)", p, start, s.start, s.sent, s.got)
		}
	}
	for _, r := range c.reads {
		if !r.outOfRange || r.partition != p {
			continue
		}
		high, start := int64(-1), int64(0)
		for _, s := range bounds {
			if s.got < r.sent {
				high = max(high, s.high)
			}
			start = max(start, s.start)
		}
		if r.from >= start && r.from <= high {
			c.failf("2: offset %d of %s is out of range to %s, its bounds were %d and %d", r.from, p, r.reader, start, high)
		}
	}
}

// checkLookups: no record before the one found, and none at all if none was
// found, is of the time asked for or a later one.
func (c *checker) checkLookups() {
	for _, q := range c.lookups {
		l := c.log(q.partition)
		end := q.offset
		if end < 0 {
			for _, s := range c.sights {
				if s.partition == q.partition && s.got < q.sent {
					end = max(end, s.high)
				}
			}
		} else if s, known := l.at[q.offset]; known && (c.timeOf(s.id) != q.timestamp || q.timestamp < q.ms) {
			c.failf("1: %s asked %s for time %d and was given offset %d, of time %d; it is of time %d",
				q.asker, q.partition, q.ms, q.offset, q.timestamp, c.timeOf(s.id))
		}
		for off, s := range l.at {
			if off < end && off >= c.deleted[q.partition] && c.timeOf(s.id) >= q.ms && !c.isLost(q.partition, off, off+1) {
				c.failf("1: %s asked %s for time %d and was given offset %d; offset %d is of time %d", q.asker, q.partition, q.ms, q.offset, off, c.timeOf(s.id))
				break
			}
		}
	}
}

// timeOf is a record's timestamp.
func (c *checker) timeOf(id recordID) int64 {
	w := c.made[id]
	if w == nil {
		return -1
	}
	return w.made + int64(id-w.records[0])
}

// checkWrites: what was acknowledged with acks=all is read at its offset by
// every later pass, and a batch that was sent once is there once at most.
func (c *checker) checkWrites() {
	for _, p := range c.passes {
		l := c.log(p.partition)
		got := map[int64]recordID{}
		for _, r := range c.reads {
			if r.reader == p.reader && r.partition == p.partition {
				for _, rec := range r.records {
					got[rec.offset] = rec.id
				}
			}
		}
		for _, w := range c.writes {
			if w.partition != p.partition || w.acked == 0 || w.acked > p.began || w.acks != -1 && !c.orderly {
				continue
			}
			for i, id := range w.records {
				if off := w.base + int64(i); off >= p.from && got[off] != id && !c.isLost(p.partition, off, off+1) {
					c.failf("1: record %x of %s, acknowledged at %s offset %d, was not given to %s", id, w.producer, p.partition, off, p.reader)
				}
			}
		}
		if c.calm {
			c.checkCalm(l, p)
		}
	}
	for _, w := range c.writes {
		offsets := c.log(w.partition).of
		for i, id := range w.records {
			at := offsets[id]
			if w.tries <= 1 && w.stamp == nil && len(at) > 1 {
				c.failf("1: record %x of %s was sent once, and is at offsets %v of %s", id, w.producer, at, w.partition)
			}
			if before := w.records[max(i-1, 0)]; i > 0 && (w.tries <= 1 || w.stamp != nil) && len(at) == 1 && len(offsets[before]) == 1 && at[0] != offsets[before][0]+1 {
				c.failf("2: records %x and %x of one batch of %s are at offsets %d and %d of %s", before, id, w.producer, offsets[before][0], at[0], w.partition)
			}
		}
	}
}

// checkCalm: where nothing goes wrong, everything that was sent is there, once, acknowledged.
func (c *checker) checkCalm(l *log, p pass) {
	for _, w := range c.writes {
		if w.partition != p.partition || w.sent > p.began {
			continue
		}
		if w.acked == 0 && w.acks != 0 {
			c.failf("calm: a batch of %s was not acknowledged", w.producer)
		}
		if w.tries != 1 {
			c.failf("calm: a batch of %s was sent %d times", w.producer, w.tries)
		}
		for _, id := range w.records {
			if len(l.of[id]) != 1 {
				c.failf("calm: record %x of %s is at offsets %v of %s", id, w.producer, l.of[id], p.partition)
			}
		}
	}
}

// checkOrder: of batches that were sent once, on one connection, the log has
// the earlier before the later.
func (c *checker) checkOrder() {
	type way struct {
		conn      string
		partition partition
	}
	last := map[way]int64{}
	sent := slices.Clone(c.writes)
	slices.SortStableFunc(sent, func(a, b *write) int { return cmp.Compare(a.sent, b.sent) })
	for _, w := range sent {
		at := c.log(w.partition).of[w.records[0]]
		if w.tries != 1 || len(at) != 1 {
			continue
		}
		k := way{w.conn, w.partition}
		if before, ok := last[k]; ok && at[0] < before {
			c.failf("2: %s sent record %x after another on %s, and it is before that, at offset %d of %s", w.producer, w.records[0], w.conn, at[0], w.partition)
		}
		last[k] = at[0]
	}
}

// checkEpochs: leader epochs do not fall as offsets rise.
func (c *checker) checkEpochs() {
	for _, p := range sortedPartitions(c.logs) {
		epoch := int32(-1)
		l := c.logs[p]
		for _, off := range slices.Sorted(maps.Keys(l.at)) {
			s := l.at[off]
			if s.epoch < 0 {
				continue
			}
			if s.epoch < epoch {
				c.failf("3: %s offset %d is of epoch %d, after one of epoch %d", p, off, s.epoch, epoch)
			}
			epoch = s.epoch
		}
	}
}

func sortedPartitions[V any](m map[partition]V) []partition {
	return slices.SortedFunc(maps.Keys(m), func(a, b partition) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.number, b.number))
	})
}
