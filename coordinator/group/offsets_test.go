package group

import (
	"slices"
	"testing"
	"time"
)

func (w *world) deletesOffsets(id string, tps ...TopicPartition) *DeleteOffsets {
	w.t.Helper()
	r := &DeleteOffsets{Call: Call{Group: id}}
	for _, tp := range tps {
		r.Parts = append(r.Parts, DeletePart{TopicPartition: tp})
	}
	w.handle(r)
	return r
}

// deletes deletes a group, and says whether it waits.
func (w *world) deletes(id string) *Delete {
	w.t.Helper()
	r := &Delete{Call{Group: id}}
	w.handle(r)
	return r
}

func TestDeleteOffsets(t *testing.T) {
	w := newWorld(t)
	c := w.client("g", "client") // reads topic a
	d := w.client("g", "client")
	d.protocols = []Protocol{{"range", reads("c", "gone", "a")}}
	w.handle(outsider("g", at(1, 0), 1))
	w.handle(outsider("g", at(2, 0), 2))
	w.handle(outsider("g", at(3, 0), 3))
	settleIn(c, d)
	r := w.deletesOffsets("g", at(1, 0), at(2, 0), at(3, 0), at(2, 1), at(77, 0))
	if !w.waits(r) || w.committed("g", at(2, 0)) != 2 {
		t.Error("answered before it is folded")
	}
	w.propose()
	second := w.deletesOffsets("g", at(2, 0))
	if !w.waits(second) {
		t.Error("answered before what is in flight is folded")
	}
	w.folds()
	must(t, "the second", second.Parts[0].Err, nil)
	if w.waits(second) || w.propose() {
		t.Error("it waits for more, and there is nothing")
	}
	for i, want := range []error{ErrSubscribed, nil, ErrSubscribed, nil, ErrUnknownPartition} {
		must(t, "part", r.Parts[i].Err, want)
	}
	for i, want := range []int64{1, -1, 3} {
		if got := w.committed("g", at(uint32(i+1), 0)); got != want {
			t.Errorf("topic %d: %d, want %d", i+1, got, want)
		}
	}

	// Nobody knows what a member reads whose metadata is broken.
	w = newWorld(t)
	w.handle(outsider("g", at(2, 0), 2))
	c = w.client("g", "client")
	c.protocols = []Protocol{{"range", []byte{0, 1, 0}}}
	settleIn(c)
	must(t, "of a member that cannot be read", w.deletesOffsets("g", at(2, 0)).Parts[0].Err, ErrSubscribed)
	c.leaves()
	w.settle()
	must(t, "of no members", w.deletesOffsets("g", at(2, 0)).Parts[0].Err, nil)
	w.settle()
	if got := w.committed("g", at(2, 0)); got != -1 {
		t.Errorf("committed %d", got)
	}

	// Other types may use anything.
	w = newWorld(t)
	w.handle(&Join{
		Call: Call{Group: "g"}, Type: "connect", Protocols: []Protocol{{"default", nil}}, SessionMS: 10_000,
	})
	w.settle()
	must(t, "of a group of another type", w.deletesOffsets("g", at(2, 0)).Err, ErrNotEmpty)
}

// Commits, deletions of offsets and of the group follow one another, whatever
// of it is folded between.
func TestOffsetsFollowOneAnother(t *testing.T) {
	commit := func(off int64) func(w *world) Request {
		return func(w *world) Request { r := outsider("g", at(1, 0), off); w.handle(r); return r }
	}
	forget := func(w *world) Request { return w.deletesOffsets("g", at(1, 0)) }
	remove := func(w *world) Request { return w.deletes("g") }
	for name, c := range map[string]struct {
		steps []func(w *world) Request
		want  int64
		group bool
	}{
		"commit, commit":                 {[]func(*world) Request{commit(1), commit(2)}, 2, true},
		"commit, forget":                 {[]func(*world) Request{commit(1), forget}, -1, true},
		"commit, forget, commit":         {[]func(*world) Request{commit(1), forget, commit(3)}, 3, true},
		"commit, delete":                 {[]func(*world) Request{commit(1), remove}, -1, false},
		"commit, delete, commit":         {[]func(*world) Request{commit(1), remove, commit(3)}, 3, true},
		"commit, delete, commit, forget": {[]func(*world) Request{commit(1), remove, commit(3), forget}, -1, true},
		"commit, delete, delete":         {[]func(*world) Request{commit(1), remove, remove}, -1, false},
		"commit, forget, delete":         {[]func(*world) Request{commit(1), forget, remove}, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			for folds := range 1 << (2 * len(c.steps)) {
				w := newWorld(t)
				var asked []Request
				for i, step := range c.steps {
					asked = append(asked, step(w))
					if folds>>(2*i)&1 != 0 && w.inFlight != nil {
						w.folds()
					}
					if folds>>(2*i)&2 != 0 {
						w.propose()
					}
				}
				if w.inFlight != nil {
					w.folds()
				}
				w.settle()
				for i, r := range asked {
					if w.waits(r) || r.Common().Err != nil {
						t.Errorf("folds %b: step %d waits %v: %v", folds, i, w.waits(r), r.Common().Err)
					}
				}
				if got := w.committed("g", at(1, 0)); got != c.want {
					t.Errorf("folds %b: committed %d, want %d", folds, got, c.want)
				}
				_, there := w.fold.Group("g")
				// With its last offset, a group may be gone that was only made by it.
				if there != c.group && c.want != -1 || c.group == (w.describe("g").Phase == Dead) && there == c.group {
					t.Errorf("folds %b: folded %v, %s", folds, there, w.describe("g").Phase)
				}
			}
		})
	}
}

