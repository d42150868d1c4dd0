package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// joinUpdates is how far apart the appends to a group shard's ledger are, at
// the least: what is decided meanwhile goes into one together. Where none was
// due for a while two may follow each other, as those of a rebalance do: the
// generation, and its assignments.
const joinUpdates = 5 * time.Millisecond

// A groupShard is one group shard as its leader, or who would lead it, keeps
// it. The rules of leading are those of a log shard whose ISR is one agent:
// whoever holds the coordinator takes it over as soon as it has read it.
type groupShard struct {
	id    int
	log   *ledger.Log[*group.State, group.Change]
	state shardState
	// machine coordinates the groups while the shard is led; nil else.
	machine *group.Machine
	// deafFrom is since when the machine stands still, as no client is let in yet.
	deafFrom time.Time
	// update is proposed by the machine and not folded. Whatever else may
	// take its slot, it is proposed again while this agent leads.
	update *group.Update
	// undecided: the machine may have something to propose.
	undecided bool
	// paced is when the next append would begin if all were joinUpdates apart.
	paced time.Time

	seated   seat
	unstored unstored // while this agent leads
}

func newGroupShard(id int) *groupShard {
	return &groupShard{id: id, log: ledger.New(group.Ledger(id), group.New())}
}

func (s *groupShard) leads() bool { return s.state == serving }

// notServing says why the shard takes no requests; nil if it does.
func (s *groupShard) notServing(c *core) error {
	switch {
	case c.draining || s.state == sealed || s.seated.heir != 0:
		return group.ErrNotCoordinator
	case s.state == serving:
		return nil
	}
	if leader, _ := c.leaderOf(s); leader != 0 {
		return group.ErrNotCoordinator
	}
	return group.ErrLoading
}

// answer tells those whose outcomes are there. It is called after whatever the
// machine was told.
func (s *groupShard) answer() {
	s.undecided = true
	for _, r := range s.machine.Answered() {
		close(r.Common().Done)
	}
}

// loadGroups is readShard's, for a shard of groups.
func (c *core) loadGroups(s *groupShard) {
	s.state, c.statusStale = loading, true
	c.work(func(ctx context.Context) event {
		got, err := loadFold(ctx, c.Agent, s.log.Name(), group.New)
		return &groupsLoaded{s: s, got: got, err: err}
	})
}

// groupsLoaded is a group shard as it stands in the stores.
type groupsLoaded struct {
	s   *groupShard
	got ledger.Loaded[*group.State, group.Change]
	err error
}

func (e *groupsLoaded) handle(c *core) {
	s := e.s
	if e.err != nil {
		if c.workCtx.Err() == nil {
			c.fail(fmt.Errorf("load %s: %w", s.log.Name(), e.err))
		}
		return
	}
	if err := replaceFold(s.log, e.got); err != nil {
		c.fail(err)
		return
	}
	s.unstored.restart(e.got.At, e.got.Checkpoint, c.now)
	s.seated.known = c.now
	if c.inherits(s) {
		c.serveGroups(s)
		s.seated.handedAt = c.now
		return
	}
	// Also where this agent led before the ledger was trimmed past its fold:
	// what of its last update was committed is in the fold, and clients ask again.
	c.deposeGroups(s)
	c.readFor(s)
}

// deposeGroups ends coordinating; clients ask again, here or elsewhere.
func (c *core) deposeGroups(s *groupShard) {
	s.state, c.statusStale = standing, true
	c.stopMachine(s)
}

func (c *core) stopMachine(s *groupShard) {
	s.update = nil
	if s.machine != nil {
		s.machine.Stop(group.ErrNotCoordinator)
		s.answer()
		s.machine = nil
	}
}

// serveGroups begins coordinating, in an epoch that is this agent's own.
func (c *core) serveGroups(s *groupShard) {
	c.stopMachine(s)
	s.state, s.seated, c.statusStale = serving, s.seated.anew(), true
	s.seated.served = s.log.Fold().Epoch()
	c.opts.Log.Debug("leads", "ledger", s.log.Name(), "epoch", s.seated.served)
	s.machine = group.NewMachine(s.log.Fold(), group.Options{
		Epoch:    s.log.Fold().Epoch(),
		Writer:   c.opts.Incarnation,
		Rand:     c.opts.Rand,
		Wall:     c.opts.Wall,
		Settings: c.groupSettings,
		Topic: func(name string) (uint32, bool) {
			t, ok := c.Topics().Topic(name)
			if !ok {
				return 0, false
			}
			return t.Number, true
		},
		Exists: func(tp group.TopicPartition) bool {
			t, ok := c.Topics().TopicByNumber(tp.Topic)
			return ok && tp.Partition >= 0 && tp.Partition < t.Partitions
		},
		Bug: c.opts.Plant,
	}, c.now)
	s.machine.TopicsDeleted(c.now) // while nobody led
	s.deafFrom = c.now
	s.answer()
}

// hearGroups is for when clients are let in for the first time: the time until
// then does not count, for none of them could be heard.
func (c *core) hearGroups() {
	c.hears = true
	for _, s := range c.groups {
		if s.leads() {
			s.machine.PutOff(c.now.Sub(s.deafFrom))
		}
	}
}

func (c *core) groupSettings() group.Settings {
	o := c.Topics().Cluster()
	return group.Settings{
		InitialDelayMS: int32(o.GroupInitialDelayMS),
		MinSessionMS:   int32(o.GroupMinSessionMS), MaxSessionMS: int32(o.GroupMaxSessionMS),
		MaxMembers: o.GroupMaxMembers, MaxMetadataBytes: o.OffsetMetadataMaxBytes,
		RetentionMS: o.OffsetsRetentionMS, RetentionCheckMS: o.OffsetsRetentionCheckMS,
	}
}

