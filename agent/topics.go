package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// clusterLedger is the cluster's ledger, and who waits to append to it.
type clusterLedger struct {
	log     *ledger.Log[*topic.State, topic.Change]
	ready   bool
	from    time.Time   // when the reading began that it is of
	reading int         // number of the newest reading
	again   bool        // it is to be read once the proposal in flight is settled
	changes []*changeOp // the first is in flight if the log is busy; maxChanges at most
	opening []*changeOp // are folded; what they made is not open everywhere
	read    time.Time   // when it was read last
	reads   bool        // it is being read on

	unstored unstored
}

// maxChanges is how many changes may wait for the cluster's ledger.
const maxChanges = 1000

// Change appends what decide makes of the newest view to the cluster's ledger.
// Each time that the ledger turns out to have moved on, decide is called
// again; it must not block. An empty body appends nothing. Change returns once
// the entry is folded here, and the partitions that it made are open. Where ctx
// ends first, an entry that is on its way may still land; none is sent later.
func (a *Agent) Change(ctx context.Context, decide func(*topic.View) topic.Decision) error {
	op := &changeOp{done: make(chan struct{})}
	op.decide.Store(&decide)
	if err := a.post(ctx, op); err != nil {
		return err
	}
	if err := a.wait(ctx, op.done); err != nil {
		op.decide.Store(nil)
		return err
	}
	return op.err
}

// A changeOp is a change that is not answered.
type changeOp struct {
	decide  atomic.Pointer[func(*topic.View) topic.Decision] // nil: nobody waits for it
	opening int                                              // partitions that it made and that are not open yet
	seq     coordinator.Seq                                  // of its entry
	done    chan struct{}
	err     error
}

func (op *changeOp) handle(c *core) {
	l := &c.cluster
	if !c.members.on {
		op.refuse()
		return
	}
	if len(l.changes) >= maxChanges {
		var first *changeOp
		if l.log.Busy() {
			first = l.changes[0]
		}
		l.changes = slices.DeleteFunc(l.changes, func(o *changeOp) bool { return o != first && o.decide.Load() == nil })
	}
	if len(l.changes) >= maxChanges {
		op.err = fmt.Errorf("%w: %d changes wait for the ledger %s", siltstone.ErrUnavailable, len(l.changes), topic.Ledger)
		close(op.done)
		return
	}
	l.changes = append(l.changes, op)
}

// refuse is for an agent that is not sure of being a member.
func (op *changeOp) refuse() {
	op.err = fmt.Errorf("%w: %s", siltstone.ErrUnavailable, notConfirmed)
	close(op.done)
}

// refuseChanges refuses those that are not in flight, and answers those whose
// partitions this agent will not open.
func (c *core) refuseChanges() {
	l := &c.cluster
	first := 0
	if l.log.Busy() {
		first = 1
	}
	for _, op := range l.changes[min(first, len(l.changes)):] {
		op.refuse()
	}
	l.changes = l.changes[:min(first, len(l.changes))]
	for _, s := range c.shards {
		for _, p := range s.parts {
			p.answerOpeners()
		}
	}
}

func (op *changeOp) opened() {
	op.opening--
}

// answerChanges answers the changes whose partitions are open, here and, as far
// as those can be asked, at the other agents.
func (c *core) answerChanges() {
	l := &c.cluster
	l.opening = slices.DeleteFunc(l.opening, func(op *changeOp) bool {
		open := op.opening == 0 && !slices.ContainsFunc(c.members.others, func(o *member) bool {
			return o.up && o.status != nil && coordinator.Seq(o.status.Opened) < op.seq
		})
		if open {
			close(op.done)
		}
		return open || op.decide.Load() == nil
	})
}

// openedElsewhere is for a shard that another agent leads: who waits until its
// partitions are open is answered by what that one says.
func (c *core) openedElsewhere(s *ledShard) {
	if len(c.cluster.opening) == 0 {
		return
	}
	for _, p := range s.parts {
		p.answerOpeners()
	}
}

