package group

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"
)

func TestMemberIDs(t *testing.T) {
	w := newWorld(t)
	uuid := `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	seen := map[string]bool{}
	for range 50 {
		d, s := w.client("g", "client"), w.static("g", fmt.Sprintf("i%d", len(seen)))
		d.twoSteps = false
		d.asks()
		s.asks()
		w.settle()
		d.joined()
		if s.join.Err != nil {
			t.Fatal(s.join.Err)
		}
		if !regexp.MustCompile("^client-" + uuid + "$").MatchString(d.id) {
			t.Errorf("a dynamic member is %q", d.id)
		}
		if id := s.join.MemberID; !regexp.MustCompile("^i[0-9]+-" + uuid + "$").MatchString(id) {
			t.Errorf("a static member is %q", id)
		}
		if seen[d.id] || seen[s.join.MemberID] {
			t.Fatal("an id comes twice")
		}
		seen[d.id], seen[s.join.MemberID] = true, true
		d.leaves()
		w.handle(&Leave{Call: Call{Group: "g"}, Members: []LeavingMember{{Instance: s.instance}}})
		w.settle()
	}
}

func TestTwoSteps(t *testing.T) {
	w := newWorld(t)
	c := w.client("g", "client")
	r := c.asks()
	must(t, "the first join", r.Err, ErrMemberIDRequired)
	if r.MemberID == "" || r.Generation != -1 {
		t.Errorf("%+v", r)
	}
	w.is("g", Empty, 0, 0)
	if w.propose() {
		t.Errorf("an id that was only handed out is stored: %+v", w.inFlight)
	}

	// It is no member yet.
	c.id = r.MemberID
	must(t, "heartbeat", c.beats(), ErrUnknownMember)
	other := "i"
	must(t, "join as an instance", w.answer(&Join{
		Call: Call{Group: "g"}, Member: c.id, Instance: &other, Type: "consumer", Protocols: c.protocols, SessionMS: 10_000,
	}), ErrUnknownMember)
	c.asks()
	w.settle()
	c.joined()
	if c.id != r.MemberID || c.generation != 1 || !c.leads {
		t.Errorf("%+v", c.join)
	}
}

// An id that nobody joins with is forgotten, and the group with it.
func TestPendingExpires(t *testing.T) {
	w := newWorld(t)
	c := w.client("g", "client")
	c.id = c.asks().MemberID
	w.pass(9_999 * time.Millisecond)
	if l := w.m.List(); len(l) != 1 {
		t.Errorf("%+v", l)
	}
	w.pass(time.Millisecond)
	if l := w.m.List(); len(l) != 0 || len(w.m.groups) != 0 {
		t.Errorf("%+v", l)
	}
	must(t, "too late", c.asks().Err, ErrUnknownMember)
}

func TestPendingIsWaitedFor(t *testing.T) {
	w, cs := stable(t, 1)
	late := w.client("g", "late")
	late.id = late.asks().MemberID
	cs[0].joins() // the leader: all join again
	w.settle()
	w.is("g", PreparingRebalance, 1, 1)
	late.asks()
	w.settle()
	cs[0].joined()
	late.joined()
	if late.generation != 2 || cs[0].generation != 2 {
		t.Error(late.generation, cs[0].generation)
	}

	// One that leaves instead is waited for no longer.
	third := w.client("g", "third")
	third.id = third.asks().MemberID
	cs[0].protocols = cs[0].protocols[:1]
	cs[0].joins()
	late.joins()
	w.settle()
	w.is("g", PreparingRebalance, 2, 2)
	r := third.leaves()
	w.settle()
	must(t, "leave", r.Members[0].Err, nil)
	w.is("g", CompletingRebalance, 3, 2)
	must(t, "join after leaving", w.answer(third.asks()), ErrUnknownMember)
}

// TestPendingAreBounded: over all groups of a shard, and it is the oldest that
// are forgotten, with the groups that were there for them alone.
func TestPendingAreBounded(t *testing.T) {
	w := newWorld(t)
	first, second := w.client("first", "client"), w.client("second", "client")
	for _, c := range []*client{first, second} {
		c.id = c.asks().MemberID
	}
	for i := range maxPending - 1 {
		must(t, fmt.Sprint("id ", i), w.client(fmt.Sprint("g", i), "client").asks().Err, ErrMemberIDRequired)
	}
	if len(w.m.groups) != maxPending || w.m.pending.Len() != maxPending {
		t.Errorf("%d groups and %d ids, want %d", len(w.m.groups), w.m.pending.Len(), maxPending)
	}
	must(t, "join with an id that is forgotten", w.answer(first.asks()), ErrUnknownMember)
	second.joins()
	w.settle()
	w.is("second", CompletingRebalance, 1, 1)
	w.pass(10 * time.Second)
	if len(w.m.groups) != 1 || w.m.pending.Len() != 0 {
		t.Errorf("%d groups and %d ids are left", len(w.m.groups), w.m.pending.Len())
	}
}

func TestInitialDelay(t *testing.T) {
	w := newWorld(t)
	w.settings.InitialDelayMS = 3000
	var cs []*client
	come := func() {
		c := w.client("g", fmt.Sprint("client-", len(cs)))
		c.rebalance = 8000
		c.joins()
		cs = append(cs, c)
	}
	// 0 to 3 s, on to 6 s for the second, on to 8 s and no longer for the third.
	come()
	w.pass(2900 * time.Millisecond)
	come()
	w.pass(3000 * time.Millisecond)
	w.is("g", PreparingRebalance, 0, 2)
	come()
	w.pass(2099 * time.Millisecond)
	w.is("g", PreparingRebalance, 0, 3)
	come()
	w.pass(time.Millisecond)
	w.is("g", CompletingRebalance, 1, 4)
	for _, c := range cs {
		c.joined()
	}

	// Nobody more comes.
	solo := w.client("solo", "client")
	solo.joins()
	w.pass(2999 * time.Millisecond)
	w.is("solo", PreparingRebalance, 0, 1)
	w.pass(time.Millisecond)
	w.is("solo", CompletingRebalance, 1, 1)

	// All go before it is over.
	gone := w.client("gone", "client")
	gone.joins()
	gone.leaves()
	must(t, "the join of one who left", gone.join.Err, ErrUnknownMember)
	w.settle()
	w.is("gone", Empty, 1, 0)

	// It counts only from Empty: the next rebalance takes no longer than it must.
	solo.joined()
	solo.joins()
	late := w.client("solo", "late")
	late.joins()
	solo.joins()
	w.settle()
	w.is("solo", CompletingRebalance, 2, 2)
}

func TestGroupIsFull(t *testing.T) {
	w, cs := stable(t, 2)
	w.settings.MaxMembers = 2
	third := w.client("g", "third")
	must(t, "a third, stable", third.asks().Err, ErrGroupFull)
	if third.join.MemberID != "" || third.join.Generation != -1 {
		t.Errorf("%+v", third.join)
	}
	w.is("g", Stable, 1, 2)
	// An id handed out before does not help.
	w.settings.MaxMembers = 3
	third.id = third.asks().MemberID
	w.settings.MaxMembers = 2
	must(t, "a third with an id", third.asks().Err, ErrGroupFull)
	must(t, "its id", third.asks().Err, ErrGroupFull)

	// When the limit falls, the last to join again have to go.
	w.settings.MaxMembers = 1
	must(t, "a member", cs[1].beats(), nil)
	cs[1].protocols = cs[1].protocols[:1]
	cs[1].joins()
	must(t, "the second to join again", cs[0].asks().Err, ErrGroupFull)
	w.settle()
	cs[1].joined()
	w.is("g", CompletingRebalance, 2, 1)

	// So too where the group is loaded.
	w, cs = stable(t, 3)
	w.settings.MaxMembers = 2
	w.crash(false)
	w.is("g", PreparingRebalance, 1, 3)
	for i, c := range cs {
		c.asks()
		if i == 2 {
			must(t, "the third", c.join.Err, ErrGroupFull)
		}
	}
	w.settle()
	w.is("g", CompletingRebalance, 2, 2)
}

func TestProtocolOfMostVotes(t *testing.T) {
	offer := func(names ...string) []Protocol {
		var list []Protocol
		for _, n := range names {
			list = append(list, Protocol{n, []byte(n)})
		}
		return list
	}
	for name, c := range map[string]struct {
		offers [][]Protocol
		want   string
	}{
		"the only one":           {[][]Protocol{offer("a")}, "a"},
		"what all have":          {[][]Protocol{offer("a", "b"), offer("b")}, "b"},
		"what most like":         {[][]Protocol{offer("a", "b"), offer("b", "a"), offer("b", "a")}, "b"},
		"the first, of a tie":    {[][]Protocol{offer("b", "a"), offer("a", "b")}, "b"},
		"not what few have":      {[][]Protocol{offer("x", "a"), offer("x", "a"), offer("y", "a")}, "a"},
		"one that is named anew": {[][]Protocol{offer("a", "a", "b"), offer("b", "a")}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var cs []*client
			for i, o := range c.offers {
				cl := w.client("g", fmt.Sprint("client-", i))
				cl.protocols = o
				cs = append(cs, cl)
			}
			gather(cs...)
			for _, cl := range cs {
				if cl.join.Protocol != c.want {
					t.Errorf("%s is told %q, want %q", cl.name, cl.join.Protocol, c.want)
				}
			}
			for _, m := range cs[0].members {
				if string(m.Metadata) != c.want {
					t.Errorf("the leader is told %q of %s", m.Metadata, m.ID)
				}
			}
			for _, f := range w.fold.groups["g"].Members {
				if string(f.Subscription) != c.want {
					t.Errorf("%q of %s is stored", f.Subscription, f.ID)
				}
			}
		})
	}
}

func TestMembersComeInOrder(t *testing.T) {
	w, cs := stable(t, 5)
	var told, stored, described []string
	for _, m := range cs[0].members {
		told = append(told, m.ID)
	}
	for _, f := range w.fold.groups["g"].Members {
		stored = append(stored, f.ID)
	}
	for _, m := range w.describe("g").Members {
		described = append(described, m.ID)
	}
	for i, c := range cs {
		if told[i] != c.id || stored[i] != c.id || described[i] != c.id {
			t.Errorf("member %d is %s; %s, %s, %s", i, c.id, told[i], stored[i], described[i])
		}
	}
}

// A client that has lost its connection sends its join again.
func TestJoinAgainWhileItWaits(t *testing.T) {
	w, cs := stable(t, 2)
	first := cs[0].joins()
	second := cs[0].asks()
	must(t, "the one before", first.Err, ErrRebalanceInProgress)
	if !w.waits(second) || w.waits(first) {
		t.Errorf("waits: the first %v, the second %v", w.waits(first), w.waits(second))
	}
	cs[1].joins()
	if !w.propose() {
		t.Fatal("nothing to fold")
	}
	third := cs[0].asks() // with the generation in flight
	must(t, "the one before", second.Err, ErrRebalanceInProgress)
	w.folds()
	cs[0].joined()
	if cs[0].join != third || third.Generation != 2 {
		t.Errorf("%+v", third)
	}
	w.is("g", CompletingRebalance, 2, 2)

	// With other protocols, it is for the generation after that in flight.
	cs[0].syncs()
	cs[1].syncs()
	w.settle()
	cs[0].joins()
	cs[1].joins()
	w.propose()
	cs[1].protocols = []Protocol{{"range", reads("b")}}
	late := cs[1].asks()
	w.folds()
	cs[0].joined()
	if !w.waits(late) {
		t.Errorf("answered %+v, %v", late, late.Err)
	}
	w.is("g", PreparingRebalance, 3, 2)
	cs[0].joins()
	w.settle()
	cs[1].joined()
	if i := slices.IndexFunc(w.fold.groups["g"].Members, func(m Member) bool { return m.ID == cs[1].id }); string(w.fold.groups["g"].Members[i].Subscription) != string(reads("b")) {
		t.Error("its new subscription is not in generation 4")
	}
}

// Who is in the next generation is settled when that is proposed.
func TestComingWhileGenerationForms(t *testing.T) {
	w, cs := stable(t, 1)
	cs[0].joins()
	second := w.client("g", "second")
	second.joins()
	w.propose()
	third := w.client("g", "third")
	third.joins()
	w.folds()
	cs[0].joined()
	second.joined()
	if cs[0].generation != 2 || second.generation != 2 || !w.waits(third.join) {
		t.Errorf("generations %d and %d; the third waits %v", cs[0].generation, second.generation, w.waits(third.join))
	}
	w.is("g", PreparingRebalance, 2, 3)
	must(t, "the sync of generation 2", cs[0].syncs().Err, ErrRebalanceInProgress)
}

func TestGoingWhileGenerationForms(t *testing.T) {
	w, cs := stable(t, 3)
	for _, c := range cs {
		c.joins()
	}
	w.propose()
	r := cs[1].leaves()
	must(t, "leave", r.Members[0].Err, nil)
	must(t, "the join of one who left", cs[1].join.Err, ErrUnknownMember)
	w.folds()
	cs[0].joined()
	cs[2].joined()
	w.is("g", PreparingRebalance, 2, 2)
	w.settle()
	cs[0].joins()
	cs[2].joins()
	w.settle()
	w.is("g", CompletingRebalance, 3, 2)
}

// A group that nobody is in any more takes members of any type, even before
// it is known to be empty.
func TestAnotherTypeAfterTheLastMember(t *testing.T) {
	w, cs := stable(t, 1)
	cs[0].leaves()
	r := &Join{Call: Call{Group: "g"}, Type: "connect", Protocols: []Protocol{{"default", nil}}, SessionMS: 10_000}
	w.handle(r)
	w.settle()
	must(t, "join", r.Err, nil)
	if f := w.fold.groups["g"]; f.Type != "connect" || f.Generation != 3 || r.Protocol != "default" {
		t.Errorf("%+v", f.Info)
	}
}
