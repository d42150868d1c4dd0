package group

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/internal/foldtest"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// draw draws entries out of a small world, so that most entries of a shuffled
// ledger still meet what they name.
type draw struct{ t *rapid.T }

func (d draw) some(label string, n int) int { return rapid.IntRange(0, n).Draw(d.t, label) }
func (d draw) coin(label string) bool       { return rapid.Bool().Draw(d.t, label) }
func (d draw) rarely(label string) bool     { return d.some(label, 9) == 9 }

func (d draw) agent() siltstone.Incarnation { return siltstone.Incarnation(d.some("agent", 3)) }

func (d draw) id() string { return rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(d.t, "group") }

func (d draw) partition() TopicPartition {
	topic := rapid.SampledFrom([]uint32{1, 2, math.MaxUint32}).Draw(d.t, "topic")
	return at(topic, rapid.SampledFrom([]int32{0, 1, math.MaxInt32}).Draw(d.t, "partition"))
}

func (d draw) partitions() []TopicPartition {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) TopicPartition { return draw{t}.partition() }), 0, 4, rapid.ID[TopicPartition]).Draw(d.t, "partitions")
}

func (d draw) committed(tp TopicPartition) Committed {
	number := rapid.OneOf(rapid.Just(int64(-1)), rapid.Int64Range(0, 9), rapid.Int64())
	return Committed{
		TopicPartition: tp,
		Offset:         rapid.OneOf(rapid.Int64Range(0, 9), rapid.Int64Min(0)).Draw(d.t, "offset"),
		Epoch:          rapid.OneOf(rapid.Int32Range(-1, 3), rapid.Int32()).Draw(d.t, "epoch"),
		Metadata:       rapid.SampledFrom([]string{"", "m", "metadata"}).Draw(d.t, "metadata"),
		TimeMS:         number.Draw(d.t, "time"),
		ExpireMS:       number.Draw(d.t, "expiry"),
	}
}

// info draws a group as the Machine would give it, of a generation from the
// least on.
func (d draw) info(least int32) *Info {
	i := &Info{Type: rapid.SampledFrom([]string{"", "consumer", "connect"}).Draw(d.t, "type"), Generation: least + int32(d.some("generation", 2)), ChangedMS: int64(d.some("changed", 1000))}
	for n := range d.some("members", 3) {
		m := Member{ID: fmt.Sprintf("m%d", n), ClientID: rapid.SampledFrom([]string{"", "x", "y"}).Draw(d.t, "client"), ClientHost: rapid.SampledFrom([]string{"", "/1", "/2"}).Draw(d.t, "host")}
		if d.coin("static") {
			instance := fmt.Sprintf("i%d", n)
			m.Instance = &instance
		}
		m.SessionMS, m.RebalanceMS = rapid.Int32().Draw(d.t, "session"), int32(d.some("rebalance", 1))
		m.Subscription = rapid.SampledFrom([][]byte{nil, []byte("s"), []byte("subscription")}).Draw(d.t, "subscription")
		m.Assignment = rapid.SampledFrom([][]byte{nil, []byte("a")}).Draw(d.t, "assignment")
		i.Members = append(i.Members, m)
	}
	if len(i.Members) > 0 {
		i.Protocol, i.Assigned = "range", d.coin("assigned")
		i.Leader = rapid.SampledFrom(i.Members).Draw(d.t, "leader").ID
	}
	return i
}

// group draws an update of a group that may be made to one of a generation.
func (d draw) group(id string, generation int32) GroupUpdate {
	u := GroupUpdate{ID: id, Delete: d.some("delete", 3) == 0}
	if d.coin("set") {
		if u.Delete {
			generation = 0
		}
		u.Set = d.info(generation)
	}
	tps := d.partitions()
	n := rapid.IntRange(0, len(tps)).Draw(d.t, "forgotten")
	u.Forget = tps[:n]
	for _, tp := range tps[n:] {
		u.Commit = append(u.Commit, d.committed(tp))
	}
	return u
}

// body draws an entry that may break any rule.
func (d draw) body() Body {
	epoch := siltstone.Epoch(d.some("epoch", 4))
	if d.some("kind", 3) == 0 {
		return &Lead{epoch, d.agent()}
	}
	u := &Update{Epoch: epoch, Writer: d.agent()}
	for range d.some("groups", 2) {
		g := d.group(d.id(), int32(d.some("generation", 2)))
		if d.rarely("stranger") && g.Set != nil {
			g.Set.Leader = "stranger"
		}
		if d.rarely("twice") && len(g.Commit) > 0 {
			g.Forget = append(g.Forget, g.Commit[0].TopicPartition)
		}
		u.Groups = append(u.Groups, g)
	}
	return u
}

