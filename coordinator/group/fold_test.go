package group

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/internal/foldtest"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

var _ ledger.Fold[Change] = (*State)(nil)

const (
	alice siltstone.Incarnation = 0xa11ce
	bob   siltstone.Incarnation = 0xb0b
)

var leadAlice = &Lead{Epoch: 1, Leader: alice}

// folder folds bodies one after the other.
type folder struct {
	t   *testing.T
	s   *State
	seq coordinator.Seq
}

func newFolder(t *testing.T, bodies ...Body) *folder {
	return &folder{t: t, s: folded(bodies...), seq: coordinator.Seq(len(bodies))}
}

func (f *folder) apply(b Body) Change {
	f.t.Helper()
	f.seq++
	c, err := f.s.Apply(ledger.Entry{Seq: f.seq, Kind: b.Kind(), Body: b.Encode()})
	if err != nil {
		f.t.Fatalf("%T: %v", b, err)
	}
	return c
}

// must folds a body that is not void.
func (f *folder) must(b Body) Change {
	f.t.Helper()
	c := f.apply(b)
	if c.Void != "" {
		f.t.Fatalf("%T %+v is void: %s", b, b, c.Void)
	}
	return c
}

// void folds a body that breaks the rules, for a reason with these words, and changes nothing.
func (f *folder) void(why string, b Body) {
	f.t.Helper()
	before := foldtest.Rows(f.s)
	c := f.apply(b)
	if c.Void == "" || !strings.Contains(c.Void, why) {
		f.t.Errorf("%T %+v: void for %q, want %q", b, b, c.Void, why)
	}
	if c.Elected {
		f.t.Errorf("%T is void, and elects", b)
	}
	if after := foldtest.Rows(f.s); !bytes.Equal(before, after) {
		f.t.Errorf("%T is void, and changed the state", b)
	}
}

func (f *folder) group(id string) *Group {
	f.t.Helper()
	g, ok := f.s.Group(id)
	if !ok {
		f.t.Fatalf("no group %q", id)
	}
	return g
}

// update is one by alice at epoch 1.
func update(groups ...GroupUpdate) *Update { return &Update{Epoch: 1, Writer: alice, Groups: groups} }

// info is a group in a generation, with members of these ids, led by the first.
func info(generation int32, ids ...string) *Info {
	i := &Info{Type: "consumer", Generation: generation, ChangedMS: 1_800_000_000_000 + int64(generation)}
	for _, id := range ids {
		i.Members = append(i.Members, Member{
			ID: id, ClientID: "client", ClientHost: "/10.0.0.1", SessionMS: 45_000, RebalanceMS: 300_000,
			Subscription: []byte("topics"), Assignment: []byte("of " + id),
		})
		i.Protocol, i.Leader, i.Assigned = "range", ids[0], true
	}
	return i
}

// with changes an Info.
func with(i *Info, change func(*Info)) *Info {
	change(i)
	return i
}

func at(topic uint32, partition int32) TopicPartition { return TopicPartition{topic, partition} }

func offset(topic uint32, partition int32, off int64) Committed {
	return Committed{TopicPartition: at(topic, partition), Offset: off, Epoch: 1, TimeMS: 1_800_000_000_000, ExpireMS: -1}
}

func TestWhoMayAppend(t *testing.T) {
	f := newFolder(t)
	one := GroupUpdate{ID: "g", Commit: []Committed{offset(1, 0, 5)}}
	f.void("epoch 1, the shard is at 0", update(one))
	f.void("nobody leads", &Update{Groups: []GroupUpdate{one}})
	f.void("epoch 0", &Lead{Epoch: 0, Leader: alice})
	if c := f.must(leadAlice); !c.Elected || f.s.Sealed() {
		t.Errorf("%+v, sealed %v", c, f.s.Sealed())
	}
	f.void("epoch 1, the shard is at 1", leadAlice)
	f.void("epoch 1, the shard is at 1", &Lead{Epoch: 1, Leader: bob})
	f.void("epoch 1, the shard is at 1", &Lead{Epoch: 1})
	f.void("the leader is", &Update{Epoch: 1, Writer: bob, Groups: []GroupUpdate{one}})
	f.void("the leader is", &Update{Epoch: 1, Groups: []GroupUpdate{one}})
	f.must(update(one))
	f.must(&Lead{Epoch: 4, Leader: bob})
	if f.s.Epoch() != 4 || f.s.Leader() != bob {
		t.Errorf("led by %s at %d", f.s.Leader(), f.s.Epoch())
	}
	f.void("epoch 1, the shard is at 4", update(one))
	f.void("epoch 3", &Lead{Epoch: 3, Leader: alice})
	f.void("epoch 5", &Update{Epoch: 5, Writer: bob, Groups: []GroupUpdate{one}})
	if c := f.must(&Lead{Epoch: 5}); !c.Elected || !f.s.Sealed() || f.s.Leader() != 0 {
		t.Errorf("%+v, sealed %v, led by %s", c, f.s.Sealed(), f.s.Leader())
	}
	f.void("nobody leads", &Update{Epoch: 5, Writer: bob, Groups: []GroupUpdate{one}})
	f.void("nobody leads", &Update{Epoch: 5, Groups: []GroupUpdate{one}})
	f.must(&Lead{Epoch: 6, Leader: alice})
	f.must(&Update{Epoch: 6, Writer: alice, Groups: []GroupUpdate{one}})
}

