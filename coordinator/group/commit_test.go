package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// partOf is the share of a partition in a commit.
func partOf(tp TopicPartition, off int64) CommitPart {
	return CommitPart{Committed: Committed{TopicPartition: tp, Offset: off, Epoch: -1, ExpireMS: -1}}
}

func TestCommitParts(t *testing.T) {
	w, cs := stable(t, 1)
	w.settings.MaxMetadataBytes = 10
	r := cs[0].commits(at(1, 0), 5)
	r2 := outsider("g", at(1, 1), 6)
	r2.Member, r2.Generation = cs[0].id, 1
	r2.Parts[0].Metadata, r2.Parts[0].Epoch, r2.Parts[0].ExpireMS = "0123456789", 3, 77
	r2.Parts = append(r2.Parts,
		partOf(at(9, 0), 1), partOf(at(1, 4), 1), partOf(at(1, 2), -1), partOf(at(1, 3), 1), partOf(at(2, 0), 7))
	r2.Parts[4].Metadata = "0123456789x"
	w.handle(r2)
	if !w.waits(r) || !w.waits(r2) || w.committed("g", at(1, 0)) != -1 {
		t.Fatal("answered before it is folded")
	}
	w.settle()
	for i, want := range []error{nil, ErrUnknownPartition, ErrUnknownPartition, ErrInvalidRequest, ErrMetadataTooLarge, nil} {
		must(t, fmt.Sprint("part ", i), r2.Parts[i].Err, want)
	}
	must(t, "commit", r2.Err, nil)
	if w.entries != 3 {
		t.Errorf("%d entries, one of them with both commits", w.entries)
	}

	f := &Fetch{Call: Call{Group: "g"}, Generation: -1, Stable: true, All: true}
	must(t, "fetch", w.answer(f), nil)
	want := []FetchPart{{at(1, 0), 5, -1, ""}, {at(1, 1), 6, 3, "0123456789"}, {at(2, 0), 7, -1, ""}}
	if d := cmp.Diff(want, f.Parts); d != "" {
		t.Error(d)
	}
	f = &Fetch{Call: Call{Group: "g"}, Generation: -1, Parts: []FetchPart{{TopicPartition: at(2, 0)}, {TopicPartition: at(9, 9)}, {TopicPartition: at(1, 1)}}}
	must(t, "fetch", w.answer(f), nil)
	want = []FetchPart{{at(2, 0), 7, -1, ""}, {at(9, 9), -1, -1, ""}, {at(1, 1), 6, 3, "0123456789"}}
	if d := cmp.Diff(want, f.Parts); d != "" {
		t.Error(d)
	}
	if o := w.fold.groups["g"].Offsets[at(1, 1)]; o.ExpireMS != 77 || o.TimeMS != w.now.UnixMilli() {
		t.Errorf("%+v", o)
	}

	// Nothing of it can be stored: it is answered at once.
	r3 := outsider("g", at(9, 0), 6)
	r3.Member, r3.Generation = cs[0].id, 1
	must(t, "commit", w.answer(r3), nil)
	must(t, "its part", r3.Parts[0].Err, ErrUnknownPartition)
	if w.propose() {
		t.Errorf("proposed %+v", w.inFlight)
	}
	must(t, "of nothing", w.answer(&Commit{Call: Call{Group: "new"}, Generation: -1}), nil)
	w.is("new", Dead, 0, 0)
}

