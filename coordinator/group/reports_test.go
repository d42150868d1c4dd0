package group

import (
	"fmt"
	"testing"
	"time"
)

// Field reports about groups, as far as they are the Machine's; the door's
// share is tested there.

// JoinGroup v0 has no rebalance timeout: whoever asks gives the session's for
// it, and even a negative one does not expel those who are there.
func TestReport11(t *testing.T) {
	for _, rebalance := range []int32{10_000, -1} {
		w := newWorld(t)
		w.settings.InitialDelayMS = 3000
		var cs []*client
		for i := range 3 {
			c := w.client("g", fmt.Sprint("client-", i))
			c.twoSteps, c.rebalance = false, rebalance
			c.asks()
			cs = append(cs, c)
			w.pass(100 * time.Millisecond)
		}
		w.pass(6 * time.Second)
		for _, c := range cs {
			c.joined()
			c.syncs()
		}
		w.settle()
		for range 10 {
			for _, c := range cs {
				c.synced()
				must(t, "heartbeat", c.beats(), nil)
			}
			w.pass(3 * time.Second)
		}
		w.is("g", Stable, 1, 3)
		if ms := w.fold.groups["g"].Members[0].RebalanceMS; ms != 10_000 {
			t.Errorf("a rebalance timeout of %d ms", ms)
		}
	}
}

// A pending member outlives the last real one.
func TestReport12(t *testing.T) {
	w, cs := stable(t, 1)
	w.pass(5 * time.Second)
	pending := w.client("g", "pending")
	pending.session = 20_000
	pending.id = pending.asks().MemberID
	w.pass(5 * time.Second)
	must(t, "the only member", cs[0].beats(), ErrUnknownMember)
	w.is("g", Empty, 2, 0)
	w.settings.InitialDelayMS = 3000
	late := w.client("g", "late")
	late.joins()
	w.pass(3 * time.Second)
	late.joined()
	must(t, "leaving by the pending id", pending.leaves().Members[0].Err, nil)
	late.syncs()
	w.settle()
	late.synced()
	w.is("g", Stable, 3, 1)

	// The pending one holds a rebalance up no longer than its timeout.
	pending.id = ""
	pending.id = pending.asks().MemberID
	late.joins()
	w.pass(20*time.Second - time.Millisecond)
	w.is("g", PreparingRebalance, 3, 1)
	w.pass(time.Millisecond)
	late.joined()
	w.is("g", CompletingRebalance, 4, 1)
}

// All offsets, with leader epochs; of a group that is not there, none, without error.
func TestReport13(t *testing.T) {
	w := newWorld(t)
	for topic := range uint32(2) {
		for p := range int32(4) {
			r := outsider("g", at(topic+1, 3-p), int64(10*topic)+int64(p))
			r.Parts[0].Epoch = p
			w.handle(r)
		}
	}
	w.settle()
	f := &Fetch{Call: Call{Group: "g"}, Generation: -1, All: true, Parts: []FetchPart{{TopicPartition: at(7, 7)}}}
	must(t, "fetch", w.answer(f), nil)
	if len(f.Parts) != 8 {
		t.Fatalf("%+v", f.Parts)
	}
	for i, p := range f.Parts {
		topic, partition := uint32(i/4), int32(i%4)
		if want := (FetchPart{at(topic+1, partition), int64(10*topic) + int64(3-partition), 3 - partition, ""}); p != want {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	must(t, "of nothing", w.answer(&Fetch{Call: Call{Group: "g"}, Generation: -1}), nil)
	f = &Fetch{Call: Call{Group: "nobody"}, Generation: -1, All: true}
	must(t, "of no group", w.answer(f), nil)
	if len(f.Parts) != 0 {
		t.Errorf("%+v", f.Parts)
	}
}

// A group that was deleted stays so through restarts.
func TestReport15(t *testing.T) {
	w, cs := stable(t, 1)
	cs[0].commits(at(1, 0), 5)
	w.settle()
	must(t, "an active group", w.deletes("g").Err, ErrNotEmpty)
	must(t, "and nothing changes", cs[0].beats(), nil)
	must(t, "a group that is not there", w.deletes("nobody").Err, ErrNotFound)
	cs[0].leaves()
	w.settle()
	w.crash(false)
	d := w.deletes("g")
	w.settle()
	must(t, "delete", d.Err, nil)
	for range 2 {
		w.crash(false)
		w.is("g", Dead, 0, 0)
		if l := w.m.List(); len(l) != 0 {
			t.Errorf("listed: %+v", l)
		}
		if got := w.committed("g", at(1, 0)); got != -1 {
			t.Errorf("committed %d", got)
		}
	}
	c := w.client("g", "anew")
	settleIn(c)
	if got := w.committed("g", at(1, 0)); got != -1 {
		t.Errorf("made anew, it begins at %d", got)
	}
}

// Two clients with one instance id, 20 rounds, with a third that joins: at no
// time do both have an assignment that is taken for theirs.
func TestReport16(t *testing.T) {
	w := newWorld(t)
	third := w.client("g", "third")
	third.session = 60_000
	settleIn(third)
	newest := w.static("g", "pod")
	newest.joins()
	for round := range 20 {
		older := newest
		newest = older.again()
		w.pass(time.Duration(round%4) * 25 * time.Millisecond)
		if round%3 == 0 {
			third.joins()
		}
		if round%5 == 0 {
			w.propose()
		}
		newest.joins()
		older.id = older.join.MemberID
		w.settle()
		for range 4 { // until all have joined and synced
			for _, c := range []*client{third, newest} {
				if !w.waits(c.join) && c.join.Err == nil {
					c.joined()
					if r := c.syncs(); !w.waits(r) && r.Err != nil {
						c.joins()
					}
				}
			}
			w.settle()
			if w.describe("g").Phase == PreparingRebalance {
				third.joins()
			}
			w.settle()
		}
		third.synced()
		newest.synced()
		w.is("g", Stable, third.generation, 2)
		must(t, "heartbeat", newest.beats(), nil)
		if older.id != "" && older.id != newest.id {
			older.generation = newest.generation
			must(t, "heartbeat of the older", older.beats(), ErrFencedInstance)
			must(t, "commit of the older", older.commits(at(1, 0), 1).Err, ErrFencedInstance)
		}
	}
	// A restart within the session changes nothing for the others.
	generation := third.generation
	n := newest.again()
	n.joins()
	w.settle()
	n.joined()
	w.is("g", Stable, generation, 2)
	must(t, "heartbeat", third.beats(), nil)
	r := &Leave{Call: Call{Group: "g"}, Members: []LeavingMember{{Instance: n.instance}}}
	w.handle(r)
	must(t, "leaving by instance id", r.Members[0].Err, nil)
	w.is("g", PreparingRebalance, generation, 1)
}
