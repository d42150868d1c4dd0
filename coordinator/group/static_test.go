package group

import (
	"testing"
	"time"
)

// again is the client of the same instance after a restart: it knows nothing.
func (c *client) again() *client {
	n := c.w.static(c.group, *c.instance)
	n.protocols, n.maySkip = c.protocols, c.maySkip
	return n
}

// fenced fails unless nothing of an older client is taken.
func (c *client) fenced() {
	c.w.t.Helper()
	must(c.w.t, "heartbeat of the older", c.beats(), ErrFencedInstance)
	must(c.w.t, "commit of the older", c.commits(at(1, 0), 99).Err, ErrFencedInstance)
	must(c.w.t, "sync of the older", c.syncs().Err, ErrFencedInstance)
	must(c.w.t, "join of the older", c.joins().Err, ErrFencedInstance)
	must(c.w.t, "leaving of the older", c.leaves().Members[0].Err, ErrFencedInstance)
}

func statics(t *testing.T) (w *world, leader, follower *client) {
	w = newWorld(t)
	leader, follower = w.static("g", "a"), w.static("g", "b")
	settleIn(leader, follower)
	return w, leader, follower
}

func TestStaticRestart(t *testing.T) {
	for _, maySkip := range []bool{true, false} {
		w, leader, follower := statics(t)
		before := w.describe("g").Members

		f := follower.again()
		f.maySkip = maySkip
		r := f.joins()
		if !w.waits(r) {
			t.Fatalf("answered before it is stored: %v", r.Err)
		}
		follower.fenced()
		if d := w.describe("g"); d.Members[1].ID != before[1].ID {
			t.Error("described before it is stored")
		}
		w.settle()
		f.joined()
		if f.generation != 1 || f.leads || r.SkipAssignment || r.Leader != leader.id {
			t.Errorf("%+v", r)
		}
		follower.fenced()
		must(t, "sync", f.syncs().Err, nil)
		if string(f.sync.Assignment) != follower.assignment {
			t.Errorf("assigned %q, its predecessor had %q", f.sync.Assignment, follower.assignment)
		}
		must(t, "the leader", leader.beats(), nil)

		// The leader: told that it leads only where it can be told not to assign.
		l := leader.again()
		l.maySkip = maySkip
		r = l.joins()
		w.settle()
		must(t, "the leader's join", r.Err, nil)
		if r.Generation != 1 || r.SkipAssignment != maySkip || (r.Leader == r.MemberID) != maySkip || len(r.Members) != map[bool]int{true: 2, false: 0}[maySkip] {
			t.Errorf("%+v", r)
		}
		if !maySkip && r.Leader != leader.id {
			t.Errorf("the leader is %q", r.Leader)
		}
		l.id, l.generation = r.MemberID, 1
		must(t, "sync", l.syncs().Err, nil)
		leader.fenced()
		must(t, "the other", f.beats(), nil)
		w.is("g", Stable, 1, 2)

		// And all of it goes through another restart, of the coordinator.
		w.crash(false)
		w.is("g", Stable, 1, 2)
		must(t, "heartbeat", l.beats(), nil)
		must(t, "heartbeat", f.beats(), nil)
		leader.fenced()
		// It leads: when it joins again, all do.
		l.joins()
		w.is("g", PreparingRebalance, 1, 2)
	}
}

// What the newest client says counts, also where that is another subscription:
// it is stored, and the leader finds it when it next assigns.
func TestStaticRestartWithOtherTopics(t *testing.T) {
	w, leader, follower := statics(t)
	f := follower.again()
	f.protocols = []Protocol{{"range", reads("b")}, {"sticky", reads("b")}}
	f.session = 20_000
	f.joins()
	w.settle()
	f.joined()
	w.is("g", Stable, 1, 2)
	if m := w.fold.groups["g"].Members[1]; string(m.Subscription) != string(reads("b")) || m.ID != f.id || m.SessionMS != 20_000 {
		t.Errorf("%+v", m)
	}
	// Where it makes another protocol the one of most votes, all join again.
	l := leader.again()
	l.protocols = []Protocol{{"sticky", nil}}
	l.joins()
	w.is("g", PreparingRebalance, 1, 2)
	f.joins()
	w.settle()
	l.joined()
	f.joined()
	if l.join.Protocol != "sticky" || l.generation != 2 {
		t.Errorf("%+v", l.join)
	}
}