// turnGroups does what is due in a group shard, and proposes its next entry if
// its slot is free.
func (c *core) turnGroups(s *groupShard) {
	if due := c.groupTickDue(s); !due.IsZero() && !due.After(c.now) {
		s.machine.Tick(c.now)
		s.answer()
	}
	if s.state == absent || s.state == loading || s.state == sealed || s.log.Busy() || c.failed != nil {
		return
	}
	body := c.nextGroupEntry(s)
	if body == nil {
		return
	}
	p, err := s.log.Propose(body.Kind(), body.Encode(), c.wallMS(), c.nonce())
	if err != nil {
		c.fail(err)
		return
	}
	if s.paced.Before(c.now) {
		s.paced = c.now
	}
	s.paced = s.paced.Add(joinUpdates)
	c.work(func(ctx context.Context) event {
		out, err := c.append(ctx, groupKind, p)
		return &groupsSettled{s: s, out: out, err: err}
	})
}

// nextGroupEntry decides on the state as folded what to append; nil if nothing.
func (c *core) nextGroupEntry(s *groupShard) group.Body {
	switch {
	case s.state == standing && !c.mayTake(s):
		return nil
	case s.state == standing:
		s.seated.proposed = c.now
		return &group.Lead{Epoch: s.log.Fold().Epoch() + 1, Leader: c.opts.Incarnation}
	case c.now.Before(c.groupAppendDue(s)):
		return nil
	}
	if s.update == nil && s.undecided {
		s.undecided = false
		s.update = s.machine.Propose()
	}
	switch {
	case s.update != nil:
		return s.update
	case c.draining:
		return &group.Lead{Epoch: s.log.Fold().Epoch() + 1}
	case s.seated.heir != 0:
		return &group.Lead{Epoch: s.log.Fold().Epoch() + 1, Leader: s.seated.heir}
	}
	return nil
}

// groupAppendDue is when the next append to a led shard may begin.
func (c *core) groupAppendDue(s *groupShard) time.Time {
	if c.draining || s.seated.heir != 0 {
		return c.now
	}
	return s.paced.Add(-joinUpdates)
}

// groupTickDue is when time has something for the machine to do; zero if
// never. While the agent drains it refuses heartbeats, and until it is ready it
// hears none, so no session ends.
func (c *core) groupTickDue(s *groupShard) time.Time {
	if !s.leads() || c.draining || !c.hears {
		return time.Time{}
	}
	return s.machine.Due()
}

// groupsDue is when turnGroups has something to do with no event; zero if never.
func (c *core) groupsDue(s *groupShard) time.Time {
	if !s.leads() {
		return time.Time{}
	}
	due := c.groupTickDue(s)
	if (s.undecided || s.update != nil || s.seated.heir != 0) && !s.log.Busy() {
		if at := c.groupAppendDue(s); due.IsZero() || at.Before(due) {
			due = at
		}
	}
	return due
}

// groupsSettled is the end of a proposal, whatever it is.
type groupsSettled struct {
	s   *groupShard
	out ledger.Outcome
	err error
}

func (e *groupsSettled) handle(c *core) {
	if e.err != nil {
		if c.workCtx.Err() == nil {
			c.fail(fmt.Errorf("append to %s: %w", e.s.log.Name(), e.err))
		}
		return
	}
	changes, err := e.s.log.Settle(e.out)
	for i := range changes {
		c.foldedGroups(e.s, &changes[i])
	}
	switch {
	case errors.Is(err, ledger.ErrTrimmed), err == nil && e.s.seated.unread && e.s.state == standing:
		c.readShard(e.s)
	case err != nil:
		c.fail(err)
	}
}

// foldedGroups does what an entry asks of who leads, or led.
func (c *core) foldedGroups(s *groupShard, ch *ledger.Change[group.Change]) {
	s.unstored.add(1, c.now)
	if void := ch.Effect.Void; void != "" {
		c.metrics.void()
		c.opts.Log.Error("a ledger entry breaks the rules", "ledger", s.log.Name(), "seq", ch.Entry.Seq, "why", void)
		if ch.Mine && s.leads() {
			c.fail(fmt.Errorf("%s, entry %d: this agent's own is void: %s", s.log.Name(), ch.Entry.Seq, void))
		}
		return
	}
	fold := s.log.Fold()
	if ch.Entry.Kind == group.KindLead {
		s.seated.known = c.now
	}
	switch {
	case ch.Entry.Kind == group.KindUpdate && !s.leads(): // another's, or given up
	case ch.Entry.Kind == group.KindUpdate && ch.Mine:
		s.update = nil
		s.machine.Folded(c.now)
		s.answer()
	case ch.Entry.Kind == group.KindUpdate && s.leads():
		c.fail(fmt.Errorf("%s, entry %d: another's update, in the epoch of this agent", s.log.Name(), ch.Entry.Seq))
	case ch.Entry.Kind != group.KindLead:
	case fold.Sealed() && ch.Mine:
		c.stopMachine(s)
		s.state, c.statusStale = sealed, true
	case fold.Leader() != c.opts.Incarnation, !c.members.on:
		c.deposeGroups(s)
		c.handed(s)
	case ch.Effect.Elected && c.elected(s, ch.Mine):
		c.serveGroups(s)
	case ch.Effect.Elected: // it was handed over, and is read first; or it comes late
		c.deposeGroups(s)
	}
}

// topicsDeleted lets groups forget the offsets of topics that are gone.
func (c *core) topicsDeleted() {
	for _, s := range c.groups {
		if s.leads() {
			s.machine.TopicsDeleted(c.now)
			s.answer()
		}
	}
}
