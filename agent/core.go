package agent

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// An event is what the loop handles: a request, or what a worker reports.
type event interface{ handle(c *core) }

// core is all that the loop owns. Its methods run on the loop only, never
// block, and leave I/O to workers that report back with events.
type core struct {
	*Agent
	now   time.Time // of the events being handled
	given time.Time // the same, by the clock of those who give deadlines

	members   membership
	seatsNext time.Time    // when lookSeats has something to do, whatever happens
	said      *peer.Status // to the others, last
	cluster   clusterLedger
	began     time.Time
	shards    [shard.Count]*ledShard
	groups    [group.Count]*groupShard
	parts     map[siltstone.TopicPartition]*partition

	queue       []*appendOp // wait for memory, oldest first
	slabs       slabs
	withheld    int          // bytes of flushed batches that are not given back
	dirty       []*partition // have batches in no object, oldest first
	uncutBytes  int
	oldestUncut time.Time // when the oldest such batch came
	waitingFrom time.Time // since when somebody waits for one; zero: nobody
	uploading   int
	nextObject  uint64

	loads       loads
	producerIDs producerIDs
	refused     refusals
	rows        []segment.Row // memory of rowsOf

	nextStream uint64 // of replication

	fetches   uint64 // so many have come
	plans     uint64 // and were planned
	deadlines deadlines
	draining  bool
	hears     bool // clients have been let in

	statusStale bool
	linksStale  bool  // others can be reached, or not, since replicate has looked
	failed      error // what the loop ends with
}

func newCore(a *Agent) *core {
	c := &core{
		Agent: a,
		parts: map[siltstone.TopicPartition]*partition{},
		slabs: slabs{limit: a.opts.Memory.Tail},
	}
	c.look()
	c.said, c.began = &peer.Status{}, c.now
	if a.opts.Alone {
		c.members = membership{alone: true, on: true, node: 1}
		c.replan()
	}
	c.cluster.log = ledger.New(topic.Ledger, topic.New())
	for i := range c.shards {
		c.shards[i] = newLedShard(i)
		c.shards[i].log.Bug = a.opts.Plant
	}
	for i := range c.groups {
		c.groups[i] = newGroupShard(i)
	}
	return c
}

// loop handles events until ctx ends and what it drains is drained, or it fails.
func (c *core) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopping := ctx.Done()
	c.begin()
	c.talk()
	for {
		c.turn()
		if c.failed != nil || c.draining && c.drained() {
			return c.failed
		}
		timer.Reset(c.untilDue())
		select {
		case e := <-c.inbox:
			c.look()
			c.lookMembers()
			e.handle(c)
			c.handleQueued()
		case <-timer.C:
			c.look()
		case <-stopping:
			c.look()
			stopping = nil
			c.drain()
		}
	}
}

// handleQueued takes what else is there, so that a flush, a pump and the
// timer are looked at once for many events.
func (c *core) handleQueued() {
	for range cap(c.inbox) {
		select {
		case e := <-c.inbox:
			e.handle(c)
		default:
			return
		}
	}
}

// turn does what the state asks for after some events, or as time passed.
func (c *core) turn() {
	c.lookMembers()
	c.deadlines.expireUntil(c.given, c)
	c.lookCluster()
	c.lookSeats()
	c.flush()
	c.loadIndexes()
	c.pumpCluster()
	if c.cluster.ready {
		c.checkpointIfDue(&c.cluster.unstored, c.cluster.log.Name(), c.cluster.log.Checkpoint)
	}
	for _, s := range c.shards {
		c.follow(s)
		c.lookHeld(s)
		if s.state == recovering && !s.unflushed() {
			c.serve(s)
		}
		c.pump(s)
		if s.leads() {
			c.checkpointIfDue(&s.unstored, s.log.Name(), func() ledger.EncodedCheckpoint { return c.encodeShard(s) })
		}
	}
	for _, s := range c.groups {
		c.turnGroups(s)
		if s.leads() {
			c.checkpointIfDue(&s.unstored, s.log.Name(), s.log.Checkpoint)
		}
	}
	c.slabs.evict()
	c.releaseFlushed()
	c.admit()
	for _, s := range c.shards {
		c.replicate(s)
	}
	c.linksStale = false
	c.countShortISR()
	c.answerChanges()
	c.publish()
}