// valid draws an entry that follows from the state, as a correct writer's would.
func (d draw) valid(s *State) Body {
	if s.leader == 0 || d.some("lead", 9) == 0 {
		return &Lead{s.epoch + 1 + siltstone.Epoch(d.some("skipped", 1)), d.agent()}
	}
	u := &Update{Epoch: s.epoch, Writer: s.leader}
	named := map[string]bool{}
	for range d.some("groups", 3) {
		id, generation := d.id(), int32(0)
		if named[id] {
			continue
		}
		named[id] = true
		if g, ok := s.Group(id); ok {
			generation = g.Generation
		}
		u.Groups = append(u.Groups, d.group(id, generation))
	}
	return u
}

// drawLedger draws a ledger, most of whose entries follow from the ones before them.
func drawLedger(t *rapid.T) []ledger.Entry {
	s, d := New(), draw{t}
	entries := make([]ledger.Entry, d.some("entries", 30)+1)
	for i := range entries {
		var b Body
		valid := d.some("valid", 4) > 0
		if valid {
			b = d.valid(s)
		} else {
			b = d.body()
		}
		entries[i] = ledger.Entry{Seq: coordinator.Seq(i + 1), Kind: b.Kind(), Body: b.Encode()}
		c, err := s.Apply(entries[i])
		if err != nil {
			t.Fatal(err)
		}
		if valid && c.Void != "" {
			t.Fatalf("%T %+v of a correct writer is void: %s", b, b, c.Void)
		}
	}
	return entries
}

// fold folds, and checks after each entry what holds of every state.
func fold(t *rapid.T, s *State, entries []ledger.Entry) {
	for _, e := range entries {
		epoch, generations := s.epoch, map[*Group]int32{}
		for g := range s.Groups() {
			generations[g] = g.Generation
		}
		c, err := s.Apply(e)
		if err != nil {
			t.Fatal(err)
		}
		if s.epoch < epoch || c.Elected != (s.epoch > epoch) {
			t.Fatalf("epoch %d became %d, elected %v", epoch, s.epoch, c.Elected)
		}
		for g := range s.Groups() {
			if why := g.check(); why != "" || g.Generation < generations[g] {
				t.Fatalf("group %q: %s, of generation %d after %d", g.ID, why, g.Generation, generations[g])
			}
			for tp, c := range g.Offsets {
				if c.TopicPartition != tp || c.Offset < 0 || tp.Partition < 0 {
					t.Fatalf("group %q: %+v has %+v", g.ID, tp, c)
				}
			}
		}
	}
}

func TestCheckpointAndTailAreTheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { foldtest.CheckpointAndTail(t, drawLedger(t), New, fold) })
}

func TestAnyOrderIsFolded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fold(t, New(), rapid.Permutation(drawLedger(t)).Draw(t, "order"))
	})
}

func TestBodiesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &State{epoch: 3, leader: alice, groups: map[string]*Group{}}
		b := draw{t}.valid(s)
		again, err := Decode(b.Kind(), b.Encode())
		if d := cmp.Diff(b, again, cmpopts.EquateEmpty()); err != nil || d != "" {
			t.Fatalf("%v %s", err, d)
		}
	})
}

// What is packed by SizeBytes fits.
func TestSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t}
		u := &Update{Epoch: siltstone.Epoch(rapid.Int32Min(0).Draw(t, "epoch")), Writer: alice}
		most, commits := UpdateBytes, 0
		for range d.some("groups", 3) {
			g := d.group(rapid.String().Draw(t, "id"), 0)
			most += g.SizeBytes()
			commits += len(g.Commit) + len(g.Forget)
			u.Groups = append(u.Groups, g)
		}
		if n := len(u.Encode()); n > most || n+20+(len(u.Groups)*10)+commits*40 < most {
			t.Fatalf("%d bytes, at most %d were foretold", n, most)
		}
		g := d.group("a", 0)
		whole, parts := g.SizeBytes(), (&GroupUpdate{ID: g.ID, Set: g.Set, Forget: g.Forget}).SizeBytes()
		for i := range g.Commit {
			parts += g.Commit[i].SizeBytes()
		}
		if whole != parts {
			t.Fatalf("%d bytes, and %d of its parts", whole, parts)
		}
	})
}

func FuzzDecode(f *testing.F) {
	foldtest.FuzzDecode(f, goldenBodies, Decode, func(kind byte, body []byte) error {
		_, err := folded(goldenBodies[:2]...).Apply(ledger.Entry{Kind: kind, Body: body})
		return err
	})
}

func FuzzRestore(f *testing.F) {
	next := update(GroupUpdate{ID: "consumers", Forget: []TopicPartition{at(7, 1)}, Commit: []Committed{offset(7, 0, 3)}})
	foldtest.FuzzRestore(f, goldenState(), New, func(s *State) {
		s.epoch, s.leader = next.Epoch, next.Writer
		if c, err := s.Apply(ledger.Entry{Kind: KindUpdate, Body: next.Encode()}); err != nil || c.Void != "" {
			panic(fmt.Sprint(c, err))
		}
	})
}