// loadCluster reads the cluster's ledger, and lets nothing be appended to it
// meanwhile. Of several readings the last that began counts.
func (c *core) loadCluster() {
	l := &c.cluster
	l.ready, c.statusStale = false, true
	l.reading++
	if l.again = l.log.Busy(); l.again {
		return
	}
	from, number := c.now, l.reading
	c.work(func(ctx context.Context) event {
		got, err := loadFold(ctx, c.Agent, topic.Ledger, topic.New)
		return &clusterLoaded{number: number, from: from, got: got, err: err}
	})
}

type clusterLoaded struct {
	number int
	from   time.Time
	got    ledger.Loaded[*topic.State, topic.Change]
	err    error
}

func (e *clusterLoaded) handle(c *core) {
	if e.err != nil {
		if c.workCtx.Err() == nil {
			c.fail(fmt.Errorf("load %s: %w", topic.Ledger, e.err))
		}
		return
	}
	if e.number != c.cluster.reading {
		return
	}
	c.cluster.log.Replace(e.got.Fold, e.got.At)
	c.cluster.unstored.restart(e.got.At, e.got.Checkpoint, c.now)
	c.cluster.ready, c.cluster.from, c.cluster.read, c.statusStale = true, e.from, e.from, true
	c.topics.Store(c.cluster.log.Fold().View())
	for _, t := range c.Topics().All() {
		c.addPartitions(t, nil)
	}
	c.removeDeleted()
	c.topicsDeleted()
	for _, s := range c.shards {
		if s.leads() && s.unknown {
			s.unknown = false
			c.endDeleted(s)
		}
	}
}

// pumpCluster proposes the next change, if the ledger's slot is free.
func (c *core) pumpCluster() {
	l := &c.cluster
	for l.ready && !l.log.Busy() && len(l.changes) > 0 {
		op := l.changes[0]
		var d topic.Decision
		if decide := op.decide.Load(); decide != nil {
			d = (*decide)(l.log.Fold().View())
		}
		if len(d.Body) == 0 {
			l.changes = l.changes[1:]
			close(op.done)
			continue
		}
		p, err := l.log.Propose(d.Kind, d.Body, c.wallMS(), c.nonce())
		if err != nil {
			l.changes = l.changes[1:]
			op.err = err
			close(op.done)
			continue
		}
		c.work(func(ctx context.Context) event {
			out, err := c.append(ctx, clusterKind, p)
			return &clusterSettled{out: out, err: err}
		})
		return
	}
}

type clusterSettled struct {
	out ledger.Outcome
	err error
}

func (e *clusterSettled) handle(c *core) {
	if e.err != nil {
		if c.workCtx.Err() == nil {
			c.fail(fmt.Errorf("append to %s: %w", topic.Ledger, e.err))
		}
		return
	}
	if c.cluster.again {
		defer c.loadCluster()
	}
	if c.settleCluster(e.out) {
		c.pushCluster(e.out.Entries)
	}
}

// settleCluster folds entries of the cluster's ledger. It says whether this
// agent's own was among them.
func (c *core) settleCluster(out ledger.Outcome) (mine bool) {
	changes, err := c.cluster.log.Settle(out)
	for i := range changes {
		c.cluster.unstored.add(1, c.now)
		var by *changeOp
		if changes[i].Mine {
			by, mine = c.cluster.changes[0], true
			by.seq = changes[i].Entry.Seq
			c.cluster.changes = c.cluster.changes[1:]
		}
		c.foldedTopics(&changes[i].Effect, by)
	}
	c.statusStale = c.statusStale || len(changes) > 0
	switch {
	case errors.Is(err, ledger.ErrTrimmed):
		c.loadCluster()
	case err != nil:
		c.fail(err)
	}
	return mine
}

