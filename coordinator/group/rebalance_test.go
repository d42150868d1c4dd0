package group

import (
	"testing"
	"time"
)

func TestLeaderIsElectedAnew(t *testing.T) {
	w, cs := stable(t, 3)
	cs[1].protocols = []Protocol{{"range", reads("b")}}
	cs[1].joins()
	cs[2].joins()
	must(t, "the old leader's heartbeat", cs[0].beats(), ErrRebalanceInProgress)
	w.pass(9 * time.Second)
	must(t, "and again", cs[0].beats(), ErrRebalanceInProgress) // alive, and does not join
	for range 10 {
		w.pass(5 * time.Second)
		must(t, "and again", cs[0].beats(), ErrRebalanceInProgress)
	}
	w.pass(5 * time.Second)
	cs[1].joined()
	cs[2].joined()
	if !cs[1].leads || cs[2].leads {
		t.Errorf("%s and %s lead: %v, %v", cs[1].id, cs[2].id, cs[1].leads, cs[2].leads)
	}
	must(t, "the heartbeat of one who did not join", cs[0].beats(), ErrUnknownMember)
	w.is("g", CompletingRebalance, 2, 2)

	// A leader that joins again stays it.
	cs[1].syncs()
	cs[2].syncs()
	w.settle()
	cs[2].protocols = []Protocol{{"range", reads("c")}}
	cs[2].joins()
	cs[1].joins()
	w.settle()
	cs[1].joined()
	cs[2].joined()
	if !cs[1].leads {
		t.Error("a leader that joined again leads no more")
	}
}

func TestRebalanceTakesTheLongestTimeout(t *testing.T) {
	w, cs := stable(t, 2)
	slow := w.client("g", "slow")
	slow.rebalance, slow.session = 100_000, 1_800_000
	slow.joins()
	for _, c := range cs {
		c.session = 1_800_000
		c.joins()
	}
	w.settle()
	slow.joined()
	slow.syncs()
	cs[0].joined()
	cs[0].syncs()
	cs[1].joined()
	cs[1].syncs()
	w.settle()
	cs[0].joins()
	w.pass(99_999 * time.Millisecond)
	w.is("g", PreparingRebalance, 2, 3)
	w.pass(time.Millisecond)
	w.is("g", CompletingRebalance, 3, 1)
}

func TestSessions(t *testing.T) {
	w, cs := stable(t, 3)
	w.pass(9 * time.Second)
	must(t, "heartbeat", cs[0].beats(), nil)
	must(t, "commit", cs[1].commits(at(1, 0), 3).Err, nil) // counts as one
	w.pass(time.Second)
	must(t, "one that was not heard of", cs[2].beats(), ErrUnknownMember)
	w.is("g", PreparingRebalance, 1, 2)

	// So too while a rebalance is prepared.
	w.pass(8 * time.Second)
	must(t, "heartbeat", cs[0].beats(), ErrRebalanceInProgress)
	must(t, "commit", cs[1].commits(at(1, 0), 4).Err, nil)
	w.pass(9 * time.Second)
	w.is("g", PreparingRebalance, 1, 2)
	must(t, "heartbeat", cs[0].beats(), ErrRebalanceInProgress)
	cs[0].joins()
	w.pass(time.Second)
	w.is("g", CompletingRebalance, 2, 1)
	cs[0].joined()

	// Who waits is not removed, and begins anew when it is answered.
	late := w.client("g", "late")
	late.joins()
	cs[0].joins()
	w.settle()
	cs[0].joined()
	late.joined()
	late.syncs()
	for range 5 {
		w.pass(9 * time.Second)
		must(t, "heartbeat", cs[0].beats(), nil)
	}
	cs[0].syncs()
	w.settle()
	cs[0].synced()
	late.synced()
	w.pass(9 * time.Second)
	must(t, "heartbeat", late.beats(), nil)
	late.leaves()
	cs[0].joins()
	w.settle()
	cs[0].joined()
	cs[0].syncs()
	w.settle()
	w.pass(10*time.Second - time.Millisecond)
	w.is("g", Stable, 4, 1)
	w.pass(time.Millisecond)
	w.is("g", Empty, 5, 0)
}

// Whoever has waited for an answer longer than its session is removed after
// that, if it is not heard of again.
func TestSessionBeginsWithTheAnswer(t *testing.T) {
	w := newWorld(t)
	leader, follower := w.static("g", "a"), w.static("g", "b")
	leader.session = 1_800_000
	gather(leader, follower)
	follower.syncs()
	w.pass(30 * time.Second)
	leader.syncs()
	w.settle()
	follower.synced()
	w.pass(10*time.Second - time.Millisecond)
	w.is("g", Stable, 1, 2)
	w.pass(time.Millisecond)
	w.is("g", PreparingRebalance, 1, 1)

	// A rebalance is the answer.
	w = newWorld(t)
	leader, follower = w.static("g", "a"), w.static("g", "b")
	leader.session, leader.rebalance = 1_800_000, 600_000
	gather(leader, follower)
	follower.syncs()
	w.pass(30 * time.Second)
	leader.protocols = leader.protocols[:1]
	leader.joins()
	must(t, "sync", follower.sync.Err, ErrRebalanceInProgress)
	w.pass(10 * time.Second)
	w.is("g", CompletingRebalance, 2, 1)

	// So is a generation, also of a new member.
	w = newWorld(t)
	w.settings.InitialDelayMS = 30_000
	fresh := w.client("g", "fresh")
	fresh.joins()
	w.pass(30 * time.Second)
	fresh.joined()
	w.pass(10 * time.Second)
	w.is("g", Empty, 2, 0)
}

