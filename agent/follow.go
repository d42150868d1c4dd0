package agent

import (
	"slices"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// A replica's side of replication: it keeps what a leader has not flushed, and
// acknowledges it. A tail that it holds as a member of an ISR it lets go of for
// three reasons only: what is flushed, as it folds; a leader of a newer epoch,
// which has flushed what mattered of it, begins to send; an unclean Lead.

// following is the stream that a shard's replica takes.
type following struct {
	from    siltstone.Incarnation
	open    *peer.Open
	adopted bool // its epoch is in office here too, and older tails are gone
	pending []peer.Message
	bytes   int // of pending
	ack     uint64
}

// heardOpen begins a stream. What is in office is for the ledger to say: it is
// read if this agent is behind.
func (c *core) heardOpen(from siltstone.Incarnation, m *peer.Open) {
	if m.Shard < 0 || m.Shard >= len(c.shards) {
		return
	}
	s := c.shards[m.Shard]
	s.follows, s.heard = &following{from: from, open: m}, c.now
	c.follow(s)
}

// heardBatches takes, or keeps for later, what a stream carries.
func (c *core) heardBatches(from siltstone.Incarnation, m *peer.Batches) {
	if m.Shard >= len(c.shards) {
		return
	}
	s := c.shards[m.Shard]
	f := s.follows
	if f == nil || f.from != from || f.open.Stream != m.Stream {
		return
	}
	for i := range m.Batches {
		f.bytes += len(m.Batches[i].Bytes)
	}
	f.pending, s.heard = append(f.pending, m), c.now
	if c.follow(s); s.follows == f && c.pendingBytes() > c.opts.Memory.Unflushed/2 {
		c.endFollow(s)
	}
}

// pendingBytes is what waits until a ledger has been read: it stands in no other bound.
func (c *core) pendingBytes() (bytes int) {
	for _, s := range c.shards {
		if s.follows != nil {
			bytes += s.follows.bytes
		}
	}
	return bytes
}

// heardShardEntries takes settled entries, in their place in the stream.
func (c *core) heardShardEntries(from siltstone.Incarnation, m *peer.Entries) {
	for _, s := range c.shards {
		if f := s.follows; s.log.Name() == m.Ledger && f != nil && f.from == from {
			f.pending, s.heard = append(f.pending, m), c.now
			c.follow(s)
		}
	}
}

// follow goes on with a stream as far as it can be.
func (c *core) follow(s *ledShard) {
	f := s.follows
	if f == nil || s.log.Busy() || s.state == loading {
		return
	}
	if !c.adopt(s) {
		return
	}
	for s.follows == f && len(f.pending) > 0 && s.state == standing {
		switch m := f.pending[0].(type) {
		case *peer.Entries:
			f.pending = f.pending[1:]
			c.foldPushed(s, m)
		case *peer.Batches:
			if c.cluster.ready && coordinator.Seq(m.Cluster) > c.cluster.log.Position().Seq {
				c.catchUpCluster()
			}
			if !c.cluster.ready || coordinator.Seq(m.Cluster) > c.cluster.log.Position().Seq {
				return // of topics that are not known here
			}
			f.pending = f.pending[1:]
			c.hold(s, m)
		}
	}
	if s.follows == f && f.ack > 0 {
		c.tell(f.from, &peer.Ack{Shard: s.id, Stream: f.open.Stream, Number: f.ack})
		f.ack = 0
	}
}

// lookHeld reads a shard of which this agent holds what is not flushed, and has
// heard nothing for as long as a leader may take to flush it: it is no longer
// one of those who are told.
func (c *core) lookHeld(s *ledShard) {
	if due := c.heldDue(s); due.IsZero() || due.After(c.now) {
		return
	}
	if s.heard = (time.Time{}); s.unflushed() {
		s.heard = c.now
		c.readShard(s)
	}
}

// heldDue is when lookHeld has something to do; zero if never.
func (c *core) heldDue(s *ledShard) time.Time {
	if s.state != standing || s.heard.IsZero() {
		return time.Time{}
	}
	return s.heard.Add(time.Duration(c.Topics().Cluster().FlushLateMS) * time.Millisecond)
}

// adopt says whether the stream's epoch is in office here; it then has no tails of older ones.
func (c *core) adopt(s *ledShard) bool {
	f := s.follows
	if f.adopted {
		return true
	}
	switch fold := s.fold(); {
	case s.state != absent && fold.Epoch() > f.open.Epoch && !c.opts.Plant.Is(planted.NoEpochCheck):
		c.endFollow(s)
	case s.inOffice():
		// Another leads in a newer epoch: this agent has not heard of it.
		c.depose(s)
		c.readShard(s)
	case s.state == sealed:
		c.endFollow(s)
	case s.state == absent || s.log.Position().Seq < coordinator.Seq(f.open.Seq):
		c.readShard(s)
	case fold.Epoch() == f.open.Epoch && fold.Leader() == f.from || c.opts.Plant.Is(planted.NoEpochCheck):
		f.adopted = true
		if s.tailEpoch != f.open.Epoch {
			for _, p := range s.parts {
				c.dropUnflushed(p)
			}
			s.tailEpoch = f.open.Epoch
		}
	default:
		c.endFollow(s)
	}
	return f.adopted
}

// endFollow refuses the rest of a stream.
func (c *core) endFollow(s *ledShard) {
	f := s.follows
	c.tell(f.from, &peer.Refuse{Shard: s.id, Stream: f.open.Stream, Epoch: s.fold().Epoch()})
	s.follows = nil
}

// foldPushed folds entries that the leader has settled.
func (c *core) foldPushed(s *ledShard, m *peer.Entries) {
	if len(m.Entries) == 0 {
		return
	}
	if coordinator.Seq(m.Entries[0].Seq) > s.log.Position().Seq+1 {
		c.endFollow(s)
		return
	}
	changes, err := s.log.Settle(outcomeOf(m))
	for i := range changes {
		c.folded(s, &changes[i], 0)
	}
	if err != nil {
		c.fail(err)
	}
}

// hold keeps batches, and has them acknowledged.
func (c *core) hold(s *ledShard, m *peer.Batches) {
	for i := range m.Batches {
		s.follows.bytes -= len(m.Batches[i].Bytes)
		p := c.parts[m.Batches[i].Partition]
		if p == nil || p.gone {
			continue // it is deleted
		}
		if p.shard != s || !p.open || !c.holdBatch(p, m.Batches[i].Bytes) {
			c.endFollow(s)
			return
		}
	}
	if m.Number > 0 {
		s.follows.ack = m.Number
	}
}

// holdBatch keeps a batch that continues its partition's tail. It says whether
// the tail has it, or the log.
func (c *core) holdBatch(p *partition, b []byte) bool {
	h, err := batch.ParseHeader(b)
	if err != nil || h.SizeBytes() != len(b) {
		return false
	}
	end := h.BaseOffset + siltstone.Offset(h.LastOffsetDelta) + 1
	switch {
	case end <= p.next:
		return true
	case h.BaseOffset != p.next, !c.memory.TryAcquire(int64(len(b))):
		return false
	}
	if n := p.tail.len(); n > 0 && p.tail.at(n-1).end() != p.next {
		p.tail = tail{} // of flushed ones, with a hole behind them
	}
	in, pos := c.slabs.put(p, b)
	p.tail.push(batchRef{
		slab: in, pos: pos, size: uint32(len(b)), at: c.sinceBegin(),
		base: h.BaseOffset, offsets: h.LastOffsetDelta + 1, epoch: h.Epoch, maxTimestamp: h.MaxTimestamp,
	})
	p.next = end
	return true
}

// learnProducers gives the fold the producers of what another has flushed, from
// the tail. It says whether that has them.
func (c *core) learnProducers(p *partition, r shard.Assigned, timeMS int64) bool {
	from := p.tail.from(r.Base)
	to := p.tail.from(r.End())
	covered := r.Base >= p.flushed && from < to && p.tail.at(from).base == r.Base && p.tail.at(to-1).end() == r.End() &&
		p.tail.at(to-1).epoch == r.Partition.EpochAt(r.End()-1)
	if covered {
		if err := r.Partition.AddRows(r, timeMS, c.rowsOf(p, r.Base, p.tail.refs[p.tail.head+from:p.tail.head+to])); err != nil {
			c.fail(err)
		}
	}
	return covered
}

// trimTail takes a partition's bounds from the fold. What is flushed by now is
// no longer unflushed, and what parted from it is let go of; so is the rest if it
// is not to be kept. A tail that another has written after is not one any more:
// it would have a hole.
func (c *core) trimTail(p *partition, known *shard.Partition, keep bool) {
	next := known.Next
	if next > p.flushed {
		i := p.tail.from(next - 1)
		if i < p.tail.len() && p.tail.at(i).base < next && (p.tail.at(i).end() > next || p.tail.at(i).epoch != known.EpochAt(next-1)) ||
			i == p.tail.len() {
			keep = false
		}
	}
	if !keep {
		c.dropUnflushed(p)
	}
	for i := p.tail.from(p.flushed); i < p.tail.len() && p.tail.at(i).end() <= next; i++ {
		c.flushed(p.tail.at(i))
	}
	p.start, p.flushed, p.hw = known.LogStart, next, next
	if p.next = next; p.tail.len() > 0 {
		p.next = p.tail.at(p.tail.len() - 1).end()
	}
	if p.next < next {
		p.tail, p.next = tail{}, next
	}
}

// keepsTails says whether this agent is to keep what is not flushed of a shard
// that it does not lead: another member of the ISR may not have it.
func (c *core) keepsTails(s *ledShard) bool {
	isr := s.fold().ISR()
	return len(isr) > 1 && slices.Contains(isr, c.opts.Incarnation)
}

// recover begins a clean takeover from an ISR of two or more: what this agent
// holds is flushed first, and only then the epoch is opened, to replicas and clients.
func (c *core) recover(s *ledShard) {
	c.setState(s, recovering)
	s.epoch = s.fold().Epoch()
	s.follows = nil
	for _, p := range s.parts {
		known, ok := s.fold().Partition(p.tp)
		if !ok {
			continue
		}
		c.trimTail(p, known, !c.opts.Plant.Is(planted.DropBeforeAppend))
		p.live = nil
		n := p.tail.len() - p.tail.from(p.flushed)
		for i := p.tail.len() - n; i < p.tail.len(); i++ {
			c.adoptProducer(p, p.tail.at(i))
		}
		if n > 0 {
			c.recut(p, n)
		}
	}
	c.opts.Log.Info("takes over, and flushes what it holds", "ledger", s.log.Name(), "epoch", s.epoch)
}

// adoptProducer notes the producer of a batch that this agent held as a replica.
func (c *core) adoptProducer(p *partition, ref *batchRef) {
	b := ref.bytes()
	if batch.ProducerID(b) < 0 {
		return
	}
	h, _ := batch.ParseHeader(b) // it was parsed when it came
	c.noteProducer(p, h, ref.base)
}
