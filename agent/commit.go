package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// The order of the write path, each step only after the one before it:
//
//  1. a batch gets its offset, and is buffered in the epoch in office;
//  2. an object that holds it is uploaded whole;
//  3. a Segment that names the object is appended at the slot after the last
//     one folded; objects of a shard are appended in the order in which they
//     were cut, as many at once as are uploaded, one append at a time;
//  4. the append is settled, never guessed at, and the Segment folded; the
//     fold's offsets must be the stamped ones;
//  5. the high watermark moves, producers are answered, readers woken;
//  6. the batches' memory may be dropped.
//
// Who folds another's Lead gives up all that it stamped and has not committed.

// maxEntryParts bounds the ranges in one Segment of several objects.
const maxEntryParts = 8192

// pump proposes what a shard needs next, if its slot is free.
func (c *core) pump(s *ledShard) {
	for s.state != absent && s.state != loading && c.failed == nil && !s.log.Busy() && len(s.inFlight) < 2 {
		body, objects := c.nextEntry(s)
		if body == nil {
			return
		}
		p, err := s.log.Propose(body.Kind(), body.Encode(), c.wallMS(), c.nonce())
		if err != nil {
			c.fail(err)
			return
		}
		s.inFlight = append(s.inFlight, objects)
		c.work(func(ctx context.Context) event {
			out, err := c.append(ctx, shardKind, p)
			return &settled{s: s, out: out, err: err}
		})
	}
}

// nextEntry decides on the state as folded what to append, nil if nothing;
// and of how many of the shard's first objects a Segment is.
func (c *core) nextEntry(s *ledShard) (shard.Body, int) {
	if len(s.inFlight) > 0 { // only with planted.TwoAppendsInFlight
		return c.segmentBody(s, s.inFlight[0])
	}
	c.forgetDone(s)
	switch {
	case s.state == sealed:
		return nil, 0
	case s.state == standing:
		return c.electSelf(s), 0
	case s.state == recovering:
		return c.segmentBody(s, 0)
	case len(s.toOpen) > 0:
		return c.openBody(s), 0
	case len(s.toEnd) > 0:
		return c.endBody(s), 0
	case c.changeISR(s):
		return &shard.Lead{Epoch: s.epoch, Leader: c.opts.Incarnation, ISR: s.replicas.changing}, 0
	case c.canTrim(s) && !(s.trimLast && len(s.objects) > 0 && s.objects[0].uploaded):
		s.trimLast = true
		return c.trimBody(s), 0
	case len(s.objects) > 0:
		s.trimLast = false
		return c.segmentBody(s, 0)
	case c.draining && c.uncutBytes == 0:
		return &shard.Lead{Epoch: s.epoch + 1}, 0
	case s.seated.heir != 0 && !s.unflushed():
		return &shard.Lead{Epoch: s.epoch + 1, Leader: s.seated.heir, ISR: []siltstone.Incarnation{s.seated.heir}}, 0
	}
	return nil, 0
}

// segmentBody names all objects that are uploaded, from one on to the first that is not.
func (c *core) segmentBody(s *ledShard, from int) (shard.Body, int) {
	seg := &shard.Segment{Epoch: s.epoch, Writer: c.opts.Incarnation}
	parts, n := 0, 0
	for _, o := range s.objects[min(from, len(s.objects)):] {
		mine := o.partsOf(s)
		if !o.uploaded || parts > 0 && parts+len(mine) > maxEntryParts {
			break
		}
		n++
		if len(mine) == 0 {
			continue // its partitions are gone
		}
		parts += len(mine)
		in := shard.SegmentObject{ID: o.id}
		for i := range mine {
			in.Parts = append(in.Parts, mine[i].part(s.fold()))
		}
		seg.Objects = append(seg.Objects, in)
	}
	if len(seg.Objects) == 0 {
		if from == 0 {
			s.objects = s.objects[n:] // nothing of them is left
		}
		return nil, 0
	}
	return seg, n
}

// part is the run as a Segment names it.
func (op *objectPart) part(fold *shard.State) shard.Part {
	known, _ := fold.Partition(op.p.tp)
	return shard.Part{
		Extent: shard.Extent{
			Number: known.Number, Partition: op.p.tp.Partition,
			Offsets: int64(op.end() - op.base), LengthBytes: op.bytes(), MaxTimestamp: op.maxTimestamp(),
		},
		Epoch: op.batches[len(op.batches)-1].epoch,
	}
}

// settled is the end of a proposal, whatever it is.
type settled struct {
	s   *ledShard
	out ledger.Outcome
	err error
}

func (e *settled) handle(c *core) {
	if e.err != nil {
		if c.workCtx.Err() == nil {
			c.fail(fmt.Errorf("append to %s: %w", e.s.log.Name(), e.err))
		}
		return
	}
	c.settle(e.s, e.out)
}

// settle folds an outcome.
func (c *core) settle(s *ledShard, out ledger.Outcome) {
	objects, given := 0, len(s.inFlight) == 0 // up, with what the proposal was of
	if !given {
		objects, s.inFlight = s.inFlight[0], s.inFlight[1:]
	}
	changes, err := s.log.Settle(out)
	for i := range changes {
		changes[i].Mine = changes[i].Mine && !given
		c.folded(s, &changes[i], objects)
	}
	if err == nil && !s.log.Busy() {
		s.replicas.changing = nil
		c.raiseHeld(s)
	}
	if len(changes) > 0 {
		c.pushEntries(s, out.Entries)
	}
	switch {
	case errors.Is(err, ledger.ErrTrimmed), err == nil && s.seated.unread && s.state == standing:
		c.readShard(s)
	case err != nil:
		c.fail(err)
	}
}