// All that is decided before the next entry goes into it, the last of each partition.
func TestCommitsAreJoined(t *testing.T) {
	w := newWorld(t)
	var all []*Commit
	for i := range 1000 {
		r := outsider(fmt.Sprint("g", i%10), at(1, int32(i%3)), int64(i))
		w.handle(r)
		all = append(all, r)
	}
	w.settle()
	if w.entries != 1 {
		t.Errorf("%d entries", w.entries)
	}
	for _, r := range all {
		if w.waits(r) || r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	for g := range 10 {
		for p := range 3 {
			want := int64(-1)
			for i := range 1000 {
				if i%10 == g && i%3 == p {
					want = int64(i)
				}
			}
			if got := w.committed(fmt.Sprint("g", g), at(1, int32(p))); got != want {
				t.Errorf("g%d, partition %d: %d, want %d", g, p, got, want)
			}
		}
	}
}

// What does not fit into one entry goes into several.
func TestCommitsOverSeveralEntries(t *testing.T) {
	w := newWorld(t)
	w.settings.MaxMetadataBytes = 1 << 20
	w.o.Exists = func(TopicPartition) bool { return true }
	w.elect()
	r := &Commit{Call: Call{Group: "g"}, Generation: -1}
	for i := range 300 {
		p := partOf(at(7, int32(i)), int64(i))
		p.Metadata = strings.Repeat("x", 4096)
		r.Parts = append(r.Parts, p)
	}
	huge := partOf(at(7, 300), 1)
	huge.Metadata = strings.Repeat("x", ledger.MaxBodyBytes)
	r.Parts = append(r.Parts, huge)
	w.handle(r)
	other := outsider("h", at(1, 0), 5)
	w.handle(other)
	var late *Commit
	for w.propose() {
		if !w.waits(r) && w.committed("g", at(7, 298)) < 0 {
			t.Error("answered before all of it is folded")
		}
		if late == nil {
			late = outsider("g", at(7, 299), 1000)
			w.handle(late)
		}
		w.folds()
		if w.waits(r) == w.waits(other) && w.entries == 1 {
			t.Error("the small one waits for the rest of the large one")
		}
		if w.entries > 10 {
			t.Fatal("it does not end")
		}
	}
	if w.entries < 4 || w.entries > 5 {
		t.Errorf("%d entries", w.entries)
	}
	must(t, "commit", r.Err, nil)
	must(t, "one over the limit of an entry", r.Parts[300].Err, ErrMetadataTooLarge)
	for i := range 299 {
		if got := w.committed("g", at(7, int32(i))); got != int64(i) {
			t.Fatalf("partition %d: %d", i, got)
		}
	}
	if got := w.committed("g", at(7, 299)); got != 1000 || w.waits(late) {
		t.Errorf("the last: %d", got)
	}
}

// A commit that came before a static member's successor is folded before it
// too, so the successor finds it: never the other way round.
func TestCommitBeforeSuccessor(t *testing.T) {
	w, _, follower := statics(t)
	w.settings.MaxMetadataBytes = 400 << 10
	r := follower.commits(at(1, 0), 5)
	large := outsider("g", at(1, 1), 6)
	large.Member, large.Generation, large.Instance = follower.id, 1, follower.instance
	for i := range 3 {
		p := partOf(at(1, int32(i)), 6)
		p.Metadata = strings.Repeat("x", 300<<10)
		large.Parts = append(large.Parts, p)
	}
	large.Parts = large.Parts[1:]
	w.handle(large)
	f := follower.again()
	f.joins()
	for w.propose() {
		w.folds()
		in := slices.ContainsFunc(w.fold.groups["g"].Members, func(m Member) bool { return m.ID != follower.id && *m.Instance == "b" })
		if in && w.committed("g", at(1, 2)) != 6 || !w.waits(f.join) && w.waits(r) {
			t.Error("the successor is in before the commits of its predecessor")
		}
	}
	f.joined()
	if w.entries < 4 {
		t.Errorf("%d entries: they were meant to be too many for one", w.entries)
	}
}

// A generation that is decided and not folded ends the commits of the one before.
func TestCommitWhileGenerationForms(t *testing.T) {
	w, cs := stable(t, 2)
	cs[0].joins()
	before := cs[1].commits(at(1, 0), 5)
	cs[1].joins()
	must(t, "a commit after", cs[1].commits(at(1, 0), 6).Err, ErrRebalanceInProgress)
	w.propose()
	must(t, "and in flight", cs[1].commits(at(1, 0), 7).Err, ErrRebalanceInProgress)
	w.folds()
	must(t, "the commit before", before.Err, nil)
	if got := w.committed("g", at(1, 0)); got != 5 {
		t.Errorf("committed %d", got)
	}
}

func TestPlantedOldGenerationCommits(t *testing.T) {
	for _, bug := range []bool{false, true} {
		w := newWorld(t)
		if bug {
			w.o.Bug = planted.ForTest(t, planted.OldGenerationCommits)
			w.elect()
		}
		c := w.client("g", "client")
		settleIn(c)
		c.joins()
		w.settle()
		c.joined()
		c.syncs()
		w.settle()
		must(t, "commit", c.commits(at(1, 0), 9).Err, nil)
		w.settle()
		c.generation = 1
		r := c.commits(at(1, 0), 5)
		w.settle()
		want := int64(9)
		if bug {
			want = 5
		} else {
			must(t, "an old generation's commit", r.Err, ErrIllegalGeneration)
		}
		if got := w.committed("g", at(1, 0)); got != want {
			t.Errorf("bug %v: committed %d, want %d", bug, got, want)
		}
	}
}