func TestStaticTakesOverInEveryState(t *testing.T) {
	t.Run("preparing, not joined", func(t *testing.T) {
		w, leader, follower := statics(t)
		leader.joins()
		f := follower.again()
		f.joins()
		follower.fenced()
		w.settle()
		f.joined()
		leader.joined()
		if f.generation != 2 || leader.generation != 2 || !leader.leads {
			t.Error(f.generation, leader.generation)
		}
		follower.fenced()
	})
	t.Run("preparing, joined", func(t *testing.T) {
		w, leader, follower := statics(t)
		d := w.client("g", "dynamic")
		d.joins()
		old := follower.joins()
		f := follower.again()
		f.joins()
		must(t, "the join that waited", old.Err, ErrFencedInstance)
		if old.MemberID != follower.id {
			t.Errorf("it is told %q", old.MemberID)
		}
		follower.fenced()
		leader.joins()
		w.settle()
		f.joined()
		follower.fenced()
	})
	t.Run("preparing, both unknown", func(t *testing.T) { // KAFKA-8500
		w := newWorld(t)
		w.settings.InitialDelayMS = 3000
		one, two := w.static("g", "a"), w.static("g", "a")
		one.joins()
		two.joins()
		must(t, "the first", one.join.Err, ErrFencedInstance)
		w.pass(3 * time.Second)
		two.joined()
		w.is("g", CompletingRebalance, 1, 1)
	})
	t.Run("forming", func(t *testing.T) {
		w, leader, follower := statics(t)
		leader.joins()
		old := follower.joins()
		w.propose()
		f := follower.again()
		f.joins()
		must(t, "the join in flight", old.Err, ErrFencedInstance)
		follower.fenced()
		w.folds()
		leader.joined()
		if !w.waits(f.join) || leader.generation != 2 {
			t.Errorf("%+v", f.join)
		}
		w.is("g", PreparingRebalance, 2, 2)
		follower.fenced()
		leader.joins()
		w.settle()
		f.joined()
		if f.generation != 3 {
			t.Error(f.generation)
		}
	})
	t.Run("completing", func(t *testing.T) {
		w := newWorld(t)
		leader, follower := w.static("g", "a"), w.static("g", "b")
		gather(leader, follower)
		old := follower.syncs()
		f := follower.again()
		f.joins()
		must(t, "the sync that waited", old.Err, ErrFencedInstance)
		follower.fenced()
		must(t, "the leader's sync", leader.syncs().Err, ErrRebalanceInProgress)
		leader.joins()
		w.settle()
		leader.joined()
		f.joined()
		leader.syncs()
		f.syncs()
		w.settle()
		f.synced()
		follower.fenced()
	})
	t.Run("assigning", func(t *testing.T) {
		w := newWorld(t)
		leader, follower := w.static("g", "a"), w.static("g", "b")
		gather(leader, follower)
		leader.syncs()
		w.propose()
		f := follower.again()
		f.joins()
		must(t, "the leader's sync", leader.sync.Err, ErrRebalanceInProgress)
		follower.fenced()
		w.folds()
		w.is("g", PreparingRebalance, 1, 2)
		follower.fenced()
	})
	t.Run("stable, twice", func(t *testing.T) {
		w, leader, follower := statics(t)
		one, two, three := follower.again(), follower.again(), follower.again()
		one.joins()
		two.joins()
		must(t, "the first", one.join.Err, ErrFencedInstance)
		w.propose()
		three.joins()
		must(t, "the second", two.join.Err, ErrFencedInstance)
		w.folds()
		if !w.waits(three.join) {
			t.Errorf("%+v", three.join)
		}
		w.settle()
		three.joined()
		must(t, "the leader", leader.beats(), nil)
		w.is("g", Stable, 1, 2)
		follower.fenced()
	})
	t.Run("stable, and a rebalance before it is stored", func(t *testing.T) {
		w, leader, follower := statics(t)
		f := follower.again()
		f.joins()
		w.propose()
		d := w.client("g", "dynamic")
		d.joins()
		w.folds()
		if !w.waits(f.join) {
			t.Errorf("answered %+v", f.join)
		}
		leader.joins()
		w.settle()
		f.joined()
		d.joined()
		leader.joined()
		if f.generation != 2 {
			t.Error(f.generation)
		}
	})
	t.Run("the group is full", func(t *testing.T) {
		w, _, follower := statics(t)
		w.settings.MaxMembers = 2
		f := follower.again()
		f.joins()
		w.settle()
		f.joined()
	})
}