// untilDue is how long until something is due with no event.
func (c *core) untilDue() time.Duration {
	due := c.now.Add(time.Hour)
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	if len(c.deadlines) > 0 {
		sooner(c.now.Add(c.deadlines[0].deadline().Sub(c.given)))
	}
	sooner(c.flushDue())
	sooner(c.membersDue())
	sooner(c.seatsNext)
	sooner(c.clusterDue())
	for _, s := range c.shards {
		sooner(c.replicasDue(s))
		sooner(c.heldDue(s))
		if s.leads() {
			sooner(c.checkpointDue(&s.unstored))
		}
	}
	for _, s := range c.groups {
		sooner(c.groupsDue(s))
		if s.leads() {
			sooner(c.checkpointDue(&s.unstored))
		}
	}
	if c.cluster.ready {
		sooner(c.checkpointDue(&c.cluster.unstored))
	}
	if c.draining {
		sooner(c.drainUntil)
	}
	wait := due.Sub(c.now)
	if c.opts.Phase > 0 {
		now := time.Now()
		wait = now.Add(wait).Truncate(time.Microsecond).Add(time.Microsecond + c.opts.Phase).Sub(now)
	}
	return wait
}

// work runs f beside the loop; the event that it returns, if any, is handled.
// The workers' context ends with the loop.
func (c *core) work(f func(ctx context.Context) event) {
	c.workers.Go(func() {
		if e := f(c.workCtx); e != nil {
			_ = c.post(c.workCtx, e)
		}
	})
}

// look looks at the clocks.
func (c *core) look() { c.now, c.given = c.opts.Now(), time.Now() }

// wallMS is what time it is, in Unix milliseconds: never to be compared with what
// another machine, or this one a while ago, took it for, where safety depends on it.
func (c *core) wallMS() int64 { return c.opts.Wall().UnixMilli() }

// nonce draws a nonce for an append.
func (c *core) nonce() (n coordinator.Nonce) {
	binary.BigEndian.PutUint64(n[:], c.opts.Rand())
	binary.BigEndian.PutUint64(n[8:], c.opts.Rand())
	return n
}

// release gives back memory that was asked for and not used.
func (c *core) release(bytes int) { c.memory.Release(int64(bytes)) }

// flushed is for a batch that is flushed or given up. Its memory is given back
// by releaseFlushed, once slabs have gone.
func (c *core) flushed(b *batchRef) {
	c.slabs.done(b)
	c.withheld += int(b.size)
}

// releaseFlushed gives back the memory of flushed batches, but for as much as
// slabs take beyond their bounds: where one shard cannot commit, its batches
// keep the slabs that they share with all others.
func (c *core) releaseFlushed() {
	if free := c.withheld - c.slabs.waste(); free > 0 {
		c.withheld -= free
		c.release(free)
	}
}

// leading finds the partition, if this agent leads it and takes records for it.
func (c *core) leading(tp siltstone.TopicPartition) (*partition, error) {
	p := c.parts[tp]
	switch {
	case p == nil:
		return nil, siltstone.ErrUnknownPartition
	case !p.open || !p.shard.leads() || !c.members.on || c.draining || p.shard.seated.heir != 0:
		return nil, siltstone.ErrNotLeader
	}
	return p, nil
}

// abandon answers all who still wait when the loop has ended.
func (c *core) abandon() {
	for _, s := range c.shards {
		for _, p := range s.parts {
			p.fail(c, errStopped)
		}
	}
	for _, s := range c.groups {
		c.stopMachine(s)
	}
	c.release(c.withheld)
	c.abandonQueued()
}

// fail ends the loop: going on could damage what is stored.
func (c *core) fail(err error) {
	if c.failed == nil {
		c.failed = err
	}
}