// A new member's client sends no heartbeats, as it has no id yet: it is given
// five minutes, and then not waited for.
func TestNewMemberWaitsFiveMinutes(t *testing.T) {
	w, cs := stable(t, 1)
	cs[0].session, cs[0].rebalance = 1_800_000, 1_800_000
	cs[0].joins()
	w.settle()
	cs[0].joined()
	cs[0].syncs()
	w.settle()
	late := w.client("g", "late")
	late.joins()
	w.pass(5*time.Minute - time.Millisecond)
	if !w.waits(late.join) {
		t.Fatalf("answered %v", late.join.Err)
	}
	w.pass(time.Millisecond)
	must(t, "join", late.join.Err, ErrUnknownMember)
	if late.join.MemberID != "" {
		t.Errorf("it is told %q", late.join.MemberID)
	}
	w.is("g", PreparingRebalance, 2, 1)
}

// Who is told of a generation and does not sync is taken for gone (KAFKA-13214).
func TestWhoDoesNotSync(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.client("g", "a"), w.client("g", "b"), w.client("g", "c")
	for _, cl := range []*client{a, b, c} {
		cl.session = 1_800_000
	}
	gather(a, b, c)
	b.syncs()
	w.pass(60*time.Second - time.Millisecond)
	w.is("g", CompletingRebalance, 1, 3)
	must(t, "heartbeat", a.beats(), nil)
	w.pass(time.Millisecond)
	w.is("g", PreparingRebalance, 1, 1)
	must(t, "the sync that waited", b.sync.Err, ErrRebalanceInProgress)
	must(t, "the leader, which did not sync", a.beats(), ErrUnknownMember)
	b.joins()
	w.settle()
	b.joined()
	b.syncs()
	w.settle()
	b.synced()

	// In a stable group too.
	settled := w.client("g", "d")
	settled.session = 1_800_000
	settled.joins()
	b.joins()
	w.settle()
	b.joined()
	b.syncs()
	w.settle()
	w.is("g", Stable, 3, 2)
	w.pass(60 * time.Second)
	w.is("g", PreparingRebalance, 3, 1)
	must(t, "one that did not sync", w.answer(&Heartbeat{Call: Call{Group: "g"}, Member: settled.id, Generation: 3}), ErrUnknownMember)

	// All have synced: nothing is due any more.
	b.joins()
	w.settle()
	b.joined()
	b.syncs()
	w.settle()
	w.pass(10 * time.Minute)
	w.is("g", Stable, 4, 1)
}

// Another member comes while the assignments are on their way: they are
// stored, and nobody hears of them.
func TestRebalanceWhileAssignmentsAreInFlight(t *testing.T) {
	w := newWorld(t)
	a, b := w.client("g", "a"), w.client("g", "b")
	gather(a, b)
	b.syncs()
	a.syncs()
	w.propose()
	w.client("g", "late").joins()
	must(t, "the leader's sync", a.sync.Err, ErrRebalanceInProgress)
	must(t, "the other's sync", b.sync.Err, ErrRebalanceInProgress)
	w.folds()
	w.is("g", PreparingRebalance, 1, 3)
	if !w.fold.groups["g"].Assigned {
		t.Error("they are not stored")
	}
	must(t, "a sync after", a.syncs().Err, ErrRebalanceInProgress)

	// Whoever takes over goes on with them.
	w.crash(false)
	w.is("g", Stable, 1, 2)
	must(t, "sync", a.syncs().Err, nil)
	a.synced()
}

// The leader's second sync waits with the first.
func TestLeaderSyncsTwice(t *testing.T) {
	w := newWorld(t)
	a, b := w.client("g", "a"), w.client("g", "b")
	gather(a, b)
	first := a.syncs()
	w.propose()
	second := &Sync{Call: Call{Group: "g"}, Member: a.id, Generation: 1, Assignments: map[string][]byte{a.id: []byte("other")}}
	w.handle(second)
	must(t, "the first", first.Err, ErrRebalanceInProgress)
	b.syncs()
	w.settle()
	must(t, "the second", second.Err, nil)
	b.synced()
	stored := string(w.fold.groups["g"].Members[0].Assignment)
	if string(second.Assignment) != "1 for "+a.id || stored != string(second.Assignment) {
		t.Errorf("assigned %q, stored %q", second.Assignment, stored)
	}
}