// Nobody is waited for longer than its session, and until then its place is kept.
func TestStaticStaysForItsSession(t *testing.T) {
	w, leader, follower := statics(t)
	leader.joins()
	w.pass(9 * time.Second)
	must(t, "heartbeat", follower.beats(), ErrRebalanceInProgress)
	w.pass(10 * time.Second)
	w.is("g", CompletingRebalance, 2, 1)
	must(t, "too late", follower.beats(), ErrUnknownMember)
	f := follower.again()
	f.joins()
	w.is("g", PreparingRebalance, 2, 2)

	// With a session longer than the rebalance, it is in the next generation
	// without having joined.
	w, leader, follower = statics(t)
	follower.session, follower.rebalance, leader.rebalance = 300_000, 20_000, 20_000
	follower.protocols = follower.protocols[:1]
	follower.joins()
	leader.joins()
	w.settle()
	follower.joined()
	leader.joined()
	follower.syncs()
	leader.syncs()
	w.settle()
	leader.joins()
	w.pass(20 * time.Second)
	leader.joined()
	if leader.generation != 3 || len(leader.members) != 2 {
		t.Errorf("generation %d with %d members", leader.generation, len(leader.members))
	}
}

func TestStaticLeaves(t *testing.T) {
	w, leader, follower := statics(t)
	r := &Leave{Call: Call{Group: "g"}, Members: []LeavingMember{
		{Instance: follower.instance}, {Instance: follower.instance}, {Member: "nobody", Instance: leader.instance},
		{Member: "nobody"}, {}, {Member: leader.id, Instance: leader.instance},
	}}
	w.handle(r)
	w.settle()
	must(t, "all", r.Err, nil)
	for i, want := range []error{nil, ErrUnknownMember, ErrFencedInstance, ErrUnknownMember, ErrUnknownMember, nil} {
		must(t, "one", r.Members[i].Err, want)
	}
	w.is("g", Empty, 2, 0)
	must(t, "heartbeat", follower.beats(), ErrUnknownMember)
}

// The successor of one that had yet to sync has yet to sync.
func TestStaticRestartBeforeItSyncs(t *testing.T) {
	for _, syncs := range []bool{true, false} {
		w := newWorld(t)
		leader, follower := w.static("g", "a"), w.static("g", "b")
		leader.session = 1_800_000
		gather(leader, follower)
		leader.syncs()
		w.settle()
		w.is("g", Stable, 1, 2)
		f := follower.again()
		f.session = 1_800_000
		f.joins()
		w.settle()
		f.joined()
		if syncs {
			f.syncs()
			f.synced()
		}
		w.pass(2 * time.Minute)
		if syncs {
			w.is("g", Stable, 1, 2)
		} else {
			w.is("g", PreparingRebalance, 1, 1)
		}
	}
}

// A leader that is not there leads no more, though its place is kept.
func TestStaticLeaderDoesNotJoin(t *testing.T) {
	w := newWorld(t)
	leader, follower := w.static("g", "a"), w.static("g", "b")
	leader.session = 1_800_000
	settleIn(leader, follower)
	follower.protocols = follower.protocols[:1]
	follower.joins()
	w.pass(60 * time.Second)
	follower.joined()
	if !follower.leads || len(follower.members) != 2 {
		t.Errorf("%+v", follower.join)
	}
}

// One that would not fit an entry any more makes all join again, and whoever
// does not fit then has to go.
func TestStaticRestartTooLarge(t *testing.T) {
	w, leader, follower := statics(t)
	f := follower.again()
	f.protocols = []Protocol{{"range", make([]byte, 400<<10)}}
	f.joins()
	w.is("g", PreparingRebalance, 1, 2)
	leader.joins()
	w.settle()
	leader.joined()
	must(t, "join", f.join.Err, ErrGroupFull)
	w.is("g", CompletingRebalance, 2, 1)
}
