package shard

import (
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// Change is what an entry changed.
type Change struct {
	Kind byte
	Void string // why the entry was void, and changed nothing; empty where it was not

	Elected  bool         // a Lead of a new epoch
	Jumped   bool         // an unclean one: the next offset of every open partition has moved up
	Opened   []*Partition // by an Open
	Assigned []Assigned   // by a Segment, in its order
	Replaced []*Partition // by a Replace: their ranges are others now; each once
	Trimmed  []Trimmed    // by a Trim, in its order
}

// Assigned is one range that a Segment added.
type Assigned struct {
	Partition *Partition
	Object    segment.ObjectID
	Base      siltstone.Offset
	Offsets   int64
}

// End is the offset after the range's last.
func (a Assigned) End() siltstone.Offset { return a.Base + siltstone.Offset(a.Offsets) }

// Trimmed is one partition whose log start moved, or that is gone.
type Trimmed struct {
	Partition siltstone.TopicPartition
	Start     siltstone.Offset
	Gone      bool
}

// Apply folds one entry. A body that cannot be decoded is void: its frame
// held, so its writer is at fault. The error, for a kind that this release
// does not know, wraps siltstone.ErrNewerFormat.
//
// Each kind checks all that it says before it changes anything.
func (s *State) Apply(e ledger.Entry) (Change, error) {
	c := Change{Kind: e.Kind}
	if e.Kind < KindLead || e.Kind > KindDrop {
		return c, fmt.Errorf("entry of kind %d: %w", e.Kind, siltstone.ErrNewerFormat)
	}
	body, err := Decode(e.Kind, e.Body)
	switch b := body.(type) {
	case nil:
		c.void("%v", err)
	case *Lead:
		s.lead(b, &c)
	case *Open:
		s.applyOpen(b, &c)
	case *Segment:
		s.segment(b, &c)
	case *Replace:
		s.replace(b, &c)
	case *Trim:
		s.trim(b, &c)
	case *Drop:
		s.drop(b, e.Seq, &c)
	}
	return c, nil
}

func (c *Change) void(format string, args ...any) { c.Void = fmt.Sprintf(format, args...) }

// inOffice says whether an entry of the epoch may come from the writer.
func (s *State) inOffice(epoch siltstone.Epoch, writer siltstone.Incarnation, c *Change) bool {
	if epoch != s.epoch || s.epoch == 0 {
		c.void("epoch %d, the shard is at %d", epoch, s.epoch)
	} else if writer != s.leader && !s.Sealed() {
		c.void("by %s, the leader is %s", writer, s.leader)
	}
	return c.Void == ""
}

func (s *State) lead(l *Lead, c *Change) {
	isr := sortedISR(l.ISR)
	same := l.Epoch == s.epoch
	switch {
	case l.Epoch < s.epoch || l.Epoch == 0:
		c.void("epoch %d, the shard is at %d", l.Epoch, s.epoch)
	case same && l.Leader != s.leader:
		c.void("epoch %d is led by %s, not %s", l.Epoch, s.leader, l.Leader)
	case same && (l.Sealed() || l.Unclean):
		c.void("epoch %d goes on, and is neither sealed nor taken over", l.Epoch)
	case l.Sealed() && (len(isr) > 0 || l.Unclean):
		c.void("sealed, with an ISR or unclean")
	case !l.Sealed() && !slices.Contains(isr, l.Leader):
		c.void("leader %s is not in the ISR", l.Leader)
	case len(slices.Compact(slices.Clone(isr))) < len(isr) || slices.Contains(isr, 0):
		c.void("ISR names one twice, or nobody")
	}
	if c.Void != "" {
		return
	}
	s.epoch, s.leader, s.isr = l.Epoch, l.Leader, isr
	c.Elected, c.Jumped = !same, l.Unclean
	if l.Unclean && !s.Bug.Is(planted.ReuseOffsets) {
		for _, p := range s.partitions {
			p.Next += siltstone.UncleanJump
		}
	}
}

func (s *State) applyOpen(o *Open, c *Change) {
	if !s.inOffice(o.Epoch, o.Writer, c) {
		return
	}
	ids, numbers := map[siltstone.TopicID]bool{}, map[uint32]bool{}
	for _, t := range o.Topics {
		if !s.free(t.Topic, t.Number) || ids[t.Topic] || numbers[t.Number] {
			c.void("topic %s cannot have number %d", t.Topic, t.Number)
			return
		}
		ids[t.Topic], numbers[t.Number] = true, true
		for _, p := range t.Partitions {
			if _, open := s.partitions[partitionKey{t.Number, p}]; open {
				c.void("partition %d of topic %s is open", p, t.Topic)
				return
			}
		}
	}
	for _, t := range o.Topics {
		for _, p := range t.Partitions {
			c.Opened = append(c.Opened, s.open(siltstone.TopicPartition{Topic: t.Topic, Partition: p}, t.Number))
		}
	}
}

func (s *State) segment(e *Segment, c *Change) {
	if !s.inOffice(e.Epoch, e.Writer, c) {
		return
	}
	named := map[segment.ObjectID]bool{}
	ends := map[*Partition]partEnd{}
	parts := 0
	for i, o := range e.Objects {
		if c.Void = s.checkNew(o.ID, named, len(o.Parts)); c.Void != "" {
			return
		}
		parts += len(o.Parts)
		for _, part := range o.Parts {
			p := s.partitions[partitionKey{part.Number, part.Partition}]
			if p == nil {
				c.void("partition %d of topic number %d is not open", part.Partition, part.Number)
				return
			}
			end, ok := ends[p]
			if !ok {
				end = partEnd{epoch: p.lastEpoch(), object: -1}
			}
			if c.Void = end.take(part, i, s.epoch); c.Void != "" {
				return
			}
			ends[p] = end
		}
	}
	c.Assigned = make([]Assigned, 0, parts)
	for _, o := range e.Objects {
		for _, part := range o.Parts {
			p := s.partitions[partitionKey{part.Number, part.Partition}]
			c.Assigned = append(c.Assigned, Assigned{p, o.ID, p.Next, part.Offsets})
			p.add(part, s.objects.hold(o.ID))
		}
	}
}

// checkNew says why an object of an entry cannot be added, or notes it in named.
func (s *State) checkNew(id segment.ObjectID, named map[segment.ObjectID]bool, parts int) string {
	_, dropped := s.dropped[id]
	switch {
	case parts == 0:
		return fmt.Sprintf("object %s holds nothing", id)
	case dropped:
		return fmt.Sprintf("object %s was given up", id)
	case s.objects.live(id) || named[id]:
		return fmt.Sprintf("object %s is there already", id)
	}
	named[id] = true
	return ""
}

// partEnd is how far a Segment has gone in one partition.
type partEnd struct {
	object  int // of the entry
	offsets int64
	epoch   siltstone.Epoch
}

// take says why the partition's next range cannot follow, or goes past it.
func (end *partEnd) take(part Part, object int, epoch siltstone.Epoch) string {
	if why := checkExtent(part.Extent); why != "" {
		return why
	}
	if object == end.object {
		return "an object has two ranges of one partition"
	}
	low, left := end.epoch, part.Offsets
	for _, run := range part.Earlier {
		if run.Epoch < low || run.Epoch >= part.Epoch || run.Offsets < 1 || run.Offsets >= left {
			return fmt.Sprintf("%d offsets of epoch %d, after epoch %d", run.Offsets, run.Epoch, low)
		}
		low, left = run.Epoch+1, left-run.Offsets
	}
	if part.Epoch < low || part.Epoch > epoch {
		return fmt.Sprintf("epoch %d follows %d, in epoch %d", part.Epoch, end.epoch, epoch)
	}
	// A leader gives out no offset further than this from its folded end.
	if end.offsets += part.Offsets; end.offsets > siltstone.UncleanJump {
		return "more offsets than a leader may give out"
	}
	end.object, end.epoch = object, part.Epoch
	return ""
}

func (s *State) trim(t *Trim, c *Change) {
	seen := map[*Partition]bool{}
	for _, part := range t.Parts {
		p := s.partitions[partitionKey{part.Number, part.Partition}]
		switch {
		case p == nil:
			c.void("partition %d of topic number %d is not open", part.Partition, part.Number)
		case seen[p]:
			c.void("%s is named twice", p.TP)
		case !part.Gone && (part.Start <= p.LogStart || part.Start > p.Next):
			c.void("log start of %s from %d to %d, its end is %d", p.TP, p.LogStart, part.Start, p.Next)
		}
		if c.Void != "" {
			return
		}
		seen[p] = true
	}
	for _, part := range t.Parts {
		p := s.partitions[partitionKey{part.Number, part.Partition}]
		c.Trimmed = append(c.Trimmed, Trimmed{p.TP, part.Start, part.Gone})
		if part.Gone {
			s.close(p)
		} else {
			p.trim(part.Start)
		}
	}
}

func (s *State) drop(d *Drop, seq coordinator.Seq, c *Change) {
	named := map[segment.ObjectID]bool{}
	for _, id := range d.Objects {
		if c.Void = s.checkNew(id, named, 1); c.Void != "" {
			return
		}
	}
	for id := range named {
		s.dropped[id] = seq
	}
}