func TestDeleteGroup(t *testing.T) {
	w, cs := stable(t, 1)
	cs[0].commits(at(1, 0), 5)
	must(t, "with a member", w.deletes("g").Err, ErrNotEmpty)
	r := cs[0].leaves()
	must(t, "before it is known that the last has gone", w.deletes("g").Err, ErrNotEmpty)
	w.settle()
	must(t, "leave", r.Err, nil)
	d := w.deletes("g")
	if !w.waits(d) {
		t.Fatal("answered before it is folded")
	}
	w.is("g", Empty, 2, 0)
	w.settle()
	must(t, "delete", d.Err, nil)
	w.is("g", Dead, 0, 0)
	if len(w.m.groups) != 0 {
		t.Error("something of it is left")
	}
	must(t, "again", w.deletes("g").Err, ErrNotFound)

	// One that joins meanwhile makes it anew, with nothing of what was.
	w, cs = stable(t, 1)
	cs[0].commits(at(1, 0), 5)
	cs[0].leaves()
	w.settle()
	d = w.deletes("g")
	w.propose()
	late := w.client("g", "late")
	late.joins()
	w.folds()
	must(t, "delete", d.Err, nil)
	w.settle()
	late.joined()
	if w.committed("g", at(1, 0)) != -1 || late.generation < 1 {
		t.Errorf("committed %d, generation %d", w.committed("g", at(1, 0)), late.generation)
	}

	// So too in the same entry.
	w, cs = stable(t, 1)
	cs[0].commits(at(1, 0), 5)
	cs[0].leaves()
	w.settle()
	d = w.deletes("g")
	late = w.client("g", "late")
	late.joins()
	w.settle()
	late.joined()
	must(t, "delete", d.Err, nil)
	if w.committed("g", at(1, 0)) != -1 {
		t.Error("its offset is still there")
	}

	// Offsets that are committed meanwhile make a group that never had members.
	for _, proposed := range []bool{false, true} {
		w, cs = stable(t, 1)
		cs[0].leaves()
		w.settle()
		w.deletes("g")
		if proposed {
			w.propose()
		}
		w.handle(outsider("g", at(1, 0), 5))
		w.settle()
		if got, want := w.m.List(), []Listed{{"g", "", Empty}}; !slices.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}

	// A group of which there is only an id handed out.
	w = newWorld(t)
	c := w.client("p", "client")
	c.id = c.asks().MemberID
	d = w.deletes("p")
	w.settle()
	must(t, "delete", d.Err, nil)
	must(t, "join", c.asks().Err, ErrUnknownMember)
}

func TestTopicsDeleted(t *testing.T) {
	w, cs := stable(t, 1)
	cs[0].commits(at(1, 0), 1)
	cs[0].commits(at(2, 0), 2)
	w.settle()
	cs[0].commits(at(2, 1), 3)
	w.propose()
	r := cs[0].commits(at(2, 2), 4)
	delete(w.topics, "b")
	w.m.TopicsDeleted(w.now)
	w.collect()
	w.settle()
	must(t, "a commit that was taken", r.Err, nil)
	for p, want := range []int64{-1, -1, -1} {
		if got := w.committed("g", at(2, int32(p))); got != want {
			t.Errorf("partition %d: %d, want %d", p, got, want)
		}
	}
	if got := w.committed("g", at(1, 0)); got != 1 {
		t.Errorf("of another topic: %d", got)
	}
	before := w.entries
	w.m.TopicsDeleted(w.now)
	w.settle()
	if w.entries != before {
		t.Error("an entry for nothing")
	}

	// A topic of the old name begins anew.
	w.topics["b"] = 9
	if got := w.committed("g", at(9, 0)); got != -1 {
		t.Errorf("a new topic begins at %d", got)
	}
}