func TestAssignmentsTooLarge(t *testing.T) {
	w := newWorld(t)
	a, b := w.client("g", "a"), w.client("g", "b")
	gather(a, b)
	b.syncs()
	r := &Sync{Call: Call{Group: "g"}, Member: a.id, Generation: 1, Assignments: map[string][]byte{
		a.id: make([]byte, 200<<10), b.id: make([]byte, 200<<10),
	}}
	must(t, "the leader", w.answer(r), ErrTooLarge)
	must(t, "the other", b.sync.Err, ErrTooLarge)
	w.is("g", PreparingRebalance, 1, 2)
	a.joins()
	b.joins()
	w.settle()
	a.joined()
	b.joined()
	a.syncs()
	b.syncs()
	w.settle()
	a.synced()
}

// Who would not fit an entry has to go.
func TestGenerationTooLarge(t *testing.T) {
	w, cs := stable(t, 1)
	large := func(name string) *client {
		c := w.client("g", name)
		c.protocols = []Protocol{{"range", append(reads("a"), make([]byte, 150<<10)...)}}
		c.protocols[0].Metadata[len(c.protocols[0].Metadata)-1] = name[0]
		return c
	}
	a, b, c, alike := large("a"), large("b"), large("c"), large("c")
	for _, cl := range []*client{a, b, c, alike, cs[0]} {
		cl.joins()
	}
	w.settle()
	must(t, "the third", c.join.Err, ErrGroupFull)
	must(t, "the fourth", alike.join.Err, ErrGroupFull)
	w.is("g", CompletingRebalance, 2, 3)
	cs[0].joined()
	a.joined()
	b.joined()

	// Alone too.
	huge := w.client("huge", "client")
	huge.protocols = []Protocol{{"range", make([]byte, 400<<10)}}
	huge.joins()
	w.settle()
	must(t, "huge", huge.join.Err, ErrGroupFull)
	w.is("huge", Empty, 1, 0)

	// What is alike is stored once.
	twins := make([]*client, 100)
	for i := range twins {
		twins[i] = w.client("twins", "twin")
		twins[i].protocols = []Protocol{{"range", append(reads("a"), make([]byte, 150<<10)...)}}
	}
	gather(twins...)
	w.is("twins", CompletingRebalance, 1, 100)
}

// With only static members, none of whom has joined, a rebalance goes on.
func TestNobodyJoins(t *testing.T) {
	w := newWorld(t)
	a, b := w.static("g", "a"), w.static("g", "b")
	a.session, b.session = 100_000, 100_000
	settleIn(a, b)
	d := w.client("g", "dynamic")
	d.joins()
	d.leaves()
	w.pass(90 * time.Second)
	w.is("g", PreparingRebalance, 1, 2)
	b.joins()
	w.pass(10*time.Second + time.Millisecond)
	b.joined()
	if !b.leads || b.generation != 2 {
		t.Errorf("generation %d, leads %v", b.generation, b.leads)
	}
	b.syncs()
	w.settle()
	b.synced()

	// Once one has joined, the other is waited for no longer than before.
	w = newWorld(t)
	a, b = w.static("g", "a"), w.static("g", "b")
	settleIn(a, b)
	d = w.client("g", "dynamic")
	d.joins()
	d.leaves()
	for range 7 {
		w.pass(9 * time.Second)
		must(t, "heartbeat", a.beats(), ErrRebalanceInProgress)
		must(t, "heartbeat", b.beats(), ErrRebalanceInProgress)
	}
	b.joins()
	for range 6 {
		w.pass(9 * time.Second)
		must(t, "heartbeat", a.beats(), ErrRebalanceInProgress)
	}
	w.pass(3 * time.Second)
	b.joined()
	w.is("g", CompletingRebalance, 2, 2)
}

// A generation on its way is not decided again, however long that takes.
func TestGenerationIsLongInFlight(t *testing.T) {
	w, cs := stable(t, 2)
	cs[0].joins()
	cs[1].joins()
	w.propose()
	w.tick(w.now.Add(10 * time.Minute))
	w.folds()
	cs[0].joined()
	cs[1].joined()
	w.is("g", CompletingRebalance, 2, 2)
	if w.propose() {
		t.Errorf("and then %+v", w.inFlight)
	}
}

func TestEmptyGroupGoesOn(t *testing.T) {
	w, cs := stable(t, 1)
	r := cs[0].leaves()
	if !w.waits(r) {
		t.Error("the last member's leaving is answered before it is stored")
	}
	w.is("g", PreparingRebalance, 1, 0)
	late := w.client("g", "late")
	w.settings.InitialDelayMS = 3000
	late.joins()
	w.settle()
	w.is("g", PreparingRebalance, 2, 1)
	must(t, "leave", r.Members[0].Err, nil)
	w.pass(3 * time.Second)
	late.joined()
	if late.generation != 3 {
		t.Errorf("generation %d", late.generation)
	}
}