// catchUpCluster reads on in the cluster's ledger: others have appended to it.
func (c *core) catchUpCluster() {
	l := &c.cluster
	if l.reads || !l.ready {
		return
	}
	l.reads, l.read = true, c.now
	after := l.log.Position().Seq
	c.work(func(ctx context.Context) event {
		out, err := c.ledgers.Read(ctx, topic.Ledger, after, coordinator.MaxReadEntries)
		return &clusterRead{out, err}
	})
}

type clusterRead struct {
	out ledger.Outcome
	err error
}

func (e *clusterRead) handle(c *core) {
	c.cluster.reads = false
	switch {
	case errors.Is(e.err, siltstone.ErrCorrupt):
		c.fail(e.err)
	case e.err == nil && c.cluster.ready:
		c.settleCluster(e.out)
	}
}

// lookBehind reads on in the cluster's ledger now and then: what another agent
// has said of it may be lost.
const lookBehind = time.Minute

// lookCluster does so where there are others.
func (c *core) lookCluster() {
	if due := c.clusterDue(); !due.IsZero() && !due.After(c.now) {
		c.catchUpCluster()
	}
}

// clusterDue is when lookCluster has something to do; zero if never.
func (c *core) clusterDue() time.Time {
	if l := &c.cluster; len(c.members.others) > 0 && l.ready && !l.reads {
		return l.read.Add(lookBehind)
	}
	return time.Time{}
}

// foldedTopics makes the partitions what an entry made of the topics, and
// answers the change that appended it once they are open.
func (c *core) foldedTopics(ch *topic.Change, by *changeOp) {
	if ch.Void != "" {
		c.metrics.void()
		c.opts.Log.Error("a ledger entry breaks the rules", "ledger", topic.Ledger, "why", ch.Void)
	}
	c.topics.Store(c.cluster.log.Fold().View())
	for _, t := range slices.Concat(ch.Created, ch.Changed) {
		c.addPartitions(t, by)
	}
	if len(ch.Deleted) > 0 {
		c.removeDeleted()
		c.topicsDeleted()
	}
	if by != nil {
		c.cluster.opening = append(c.cluster.opening, by)
	}
}

func (c *core) addPartitions(t *topic.Topic, by *changeOp) {
	for n := range t.Partitions {
		tp := siltstone.TopicPartition{Topic: t.ID, Partition: n}
		if c.parts[tp] == nil {
			c.addPartition(tp, by)
		}
	}
}

func (c *core) removeDeleted() {
	view := c.Topics()
	for _, s := range c.shards {
		s.parts = slices.DeleteFunc(s.parts, func(p *partition) bool {
			if _, ok := view.TopicByID(p.tp.Topic); ok {
				return false
			}
			c.removePartition(p)
			return true
		})
	}
}

func (c *core) addPartition(tp siltstone.TopicPartition, by *changeOp) {
	s := c.shards[shard.Of(tp)]
	p := &partition{tp: tp, shard: s}
	c.parts[tp] = p
	s.parts = append(s.parts, p)
	if leader, _ := c.leaderOf(s); by != nil && (leader == 0 || leader == c.opts.Incarnation) {
		by.opening++
		p.openers = append(p.openers, by)
	}
	if !s.leads() {
		return
	}
	if known, ok := s.fold().Partition(tp); ok {
		c.opened(known) // by who led before this agent had heard of it
		return
	}
	s.toOpen = append(s.toOpen, p)
}

// removePartition ends a partition of a deleted topic.
func (c *core) removePartition(p *partition) {
	delete(c.parts, p.tp)
	c.end(p)
	if p.shard.leads() {
		p.shard.toEnd = append(p.shard.toEnd, p.tp)
	}
}

// end gives up a partition of which nothing is left. It is never opened again.
func (c *core) end(p *partition) {
	p.open, p.gone, p.shard.partsGone = false, true, true
	p.fail(c, siltstone.ErrUnknownPartition)
	p.answerOpeners()
}
