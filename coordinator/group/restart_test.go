package group

import (
	"errors"
	"testing"
	"time"
)

// In each scene, whoever takes over goes on in the generation that was folded,
// with its members, assignments and offsets.
func TestTakeoverInEveryState(t *testing.T) {
	for scene, begin := range scenes {
		for _, folded := range []bool{false, true} {
			w, _ := begin(t)
			if folded {
				w.propose()
			}
			w.crash(folded)
			d := w.describe("g")
			f, there := w.fold.Group("g")
			if !there {
				if d.Phase != Dead {
					t.Errorf("%s: nothing is folded, and it is %s", scene, d.Phase)
				}
				continue
			}
			want := Stable
			if len(f.Members) == 0 {
				want = Empty
			} else if !f.Assigned {
				want = CompletingRebalance
			}
			if d.Phase != want || d.Generation != f.Generation || len(d.Members) != len(f.Members) {
				t.Errorf("%s: %s in generation %d with %d members; want %s, %d, %d", scene, d.Phase, d.Generation, len(d.Members), want, f.Generation, len(f.Members))
			}
			if w.propose() {
				t.Errorf("%s: taken over, and something to store: %+v", scene, w.inFlight)
			}
		}
	}
}

// A group goes on in the same generation through a restart at every step of a
// rebalance. Who has no answer asks again.
func TestRestartAtEveryStep(t *testing.T) {
	for crashAt := range 8 {
		for _, folded := range []bool{false, true} {
			w := newWorld(t)
			a, b := w.client("g", "a"), w.client("g", "b")
			step := 0
			restart := func() {
				if step == crashAt {
					w.crash(folded)
				}
				step++
			}
			a.joins()
			b.joins()
			restart() // 0: all have joined, nothing is proposed
			w.propose()
			restart() // 1: the generation is in flight
			if w.inFlight != nil {
				w.folds()
			}
			restart() // 2: it is folded
			for _, c := range []*client{a, b} {
				if r := c.joins(); errors.Is(r.Err, ErrUnknownMember) { // its id was only handed out
					c.id = ""
					c.joins()
				}
			}
			w.settle()
			a.joined()
			b.joined()
			if a.generation != 1 || b.generation != 1 {
				t.Fatalf("step %d: generations %d and %d", crashAt, a.generation, b.generation)
			}
			restart() // 3: the members know
			b.syncs()
			a.syncs()
			restart() // 4: the assignments are in, nothing is proposed
			w.propose()
			restart() // 5: they are in flight
			if w.inFlight != nil {
				w.folds()
			}
			restart() // 6: they are folded
			b.syncs()
			a.syncs()
			w.settle()
			a.synced()
			b.synced()
			restart() // 7: the members know
			must(t, "heartbeat", a.beats(), nil)
			must(t, "heartbeat", b.beats(), nil)
			w.is("g", Stable, 1, 2)
		}
	}
}

// Sessions begin anew with a takeover, and members need not join again.
func TestSessionsBeginAnew(t *testing.T) {
	w, cs := stable(t, 2)
	w.pass(9 * time.Second)
	w.crash(false)
	w.pass(9 * time.Second)
	must(t, "heartbeat", cs[0].beats(), nil)
	w.pass(time.Second)
	must(t, "heartbeat", cs[0].beats(), ErrRebalanceInProgress)
	must(t, "of one that was not heard of", cs[1].beats(), ErrUnknownMember)
}

// Of a member that is loaded only the chosen protocol is known. When it joins
// again with all, as its client does, nothing has changed.
func TestLoadedMemberJoinsAgain(t *testing.T) {
	w, cs := stable(t, 2)
	w.crash(false)
	r := cs[1].joins()
	must(t, "join", r.Err, nil)
	if w.waits(r) || r.Generation != 1 {
		t.Errorf("waits %v: %+v", w.waits(r), r)
	}
	// Another protocol can be chosen again, once all have said what they have.
	cs[0].protocols = []Protocol{{"sticky", nil}, {"range", nil}}
	cs[0].joins()
	cs[1].protocols = []Protocol{{"sticky", nil}, {"range", nil}}
	cs[1].joins()
	w.settle()
	cs[0].joined()
	if cs[0].join.Protocol != "sticky" {
		t.Errorf("chosen: %s", cs[0].join.Protocol)
	}

	w, cs = stable(t, 2)
	w.crash(false)
	cs[1].protocols[0].Metadata = reads("b")
	if r := cs[1].joins(); !w.waits(r) {
		t.Errorf("with another subscription: %+v", r)
	}
}

// A generation that was folded and whose leader never heard of it does not
// wait for ever.
func TestLoadedGenerationWithoutSyncs(t *testing.T) {
	w := newWorld(t)
	a, b := w.client("g", "a"), w.client("g", "b")
	a.session, b.session = 1_800_000, 1_800_000
	gather(a, b)
	w.crash(false)
	w.is("g", CompletingRebalance, 1, 2)
	b.syncs()
	w.pass(60 * time.Second)
	must(t, "the sync that waited", b.sync.Err, ErrRebalanceInProgress)
	w.is("g", PreparingRebalance, 1, 1)

	// Its leader joins again, and is told the members.
	w = newWorld(t)
	a, b = w.client("g", "a"), w.client("g", "b")
	gather(a, b)
	w.crash(false)
	a.joins()
	a.joined()
	if !a.leads || len(a.members) != 2 || a.generation != 1 {
		t.Errorf("%+v", a.join)
	}
}

func TestStop(t *testing.T) {
	w, cs := stable(t, 2)
	other := []*client{w.client("h", "a"), w.client("h", "b")}
	gather(other...)
	other[1].syncs()
	cs[0].joins()
	w.handle(outsider("i", at(1, 0), 5))
	w.propose()
	w.handle(outsider("i", at(1, 0), 6))
	w.handle(outsider("j", at(1, 0), 6))
	if len(w.waiting) != 5 {
		t.Fatalf("%d wait", len(w.waiting))
	}
	w.depose(false)
	if r := cs[0].join; r.Generation != -1 || r.MemberID != cs[0].id {
		t.Errorf("%+v", r)
	}
	w.is("g", Stable, 1, 2)
}
