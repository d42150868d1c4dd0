package agent

import (
	"slices"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// The leader's side of replication (docs/design.md, sections 3 and 4). It sends
// what it takes to agents in other zones, in numbered frames; what every member
// of the ISR has acknowledged is safe, and so is what is flushed.

// replication is what the leader of a shard keeps of it, while it leads.
type replication struct {
	followers []*follower
	fresh     []heldBatch // taken since the last frame
	number    uint64      // of the last frame
	frames    []frame     // that some follower has not acknowledged
	safe      uint64      // frames up to here have been looked at for the high watermark
	// changing is the ISR of a Lead that is in flight: what is safe is so under both.
	changing []siltstone.Incarnation
	// lone: the ISR is about to be this agent alone. Nothing is made safe by
	// replication any more; once what was is flushed, the Lead is appended.
	lone bool
}

// A follower is an agent that the leader replicates to, or would.
type follower struct {
	to     siltstone.Incarnation
	stream uint64    // 0: none is open
	acked  uint64    // number of the last frame that it holds, with all before it
	caught bool      // it has acknowledged what the stream began with
	joins  bool      // it is to come into the ISR: nothing becomes safe that it does not hold
	tries  int       // streams since it last had caught up
	since  time.Time // when the stream was opened, or ended, or there was none
	again  time.Time // when it may be tried again
}

// A heldBatch is one batch of a partition.
type heldBatch struct {
	p   *partition
	ref batchRef
}

// A frame is what was sent at once.
type frame struct {
	number uint64
	at     time.Time
	ends   []frameEnd
}

type frameEnd struct {
	p   *partition
	end siltstone.Offset
}

const (
	// openPieceBytes is about how much of what is not flushed a message carries
	// when a stream begins, openMostBytes how much there may be of it in all:
	// more is flushed first.
	openPieceBytes = 1 << 20
	openMostBytes  = 32 << 20
	// followAgain is how soon a replica is tried again that has failed; each time
	// twice as late, so often at most, for what it is sent may cost, and be
	// refused for want of memory.
	followAgain   = time.Second
	followDoubles = 5
)

func (r *replication) follower(to siltstone.Incarnation) *follower {
	for _, f := range r.followers {
		if f.to == to {
			return f
		}
	}
	return nil
}

// sends says whether a follower has a stream.
func (r *replication) sends() bool {
	return slices.ContainsFunc(r.followers, func(f *follower) bool { return f.stream != 0 })
}

// others are the members of an ISR but for this agent.
func (c *core) others(isr []siltstone.Incarnation) []siltstone.Incarnation {
	return slices.DeleteFunc(slices.Clone(isr), func(i siltstone.Incarnation) bool { return i == c.opts.Incarnation })
}

// wanted are the agents that are to hold a shard's records beside this one: the
// first of those who may lead it, each in a zone of its own.
func (c *core) wanted(s *ledShard) (to []siltstone.Incarnation) {
	zones := []string{c.opts.Zone}
	for _, i := range c.order(s) {
		if len(to)+1 >= c.Topics().Cluster().Replicas {
			break
		}
		if o := c.member(i); o != nil && o.up && !slices.Contains(zones, o.Zone) {
			zones, to = append(zones, o.Zone), append(to, i)
		}
	}
	return to
}

// replicate does what is due about a shard's replicas: it opens streams, sends
// what was taken, and gives up on those that are late.
func (c *core) replicate(s *ledShard) {
	r := &s.replicas
	if !s.leads() {
		return
	}
	if c.statusStale || c.linksStale {
		c.lookFollowers(s)
	}
	c.openStreams(s)
	c.sendFresh(s)
	c.lookLate(s)
	if r.lone && len(c.others(s.fold().ISR())) == 0 && r.changing == nil {
		r.lone = false
	}
}

// lookFollowers has a follower for each that is wanted, or in the ISR.
func (c *core) lookFollowers(s *ledShard) {
	r := &s.replicas
	to := c.wanted(s)
	for _, i := range slices.Concat(c.others(s.fold().ISR()), c.others(r.changing)) {
		if !slices.Contains(to, i) {
			to = append(to, i)
		}
	}
	r.followers = slices.DeleteFunc(r.followers, func(f *follower) bool { return !slices.Contains(to, f.to) })
	for _, i := range to {
		f := r.follower(i)
		if f == nil {
			r.followers = append(r.followers, &follower{to: i, since: c.now})
			continue
		}
		if o := c.member(i); f.stream != 0 && (o == nil || !o.up) {
			c.endStream(f)
		}
	}
	r.forget()
}

func (c *core) endStream(f *follower) {
	wait := followAgain << min(max(f.tries-1, 0), followDoubles)
	*f = follower{to: f.to, tries: f.tries, since: c.now, again: c.now.Add(wait)}
}

// openStreams begins to send to followers that can be reached.
func (c *core) openStreams(s *ledShard) {
	r := &s.replicas
	for _, f := range r.followers {
		if o := c.member(f.to); f.stream != 0 || o == nil || !o.up || c.now.Before(f.again) {
			continue
		}
		c.sendFresh(s) // to those that have streams: all has a number now
		c.openStream(s, f)
	}
}

// openStream sends all that is not flushed, but for what only a flush makes
// safe. It counts as held with the last frame's number.
func (c *core) openStream(s *ledShard, f *follower) {
	f.again = c.now.Add(followAgain)
	var all []peer.Batch
	total := 0
	for _, p := range s.parts {
		if c.zonesFor(p) == 0 {
			continue
		}
		for i := p.tail.from(p.flushed); i < p.tail.len(); i++ {
			b := p.tail.at(i)
			all, total = append(all, peer.Batch{Partition: p.tp, Bytes: b.bytes()}), total+int(b.size)
		}
	}
	if total > openMostBytes {
		return
	}
	c.nextStream++
	open, err := peer.Encode(&peer.Open{Shard: s.id, Epoch: s.epoch, Stream: c.nextStream, Seq: uint64(s.log.Position().Seq)})
	if err != nil {
		c.fail(err)
		return
	}
	if r := &s.replicas; r.number == 0 {
		r.number, r.safe = 1, 1 // 0 is not to be acknowledged
	}
	sent := c.opts.Peers.Send(f.to, peer.Bulk, open)
	for sent {
		n, bytes := 0, 0
		for n < len(all) && bytes < openPieceBytes {
			bytes += len(all[n].Bytes)
			n++
		}
		m := &peer.Batches{Shard: s.id, Stream: c.nextStream, Cluster: uint64(c.cluster.log.Position().Seq), Batches: all[:n]}
		last := n == len(all)
		if last {
			m.Number = s.replicas.number
		}
		sent = c.opts.Peers.Send(f.to, peer.Bulk, m.Pieces()...)
		if all = all[n:]; last {
			break
		}
	}
	if sent {
		f.tries++
		f.stream, f.since, f.caught, f.acked = c.nextStream, c.now, false, 0
	}
}

// sendFresh sends what was taken since the last frame in a frame of its own.
func (c *core) sendFresh(s *ledShard) {
	r := &s.replicas
	if len(r.fresh) == 0 {
		return
	}
	if !r.sends() {
		r.fresh = r.fresh[:0]
		return
	}
	r.number++
	fr := frame{number: r.number, at: c.now}
	m := peer.Batches{Shard: s.id, Cluster: uint64(c.cluster.log.Position().Seq), Number: r.number}
	for i := range r.fresh {
		b := &r.fresh[i]
		m.Batches = append(m.Batches, peer.Batch{Partition: b.p.tp, Bytes: b.ref.bytes()})
		if n := len(fr.ends); n > 0 && fr.ends[n-1].p == b.p {
			fr.ends[n-1].end = b.ref.end()
		} else {
			fr.ends = append(fr.ends, frameEnd{b.p, b.ref.end()})
		}
	}
	clear(r.fresh)
	r.fresh = r.fresh[:0]
	r.frames = append(r.frames, fr)
	for _, f := range r.followers {
		if f.stream == 0 {
			continue
		}
		m.Stream = f.stream
		if !c.opts.Peers.Send(f.to, peer.Bulk, m.Pieces()...) {
			c.endStream(f)
		}
	}
	if c.opts.Plant.Is(planted.AckBeforeHeld) {
		c.raiseTo(s, r.number)
	}
}

// late says whether a follower has not held for too long what it is to hold.
func (c *core) late(r *replication, f *follower) bool {
	due := c.lateAt(r, f)
	return !due.IsZero() && !c.now.Before(due)
}

// lateAt is when a follower is late unless it acknowledges something; zero: nothing is to be.
func (c *core) lateAt(r *replication, f *follower) time.Time {
	lag := time.Duration(c.Topics().Cluster().ReplicaLagMS) * time.Millisecond
	if !f.caught {
		return f.since.Add(lag)
	}
	for i := range r.frames {
		if r.frames[i].number > f.acked {
			return r.frames[i].at.Add(lag)
		}
	}
	return time.Time{}
}

// lookLate ends streams that are late. Who waits for a member of the ISR that
// has none is flushed for.
func (c *core) lookLate(s *ledShard) {
	r := &s.replicas
	for _, f := range r.followers {
		if f.stream != 0 && c.late(r, f) {
			c.opts.Log.Debug("a replica is late", "ledger", s.log.Name(), "replica", f.to)
			c.endStream(f)
			f.since = c.now.Add(-time.Hour) // it is late, however it goes on
		}
	}
	r.forget()
}

// forget drops frames that nobody is to acknowledge any more.
func (r *replication) forget() {
	least := r.safe
	for _, f := range r.followers {
		if f.stream != 0 {
			least = min(least, f.acked)
		}
	}
	n := 0
	for n < len(r.frames) && r.frames[n].number <= least {
		r.frames[n] = frame{}
		n++
	}
	r.frames = r.frames[n:]
	if !r.sends() {
		r.frames, r.safe = nil, r.number
	}
}

// heardAck notes what a follower holds, and what is safe by it.
func (c *core) heardAck(from siltstone.Incarnation, m *peer.Ack) {
	if m.Shard >= len(c.shards) {
		return
	}
	s := c.shards[m.Shard]
	f := s.replicas.follower(from)
	if !s.leads() || f == nil || f.stream != m.Stream || m.Number <= f.acked || m.Number > s.replicas.number {
		return
	}
	f.acked, f.caught, f.tries = m.Number, true, 0
	c.raiseHeld(s)
	s.replicas.forget()
}

// heardRefuse ends a stream. If the replica has seen a newer epoch, this agent
// leads no more, and reads who does.
func (c *core) heardRefuse(from siltstone.Incarnation, m *peer.Refuse) {
	if m.Shard < 0 || m.Shard >= len(c.shards) {
		return
	}
	s := c.shards[m.Shard]
	f := s.replicas.follower(from)
	if !s.leads() || f == nil || f.stream != m.Stream {
		return
	}
	c.endStream(f)
	if m.Epoch > s.epoch {
		c.depose(s)
		c.readShard(s)
	}
}

// raiseHeld moves high watermarks up to what every member of the ISR holds, by
// the ISR in office, and by that of a Lead in flight.
func (c *core) raiseHeld(s *ledShard) {
	r := &s.replicas
	isr := c.others(s.fold().ISR())
	if len(isr) == 0 || r.lone && !c.opts.Plant.Is(planted.ShrinkUnflushed) {
		r.safe = r.number
		return
	}
	if r.changing != nil {
		if len(r.changing) < 2 {
			return
		}
		if !c.opts.Plant.Is(planted.AckByOldISR) {
			isr = append(isr, c.others(r.changing)...)
		}
	}
	held := r.number
	for _, i := range isr {
		f := r.follower(i)
		if f == nil || !f.caught {
			return
		}
		held = min(held, f.acked)
	}
	for _, f := range r.followers {
		if f.joins && r.changing == nil {
			held = min(held, f.acked)
		}
	}
	c.raiseTo(s, held)
}

// raiseTo makes frames safe up to a number.
func (c *core) raiseTo(s *ledShard, held uint64) {
	r := &s.replicas
	zones := c.zones(s)
	for i := range r.frames {
		fr := &r.frames[i]
		if fr.number <= r.safe {
			continue
		}
		if fr.number > held {
			break
		}
		for _, e := range fr.ends {
			if c.replicated(e.p, zones) && !c.flushIsLate(e.p) && !e.p.gone {
				e.p.raise(c, e.end)
			}
		}
	}
	r.safe = max(r.safe, held)
}

// zones is in how many zones the ISR is; that of a Lead in flight, if it is in fewer.
func (c *core) zones(s *ledShard) int {
	count := func(isr []siltstone.Incarnation) int {
		var zones []string
		for _, i := range isr {
			zone := c.opts.Zone
			if i != c.opts.Incarnation {
				o := c.member(i)
				if o == nil {
					continue
				}
				zone = o.Zone
			}
			if !slices.Contains(zones, zone) {
				zones = append(zones, zone)
			}
		}
		return len(zones)
	}
	n := count(s.fold().ISR())
	if s.replicas.changing != nil {
		n = min(n, count(s.replicas.changing))
	}
	return n
}

// replicated says whether replication in so many zones makes a partition's records safe.
func (c *core) replicated(p *partition, zones int) bool {
	least := c.zonesFor(p)
	return least > 0 && zones >= least
}

// zonesFor is in how many zones a partition's records are to be held before
// replication makes them safe; 0: it never does, so they are not sent.
func (c *core) zonesFor(p *partition) int {
	if view := c.Topics(); p.view != view {
		p.view, p.minZones = view, 0
		if t, ok := view.TopicByID(p.tp.Topic); ok && t.Config().Durability == topic.Replicated {
			p.minZones = max(2, t.Config().MinISR)
		}
	}
	return p.minZones
}

// flushIsLate says whether a partition has batches in memory only for so long
// that no more are to be acknowledged before a flush: an unclean takeover loses
// no older ones.
func (c *core) flushIsLate(p *partition) bool {
	i := p.tail.from(p.flushed)
	if i == p.tail.len() {
		return false
	}
	late := time.Duration(c.Topics().Cluster().FlushLateMS) * time.Millisecond
	return c.sinceBegin()-p.tail.at(i).at > late
}

func (c *core) sinceBegin() time.Duration { return c.now.Sub(c.began) }

// awaitsFlush says whether records of a partition become safe by a flush only,
// as it is now.
func (c *core) awaitsFlush(p *partition) bool {
	r := &p.shard.replicas
	isr := p.shard.fold().ISR()
	return len(isr) < 2 || r.lone || r.changing != nil && len(r.changing) < 2 || !c.replicated(p, c.zones(p.shard)) || c.flushIsLate(p) ||
		slices.ContainsFunc(c.others(isr), func(i siltstone.Incarnation) bool {
			f := r.follower(i)
			return f == nil || !f.caught
		})
}

// changeISR says whether a Lead is to be appended that changes the ISR, and
// notes to what.
func (c *core) changeISR(s *ledShard) bool {
	r := &s.replicas
	isr := s.fold().ISR()
	if len(isr) == 1 && len(r.followers) == 0 {
		return false
	}
	wanted := c.wanted(s)
	joined := !slices.ContainsFunc(wanted, func(i siltstone.Incarnation) bool { return !slices.Contains(isr, i) })
	var next []siltstone.Incarnation
	for _, i := range isr {
		f := r.follower(i)
		switch {
		case i == c.opts.Incarnation, f != nil && !c.late(r, f) && (slices.Contains(wanted, i) || !joined):
			next = append(next, i)
		}
	}
	if len(next) == len(isr) {
		for _, f := range r.followers {
			if slices.Contains(next, f.to) || !slices.Contains(wanted, f.to) {
				continue
			}
			// It may always be a little behind what the others hold: they wait for it.
			f.joins = f.caught && !c.late(r, f)
			if f.joins && f.acked >= r.safe || f.stream != 0 && c.opts.Plant.Is(planted.JoinWithGap) {
				next = append(next, f.to)
			}
		}
		r.lone = false
	}
	slices.Sort(next)
	if slices.Equal(next, isr) {
		return false
	}
	if len(next) == 1 && len(isr) > 1 {
		r.lone = true
		if slices.ContainsFunc(s.parts, func(p *partition) bool { return p.uncut > 0 }) {
			c.somebodyWaits() // for replicas that are not to be waited for
		}
		if slices.ContainsFunc(s.parts, func(p *partition) bool { return p.hw > p.flushed }) && !c.opts.Plant.Is(planted.ShrinkUnflushed) {
			return false // what replication made safe is flushed first
		}
	}
	r.changing = next
	return true
}

// replicasDue is when replicate has something to do with no event; zero if never.
func (c *core) replicasDue(s *ledShard) (due time.Time) {
	if !s.leads() {
		return due
	}
	r := &s.replicas
	sooner := func(t time.Time) {
		if t.After(c.now) && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	isr := s.fold().ISR()
	for _, f := range r.followers {
		if o := c.member(f.to); f.stream == 0 && o != nil && o.up {
			sooner(f.again)
		}
		if f.stream != 0 || slices.Contains(isr, f.to) {
			sooner(c.lateAt(r, f))
		}
	}
	return due
}

// pushEntries tells the followers what has been settled, in its place among the batches.
func (c *core) pushEntries(s *ledShard, entries []coordinator.Entry) {
	if !s.leads() || len(entries) == 0 {
		return
	}
	c.sendFresh(s)
	var b []byte
	for _, f := range s.replicas.followers {
		if f.stream == 0 {
			continue
		}
		if b == nil {
			var err error
			if b, err = peer.Encode(entriesOf(s.log.Name(), entries)); err != nil {
				c.fail(err)
				return
			}
		}
		if !c.opts.Peers.Send(f.to, peer.Bulk, b) {
			c.endStream(f)
		}
	}
}
