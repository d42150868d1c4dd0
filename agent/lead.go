package agent

import (
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// begin starts with the topics; the shards follow once they are known.
func (c *core) begin() {
	c.loadCluster()
}

// resume goes on after the ledger was trimmed past what this agent had folded.
// It leads in the epoch in which it stamped its records: those below the
// fold's next offsets are committed, the rest is cut and uploaded again, under
// new names.
func (c *core) resume(s *ledShard) {
	s.forgetGone()
	for _, o := range s.objects {
		for _, part := range o.partsOf(s) {
			if known, ok := s.fold().Partition(part.p.tp); ok && part.end() <= known.Next {
				c.commit(&part)
			} else {
				c.recut(part.p, len(part.batches))
			}
		}
	}
	s.objects = nil
	s.toOpen, s.toEnd = nil, nil
	s.replicas.changing = nil
	for _, p := range s.parts { // some may have come meanwhile
		if known, ok := s.fold().Partition(p.tp); !ok {
			s.toOpen = append(s.toOpen, p)
		} else if !p.open {
			c.opened(known)
		} else {
			p.startAt(c, known.LogStart)
		}
	}
	c.endUnknown(s)
}

// recut puts a partition's next n batches that were in an object back among those in none.
func (c *core) recut(p *partition, n int) {
	for i := range n {
		c.uncutBytes += int(p.tail.at(p.tail.len() - p.uncut - 1 - i).size)
	}
	p.uncut += n
	if !p.dirty {
		p.dirty = true
		c.dirty = append(c.dirty, p)
	}
	c.oldestUncut, c.waitingFrom = c.now, c.now
}

// depose gives up the objects that this agent stamped in a shard and has not
// committed, and takes the partitions as the fold has them. As a member of the
// ISR, it keeps what is not flushed.
func (c *core) depose(s *ledShard) {
	c.setState(s, standing)
	s.objects, s.inFlight, s.epoch = nil, nil, 0
	s.toOpen, s.toEnd = nil, nil
	s.replicas = replication{}
	if f := s.follows; f != nil && f.open.Epoch < s.fold().Epoch() && !c.opts.Plant.Is(planted.NoEpochCheck) {
		c.endFollow(s)
	}
	keep := c.keepsTails(s) || s.follows != nil && s.follows.adopted
	if keep {
		s.heard = c.now
	}
	for _, p := range s.parts {
		p.refuse(c, siltstone.ErrNotLeader)
		c.uncutNone(p)
		known, ok := s.fold().Partition(p.tp)
		if p.open = ok; ok {
			c.trimTail(p, known, keep)
		} else {
			c.dropUnflushed(p)
		}
	}
}

// electSelf proposes to lead, in the next epoch, once it knows all producers.
func (c *core) electSelf(s *ledShard) shard.Body {
	if !c.mayTake(s) {
		return nil
	}
	if s.rowless {
		c.readShard(s)
		return nil
	}
	s.seated.proposed = c.now
	self := []siltstone.Incarnation{c.opts.Incarnation}
	lead := &shard.Lead{Epoch: s.fold().Epoch() + 1, Leader: c.opts.Incarnation, ISR: self}
	switch isr := s.fold().ISR(); {
	case len(isr) <= 1: // all that was acknowledged is flushed
	case slices.Contains(isr, c.opts.Incarnation):
		if lead.ISR = slices.Clone(isr); c.opts.Plant.Is(planted.TakeOverAlone) {
			lead.ISR = self
		}
	case c.opts.Plant.Is(planted.LeadWithoutTail):
	default:
		lead.Unclean = true
	}
	return lead
}

// foldedLead begins or ends leading.
func (c *core) foldedLead(s *ledShard, ch *ledger.Change[shard.Change]) {
	fold := s.fold()
	s.seated.known = c.now
	if ch.Mine && ch.Effect.Jumped {
		c.metrics.unclean.Inc()
		c.opts.Log.Error("all agents that held what is not flushed are gone; it is given up", "ledger", s.log.Name(), "epoch", fold.Epoch())
	}
	switch {
	case fold.Sealed() && ch.Mine:
		c.setState(s, sealed)
		c.failParts(s)
	case fold.Leader() != c.opts.Incarnation && !ch.Effect.Elected && s.state == standing:
		// The ISR of who leads has changed.
	case fold.Leader() != c.opts.Incarnation, !c.members.on:
		c.depose(s)
		c.handed(s)
	case ch.Effect.Elected && c.elected(s, ch.Mine) && len(fold.ISR()) > 1:
		c.recover(s)
	case ch.Effect.Elected && c.elected(s, ch.Mine):
		c.serve(s)
	case ch.Effect.Elected: // it was handed over, and is read first; or it comes late
		c.depose(s)
	}
}

// serve opens the shard to clients, in an epoch that is its own.
func (c *core) serve(s *ledShard) {
	c.setState(s, serving)
	s.epoch = s.fold().Epoch()
	s.seated = s.seated.anew()
	s.seated.served = s.epoch
	s.replicas, s.follows, s.tailEpoch = replication{}, nil, s.epoch
	c.opts.Log.Debug("leads", "ledger", s.log.Name(), "epoch", s.epoch)
	s.toOpen, s.toEnd = nil, nil // of an earlier epoch
	for _, p := range s.parts {
		known, ok := s.fold().Partition(p.tp)
		if !ok {
			s.toOpen = append(s.toOpen, p)
			continue
		}
		c.opened(known)
		p.began = p.next
	}
	c.endUnknown(s)
}

// endUnknown ends the partitions of topics that are deleted, as far as this
// agent knows for certain: where it shares the coordinator, another may have
// made the topics, and opened them here, after this one has read which there are.
func (c *core) endUnknown(s *ledShard) {
	if c.members.alone {
		c.endDeleted(s)
		return
	}
	for known := range s.fold().Partitions() {
		if c.parts[known.TP] == nil {
			s.unknown = true
			c.loadCluster()
			return
		}
	}
}

// endDeleted ends the partitions whose topics are deleted. The cluster's
// ledger was read to its end before the shard's was, and a partition is opened
// only by who has folded its topic: a topic that is not known is deleted.
func (c *core) endDeleted(s *ledShard) {
	for known := range s.fold().Partitions() {
		if c.parts[known.TP] == nil {
			s.toEnd = append(s.toEnd, known.TP)
		}
	}
}

func (c *core) failParts(s *ledShard) {
	for _, p := range s.parts {
		p.fail(c, siltstone.ErrNotLeader)
	}
}

// drain stops taking records; what is buffered is flushed, then the shards are sealed.
func (c *core) drain() {
	c.draining, c.statusStale = true, true
	c.drainUntil = c.now.Add(max(c.opts.DrainTime, 0))
}

// unwritten is how many bytes of records are in no object that is committed.
func (c *core) unwritten() (bytes int) {
	counted := map[*object]bool{}
	for _, s := range c.shards {
		for _, o := range s.objects {
			if !counted[o] {
				counted[o] = true
				bytes += o.bytes
			}
		}
	}
	return bytes + c.uncutBytes
}

// drained says whether there is nothing left to do, or no time.
func (c *core) drained() bool {
	if !c.now.Before(c.drainUntil) {
		return true
	}
	if c.members.asking {
		return false // what it holds is not known
	}
	for _, s := range c.shards {
		if s.inOffice() || s.log.Busy() || s.unstored.checkpointing {
			return false
		}
	}
	for _, s := range c.groups {
		if s.leads() || s.log.Busy() || s.unstored.checkpointing {
			return false
		}
	}
	return c.uncutBytes == 0 && c.uploading == 0
}