func TestGroupsChange(t *testing.T) {
	f := newFolder(t, leadAlice)
	f.must(update(
		GroupUpdate{ID: "b", Set: info(1, "m1", "m2"), Commit: []Committed{offset(7, 1, 10), offset(7, 0, 20), offset(3, 5, 30)}},
		GroupUpdate{ID: "a", Commit: []Committed{offset(7, 1, 1)}},
	))
	b := f.group("b")
	if d := cmp.Diff(*info(1, "m1", "m2"), b.Info); d != "" {
		t.Error(d)
	}
	if a := f.group("a"); a.Type != "" || a.Generation != 0 || len(a.Members) > 0 || len(a.Offsets) != 1 {
		t.Errorf("of offsets only: %+v", a)
	}

	// Set leaves offsets, and offsets leave the rest.
	f.must(update(GroupUpdate{ID: "b", Set: info(2, "m2")}))
	f.must(update(GroupUpdate{ID: "b", Forget: []TopicPartition{at(7, 1), at(9, 9)}, Commit: []Committed{offset(7, 0, 21)}}))
	want := map[TopicPartition]Committed{at(7, 0): offset(7, 0, 21), at(3, 5): offset(3, 5, 30)}
	if d := cmp.Diff(want, b.Offsets); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(*info(2, "m2"), b.Info); d != "" {
		t.Error(d)
	}

	// All at once: what was is deleted first, and the generation begins anew.
	f.must(update(GroupUpdate{ID: "b", Delete: true, Set: info(0, "m3"), Forget: []TopicPartition{at(3, 5)}, Commit: []Committed{offset(8, 0, 1)}}))
	b = f.group("b")
	if d := cmp.Diff(map[TopicPartition]Committed{at(8, 0): offset(8, 0, 1)}, b.Offsets); d != "" || b.Generation != 0 || b.Leader != "m3" {
		t.Error(d, b.Info)
	}
	f.must(update(GroupUpdate{ID: "b", Delete: true}, GroupUpdate{ID: "a", Delete: true, Commit: []Committed{offset(1, 0, 2)}}))
	if _, ok := f.s.Group("b"); ok {
		t.Error("b is still there")
	}
	if d := cmp.Diff(map[TopicPartition]Committed{at(1, 0): offset(1, 0, 2)}, f.group("a").Offsets); d != "" {
		t.Error(d)
	}
}

func TestNothingToDoIsNotVoid(t *testing.T) {
	f := newFolder(t, leadAlice)
	before := foldtest.Rows(f.s)
	f.must(update())
	f.must(update(
		GroupUpdate{ID: "a"},
		GroupUpdate{ID: "b", Delete: true},
		GroupUpdate{ID: "c", Delete: true, Forget: []TopicPartition{at(1, 1)}},
	))
	if after := foldtest.Rows(f.s); !bytes.Equal(before, after) {
		t.Errorf("%x became %x", before, after)
	}
	f.must(update(GroupUpdate{ID: "a", Set: &Info{}}))
	f.group("a")
}

func TestGroupsAreSorted(t *testing.T) {
	f := newFolder(t, leadAlice)
	for _, id := range []string{"b", "", "aa", "a", "\xff", "b\x00"} {
		f.must(update(GroupUpdate{ID: id, Set: info(1)}))
	}
	var ids []string
	for g := range f.s.Groups() {
		ids = append(ids, g.ID)
	}
	if want := []string{"", "a", "aa", "b", "b\x00", "\xff"}; !slices.Equal(ids, want) {
		t.Errorf("%q, want %q", ids, want)
	}
	for g := range f.s.Groups() {
		if g.ID == "a" {
			break
		}
	}
}

// A fold is given bodies that are read only, and good during the call.
func TestFoldKeepsNothingOfTheEntry(t *testing.T) {
	instance := "instance"
	u := update(GroupUpdate{ID: "g", Set: with(info(1, "m1", "m2"), func(i *Info) { i.Members[1].Instance = &instance }), Commit: []Committed{offset(1, 0, 5)}})
	u.Groups[0].Commit[0].Metadata = "metadata"
	f := newFolder(t, leadAlice)
	body := u.Encode()
	if c, err := f.s.Apply(ledger.Entry{Kind: KindUpdate, Body: body}); err != nil || c.Void != "" {
		t.Fatal(err, c.Void)
	}
	rows := foldtest.Rows(f.s)
	for i := range body {
		body[i] = 'x'
	}
	if !bytes.Equal(rows, foldtest.Rows(f.s)) {
		t.Error("the state changed with an entry's bytes")
	}
	again := New()
	for k, v := range f.s.Rows {
		k, v := bytes.Clone(k), bytes.Clone(v)
		if err := again.Restore(k, v); err != nil {
			t.Fatal(err)
		}
		for i := range v {
			v[i] = 'x'
		}
	}
	if !bytes.Equal(rows, foldtest.Rows(again)) {
		t.Error("the state changed with a row's bytes")
	}
}

func TestOf(t *testing.T) {
	var shards [Count]int
	for i := range 16_000 {
		shards[Of(fmt.Sprintf("group-%d", i))]++
	}
	for i, n := range shards {
		if n < 800 || n > 1200 {
			t.Errorf("shard %d has %d of 16,000 groups", i, n)
		}
	}
	for id, want := range map[string]int{"": 15, "console-consumer-12345": 11, "connect-cluster": 1} {
		if got := Of(id); got != want {
			t.Errorf("group %q is of shard %d, was of %d", id, got, want)
		}
	}
	if got := Ledger(7); got != "group-07" {
		t.Error(got)
	}
}