func days(n float64) time.Duration { return time.Duration(n * 24 * float64(time.Hour)) }

func TestSimpleGroupsExpire(t *testing.T) {
	w := newWorld(t)
	w.handle(outsider("g", at(1, 0), 1))
	keep := outsider("g", at(1, 1), 2)
	keep.Parts[0].ExpireMS = w.now.Add(days(30)).UnixMilli()
	w.handle(keep)
	soon := outsider("g", at(1, 2), 3)
	soon.Parts[0].ExpireMS = w.now.Add(time.Hour).UnixMilli()
	w.handle(soon)
	w.pass(days(1))
	w.handle(outsider("g", at(1, 3), 4))
	check := func(want ...int64) {
		t.Helper()
		for p, want := range want {
			if got := w.committed("g", at(1, int32(p))); got != want {
				t.Errorf("partition %d: %d, want %d", p, got, want)
			}
		}
	}
	w.settle()
	check(1, 2, -1, 4)
	w.pass(days(5.9))
	check(1, 2, -1, 4)
	w.pass(days(0.2))
	check(-1, 2, -1, 4)
	w.pass(days(1))
	check(-1, 2, -1, -1)
	w.is("g", Empty, 0, 0)
	w.pass(days(22))
	w.is("g", Dead, 0, 0)
}

func TestConsumerGroupsExpire(t *testing.T) {
	w, cs := stable(t, 1) // reads topic a
	keepAlive := func(d time.Duration) {
		t.Helper()
		w.settle()
		for end := w.now.Add(d); w.now.Before(end); {
			w.pass(30 * time.Minute)
			must(t, "heartbeat", cs[0].beats(), nil)
		}
	}
	cs[0].session = 1_800_001
	w.settings.MaxSessionMS = 1_800_001
	cs[0].joins()
	w.settle()
	cs[0].joined()
	cs[0].syncs()
	w.settle()
	cs[0].commits(at(1, 0), 1)
	cs[0].commits(at(2, 0), 2)
	w.settle()
	keepAlive(days(6.9))
	if got := w.committed("g", at(2, 0)); got != 2 {
		t.Errorf("early: %d", got)
	}
	keepAlive(days(0.2))
	if a, b := w.committed("g", at(1, 0)), w.committed("g", at(2, 0)); a != 1 || b != -1 {
		t.Errorf("of a topic that it reads %d, of another %d", a, b)
	}

	// From when it is empty on, whatever was committed when.
	cs[0].leaves()
	w.pass(days(3))
	w.handle(outsider("g", at(3, 0), 3)) // by an admin
	w.pass(days(3.9))
	if a, c := w.committed("g", at(1, 0)), w.committed("g", at(3, 0)); a != 1 || c != 3 {
		t.Errorf("early: %d, %d", a, c)
	}
	w.pass(days(0.2))
	if a, c := w.committed("g", at(1, 0)), w.committed("g", at(3, 0)); a != -1 || c != 3 {
		t.Errorf("%d, %d", a, c)
	}
	w.pass(days(3))
	w.is("g", Dead, 0, 0)
	if _, ok := w.fold.Group("g"); ok || len(w.m.groups) > 0 {
		t.Error("something is left of it")
	}
}

// An empty group without offsets is not kept; one whose members rebalance is.
func TestGroupsWithNothingExpire(t *testing.T) {
	w, cs := stable(t, 1)
	other, handed := w.client("h", "client"), w.client("p", "client")
	other.session, handed.session = 1_800_000, 1_800_000
	settleIn(other)
	cs[0].leaves()
	w.handle(outsider("p", at(1, 0), 1))
	w.deletesOffsets("p", at(1, 0))
	handed.id = handed.asks().MemberID
	w.pass(11 * time.Minute)
	w.is("g", Dead, 0, 0)
	w.is("h", Stable, 1, 1)
	w.is("p", Empty, 0, 0) // somebody is about to join
	handed.asks()
	w.settle()
	handed.joined()
}