// folded does what an entry asks of who leads, or led. If it is the proposal
// that was in flight, it is of so many objects.
func (c *core) folded(s *ledShard, ch *ledger.Change[shard.Change], objects int) {
	s.unstored.add(1, c.now)
	if void := ch.Effect.Void; void != "" {
		c.metrics.void()
		c.opts.Log.Error("a ledger entry breaks the rules", "ledger", s.log.Name(), "seq", ch.Entry.Seq, "why", void)
		return
	}
	switch ch.Entry.Kind {
	case shard.KindLead:
		c.foldedLead(s, ch)
	case shard.KindOpen:
		for _, opened := range ch.Effect.Opened {
			c.opened(opened)
		}
	case shard.KindTrim:
		for _, t := range ch.Effect.Trimmed {
			c.trimmed(t)
		}
	case shard.KindSegment:
		c.foldedSegment(s, ch, objects)
	}
}

// foldedSegment acknowledges what is now flushed.
func (c *core) foldedSegment(s *ledShard, ch *ledger.Change[shard.Change], objects int) {
	if !ch.Mine {
		// Another's, from before this agent led, or of another epoch: no
		// record of this agent's is in it. Its producers are in its objects.
		for _, r := range ch.Effect.Assigned {
			p := c.parts[r.Partition.TP]
			if p != nil && s.inOffice() && r.End() > p.flushed {
				c.fail(fmt.Errorf("%s, entry %d: %s has records that its leader did not write", s.log.Name(), ch.Entry.Seq, p.tp))
			}
			if p == nil || s.inOffice() || !c.learnProducers(p, r, ch.Entry.TimeMS) {
				s.rowless = true
			}
		}
		for _, r := range ch.Effect.Assigned {
			if p := c.parts[r.Partition.TP]; p != nil && !s.inOffice() {
				c.trimTail(p, r.Partition, true)
			}
		}
		return
	}
	committed := s.objects[:objects]
	s.objects = s.objects[objects:]
	assigned := ch.Effect.Assigned
	for _, o := range committed {
		for _, part := range o.partsOf(s) {
			if len(assigned) == 0 || assigned[0].Partition.TP != part.p.tp || assigned[0].Base != part.base || assigned[0].End() != part.end() {
				c.fail(fmt.Errorf("%s, entry %d: the fold does not put %s's records at %d to %d, where they were stamped",
					s.log.Name(), ch.Entry.Seq, part.p.tp, part.base, part.end()))
				return
			}
			if err := assigned[0].Partition.AddRows(assigned[0], ch.Entry.TimeMS, c.rowsOf(part.p, part.base, part.batches)); err != nil {
				c.fail(err)
				return
			}
			assigned = assigned[1:]
			c.commit(&part)
		}
	}
}

// commit moves a partition's flushed end past a run.
func (c *core) commit(part *objectPart) {
	p := part.p
	if p.gone {
		return // and so is what it had in memory
	}
	for i := range part.batches {
		c.flushed(&part.batches[i])
	}
	p.flushedProducers(part.batches)
	p.flushed = part.end()
	p.raise(c, p.flushed)
	c.unpark(p)
}

// opened makes a partition ready for records.
func (c *core) opened(known *shard.Partition) {
	p := c.parts[known.TP]
	if p == nil {
		return // of a topic that is deleted already
	}
	c.trimTail(p, known, false)
	p.open = true
	p.answerOpeners()
}

// trimmed moves a log start, or ends a partition: one that this agent has ended,
// or whose topic's deletion it will hear of yet.
func (c *core) trimmed(t shard.Trimmed) {
	switch p := c.parts[t.Partition]; {
	case p == nil:
	case t.Gone:
		c.end(p)
	default:
		p.startAt(c, t.Start)
	}
}

// openBody opens the partitions of new topics, as many as fit. An Open names
// a topic once, also one that got more partitions before its first were open.
func (c *core) openBody(s *ledShard) shard.Body {
	open := &shard.Open{Epoch: s.epoch, Writer: c.opts.Incarnation}
	slices.SortFunc(s.toOpen, func(a, b *partition) int { return a.tp.Compare(b.tp) })
	for i, p := range s.toOpen {
		t, ok := c.Topics().TopicByID(p.tp.Topic)
		if !ok || i >= maxEntryParts {
			continue
		}
		if k := len(open.Topics); k == 0 || open.Topics[k-1].Topic != t.ID {
			open.Topics = append(open.Topics, shard.OpenTopic{Topic: t.ID, Number: t.Number})
		}
		last := &open.Topics[len(open.Topics)-1]
		last.Partitions = append(last.Partitions, p.tp.Partition)
	}
	return open
}

// endBody ends partitions of deleted topics.
func (c *core) endBody(s *ledShard) shard.Body {
	trim := &shard.Trim{}
	for _, tp := range s.toEnd[:min(len(s.toEnd), maxEntryParts)] {
		known, _ := s.fold().Partition(tp)
		trim.Parts = append(trim.Parts, shard.TrimPart{Number: known.Number, Partition: tp.Partition, Gone: true})
	}
	return trim
}

// forgetDone takes what is done, or needless by now, off the shard's lists.
func (c *core) forgetDone(s *ledShard) {
	s.forgetGone()
	s.toOpen = slices.DeleteFunc(s.toOpen, func(p *partition) bool { return p.open || p.gone || c.parts[p.tp] != p })
	s.toTrim = slices.DeleteFunc(s.toTrim, func(p *partition) bool {
		p.toTrim = len(p.trims) > 0
		return !p.toTrim
	})
	s.toEnd = slices.DeleteFunc(s.toEnd, func(tp siltstone.TopicPartition) bool {
		_, there := s.fold().Partition(tp)
		return !there
	})
}
