package shard

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/internal/foldtest"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

var _ ledger.Fold[Change] = (*State)(nil)

// alice and bob are agents; carol never leads.
const (
	alice siltstone.Incarnation = 0xa11ce
	bob   siltstone.Incarnation = 0xb0b
	carol siltstone.Incarnation = 0xca401
)

var (
	logs = siltstone.TopicID{1} // number 7
	ops  = siltstone.TopicID{2} // number 8
)

func tp(id siltstone.TopicID, p int32) siltstone.TopicPartition {
	return siltstone.TopicPartition{Topic: id, Partition: p}
}

func object(n uint64) segment.ObjectID {
	return segment.ObjectID{Hour: 500_000, Incarnation: alice, Number: n}
}

// folder folds bodies one after the other.
type folder struct {
	t   *testing.T
	s   *State
	seq coordinator.Seq
}

func newFolder(t *testing.T, bodies ...Body) *folder {
	f := &folder{t: t, s: New()}
	for _, b := range bodies {
		f.must(b)
	}
	return f
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
	if c.Assigned != nil || c.Opened != nil || c.Trimmed != nil || c.Replaced != nil || c.Elected || c.Jumped {
		f.t.Errorf("%T is void, and its change says %+v", b, c)
	}
	if after := foldtest.Rows(f.s); !bytes.Equal(before, after) {
		f.t.Errorf("%T is void, and changed the state", b)
	}
}

func (f *folder) partition(id siltstone.TopicID, n int32) *Partition {
	f.t.Helper()
	p, ok := f.s.Partition(tp(id, n))
	if !ok {
		f.t.Fatalf("partition %s is not open", tp(id, n))
	}
	return p
}

func ranges(p *Partition) []Range { return slices.Collect(p.Ranges(0)) }

var (
	leadAlice = &Lead{Epoch: 1, Leader: alice, ISR: []siltstone.Incarnation{bob, alice}}
	openAll   = &Open{Epoch: 1, Writer: alice, Topics: []OpenTopic{{logs, 7, []int32{0, 1, 5}}, {ops, 8, []int32{0}}}}
)

func ext(number uint32, partition int32, offsets, length, timestamp int64) Extent {
	return Extent{number, partition, offsets, length, timestamp}
}

// flush is a Segment by alice at epoch 1 with one object.
func flush(n uint64, extents ...Extent) *Segment {
	o := SegmentObject{ID: object(n)}
	for _, e := range extents {
		o.Parts = append(o.Parts, Part{Extent: e, Epoch: 1})
	}
	return &Segment{Epoch: 1, Writer: alice, Objects: []SegmentObject{o}}
}

func TestSegmentAssignsOffsets(t *testing.T) {
	f := newFolder(t, leadAlice, openAll)
	c := f.must(&Segment{Epoch: 1, Writer: alice, Objects: []SegmentObject{
		{object(1), []Part{{Extent: ext(7, 0, 3, 100, 50), Epoch: 1}, {Extent: ext(8, 0, 2, 90, -1), Epoch: 1}}},
		{object(3), []Part{{Extent: ext(7, 0, 4, 200, 40), Epoch: 1}}},
	}})
	p, other := f.partition(logs, 0), f.partition(ops, 0)
	want := []Assigned{{p, object(1), 0, 3}, {other, object(1), 0, 2}, {p, object(3), 3, 4}}
	if !slices.Equal(c.Assigned, want) {
		t.Errorf("assigned %+v, want %+v", c.Assigned, want)
	}
	if d := cmp.Diff([]Range{
		{Object: object(1), Base: 0, Offsets: 3, LengthBytes: 100, MaxTimestamp: 50, Epoch: 1},
		{Object: object(3), Base: 3, Offsets: 4, LengthBytes: 200, MaxTimestamp: 40, Epoch: 1},
	}, ranges(p)); d != "" {
		t.Error(d)
	}
	if p.Next != 7 || p.SizeBytes() != 300 || other.Next != 2 {
		t.Errorf("next %d, size %d; other's next %d", p.Next, p.SizeBytes(), other.Next)
	}
	for off, want := range map[siltstone.Offset]int{0: 0, 2: 0, 3: 1, 6: 1, 7: 2, 99: 2} {
		if got := p.Find(off); got != want {
			t.Errorf("offset %d is in range %d, want %d", off, got, want)
		}
	}
	if !f.s.Live(object(1)) || f.s.Live(object(2)) {
		t.Error("object 1 is live, object 2 is not")
	}
}

func TestWhoMayAppend(t *testing.T) {
	f := newFolder(t)
	f.void("epoch", openAll) // nobody leads yet, and it is not sealed either
	f.void("epoch 0", &Open{Topics: openAll.Topics})
	f.must(leadAlice)
	f.void("leader is", &Open{Epoch: 1, Writer: bob, Topics: openAll.Topics})
	f.must(openAll)
	byBob := flush(1, ext(7, 0, 1, 1, 1))
	byBob.Writer = bob
	f.void("leader is", byBob)
	late := flush(1, ext(7, 0, 1, 1, 1))
	f.must(&Lead{Epoch: 2, Leader: bob, ISR: leadAlice.ISR})
	f.void("epoch 1", late)
	late.Epoch = 2
	f.void("leader is", late)
	f.must(&Lead{Epoch: 3})
	if !f.s.Sealed() || len(f.s.ISR()) != 0 {
		t.Error("not sealed")
	}
	f.void("epoch 2", late)
	late.Epoch = 3
	f.must(late) // anybody
	byCarol := flush(2, ext(7, 0, 1, 1, 1))
	byCarol.Epoch, byCarol.Writer = 3, carol
	f.must(byCarol)
	if next := f.partition(logs, 0).Next; next != 2 {
		t.Errorf("next is %d", next)
	}
}

func TestLead(t *testing.T) {
	f := newFolder(t, leadAlice)
	list := func(i ...siltstone.Incarnation) []siltstone.Incarnation { return i }
	f.void("epoch 0", &Lead{Epoch: 0, Leader: alice, ISR: list(alice)})
	f.void("is led by", &Lead{Epoch: 1, Leader: bob, ISR: list(bob)})
	f.void("neither", &Lead{Epoch: 1, Leader: alice, ISR: list(alice), Unclean: true})
	f.void("not in the ISR", &Lead{Epoch: 2, Leader: alice, ISR: list(bob)})
	f.void("twice", &Lead{Epoch: 2, Leader: alice, ISR: list(alice, bob, alice)})
	f.void("twice, or nobody", &Lead{Epoch: 2, Leader: alice, ISR: list(alice, 0)})
	f.void("sealed", &Lead{Epoch: 2, ISR: list(alice)})
	f.void("sealed", &Lead{Epoch: 2, Unclean: true})
	if c := f.must(&Lead{Epoch: 1, Leader: alice, ISR: list(alice)}); c.Elected {
		t.Error("a change of ISR elects nobody")
	}
	if c := f.must(&Lead{Epoch: 4, Leader: bob, ISR: list(carol, bob)}); !c.Elected || c.Jumped {
		t.Errorf("a clean election says %+v", c)
	}
	if f.s.Epoch() != 4 || f.s.Leader() != bob || !slices.Equal(f.s.ISR(), list(bob, carol)) {
		t.Errorf("epoch %d, leader %s, ISR %v", f.s.Epoch(), f.s.Leader(), f.s.ISR())
	}
	f.void("epoch 3", &Lead{Epoch: 3, Leader: carol, ISR: list(carol)})
	f.must(&Lead{Epoch: 5})
	f.void("neither", &Lead{Epoch: 5})
	f.void("is led by", &Lead{Epoch: 5, Leader: alice, ISR: list(alice)})
}

func TestUncleanJumps(t *testing.T) {
	f := newFolder(t, leadAlice, openAll, flush(1, ext(7, 0, 3, 10, 5)))
	c := f.must(&Lead{Epoch: 2, Leader: carol, ISR: []siltstone.Incarnation{carol}, Unclean: true})
	if !c.Elected || !c.Jumped {
		t.Errorf("change is %+v", c)
	}
	p, empty := f.partition(logs, 0), f.partition(logs, 1)
	if p.Next != 3+siltstone.UncleanJump || empty.Next != siltstone.UncleanJump {
		t.Fatalf("next %d and %d", p.Next, empty.Next)
	}
	e := flush(9, ext(7, 0, 2, 10, 5))
	e.Epoch, e.Writer, e.Objects[0].Parts[0].Epoch = 2, carol, 2
	f.must(e)
	if i := p.Find(100); i != 1 || p.Range(1).Base != 3+siltstone.UncleanJump {
		t.Errorf("in the hole, the next range is %d: %+v", i, ranges(p))
	}
}

func TestSegmentVoid(t *testing.T) {
	f := newFolder(t, leadAlice, openAll, flush(1, ext(7, 0, 3, 10, 5)), &Drop{[]segment.ObjectID{object(2)}})
	ok := ext(7, 0, 1, 1, 1)
	two := func(a, b uint64) *Segment {
		s := flush(a, ok)
		s.Objects = append(s.Objects, flush(b, ok).Objects...)
		return s
	}
	f.void("there already", flush(1, ok))
	f.void("given up", flush(2, ok))
	f.void("there already", two(3, 3))
	f.void("holds nothing", flush(3))
	f.void("not open", flush(3, ext(7, 2, 1, 1, 1)))
	f.void("not open", flush(3, ok, ext(9, 0, 1, 1, 1)))
	f.void("two ranges", flush(3, ok, ok))
	f.void("no or too many offsets", flush(3, ext(7, 0, 0, 1, 1)))
	f.void("no or too many offsets", flush(3, ext(7, 0, 1<<32, 1, 1)))
	f.void("no or too many bytes", flush(3, ext(7, 0, 1, 0, 1)))
	f.void("no or too many bytes", flush(3, ext(7, 0, 1, 1<<32, 1)))
	f.void("time before none", flush(3, ext(7, 0, 1, 1, -2)))
	f.void("give out", flush(3, ext(7, 0, siltstone.UncleanJump+1, 1, 1)))
	over := two(3, 4)
	over.Objects[0].Parts[0].Offsets = siltstone.UncleanJump
	f.void("give out", over)
	f.must(two(3, 4))
}

func TestEpochs(t *testing.T) {
	f := newFolder(t, leadAlice, openAll)
	part := func(n uint64, epoch siltstone.Epoch, offsets int64, earlier ...EpochRun) *Segment {
		s := flush(n, ext(7, 0, offsets, 1, 1))
		s.Epoch, s.Objects[0].Parts[0].Epoch, s.Objects[0].Parts[0].Earlier = f.s.Epoch(), epoch, earlier
		return s
	}
	f.must(part(1, 1, 10))
	f.must(&Lead{Epoch: 6, Leader: alice, ISR: leadAlice.ISR})
	f.void("epoch 7", part(2, 7, 5))
	f.void("epoch 0", part(2, 0, 5))
	f.void("of epoch 0", part(2, 3, 5, EpochRun{0, 1}))
	f.void("of epoch 3", part(2, 3, 5, EpochRun{3, 1}))
	f.void("of epoch 2", part(2, 3, 5, EpochRun{2, 1}, EpochRun{2, 1}))
	f.void("0 offsets", part(2, 3, 5, EpochRun{1, 0}))
	f.void("5 offsets", part(2, 3, 5, EpochRun{1, 5}))
	f.must(part(2, 5, 10, EpochRun{1, 4}, EpochRun{3, 2})) // 10 to 13 of epoch 1, then 3, then 5
	f.must(part(3, 6, 1))
	p := f.partition(logs, 0)
	if want := []EpochStart{{1, 0}, {3, 14}, {5, 16}, {6, 20}}; !slices.Equal(p.Epochs, want) {
		t.Fatalf("epochs %v, want %v", p.Epochs, want)
	}
	check := func(asked siltstone.Epoch, epoch siltstone.Epoch, end siltstone.Offset) {
		t.Helper()
		if got := p.EndOfEpoch(asked); got != (siltstone.EpochEnd{Epoch: epoch, End: end}) {
			t.Errorf("epoch %d ends %+v, want %d at %d", asked, got, epoch, end)
		}
	}
	check(0, 0, 0)
	check(1, 1, 14)
	check(2, 1, 14)
	check(3, 3, 16)
	check(5, 5, 20)
	check(6, 6, 21)
	check(9, 6, 21)
	for off, want := range map[siltstone.Offset]siltstone.Epoch{0: 1, 13: 1, 14: 3, 19: 5, 20: 6} {
		if got := p.EpochAt(off); got != want {
			t.Errorf("offset %d is of epoch %d, want %d", off, got, want)
		}
	}
	f.must(&Trim{[]TrimPart{{7, 0, 15, false}}})
	if want := []EpochStart{{3, 15}, {5, 16}, {6, 20}}; !slices.Equal(p.Epochs, want) {
		t.Errorf("after the trim, epochs %v, want %v", p.Epochs, want)
	}
	check(1, 1, 15)
	f.must(&Trim{[]TrimPart{{7, 0, 21, false}}})
	check(6, 6, 21)
	if got := f.partition(logs, 1).EndOfEpoch(1); got != (siltstone.EpochEnd{Epoch: -1, End: -1}) {
		t.Errorf("an empty partition's epoch ends at %+v", got)
	}
}

func TestOpen(t *testing.T) {
	f := newFolder(t, leadAlice)
	if c := f.must(openAll); len(c.Opened) != 4 || c.Opened[2].TP != tp(logs, 5) || c.Opened[2].Number != 7 {
		t.Errorf("opened %+v", c.Opened)
	}
	open := func(topics ...OpenTopic) *Open { return &Open{1, alice, topics} }
	other := siltstone.TopicID{3}
	f.void("is open", open(OpenTopic{logs, 7, []int32{2, 5}}))
	f.void("cannot have number 9", open(OpenTopic{logs, 9, []int32{2}}))
	f.void("cannot have number 7", open(OpenTopic{other, 7, []int32{0}}))
	f.void("cannot have", open(OpenTopic{other, 9, []int32{0}}, OpenTopic{other, 9, []int32{1}}))
	f.void("cannot have", open(OpenTopic{other, 9, []int32{0}}, OpenTopic{siltstone.TopicID{4}, 9, []int32{1}}))
	f.must(open(OpenTopic{logs, 7, []int32{2}}, OpenTopic{other, 9, []int32{0}}))
	var all []siltstone.TopicPartition
	for p := range f.s.Partitions() {
		all = append(all, p.TP)
	}
	want := []siltstone.TopicPartition{tp(logs, 0), tp(logs, 1), tp(logs, 2), tp(logs, 5), tp(ops, 0), tp(other, 0)}
	if !slices.Equal(all, want) || f.s.Len() != len(want) {
		t.Errorf("partitions %v, want %v", all, want)
	}
}

func TestTrim(t *testing.T) {
	f := newFolder(t, leadAlice, openAll,
		flush(1, ext(7, 0, 10, 100, 5), ext(7, 1, 1, 1, 1)), flush(2, ext(7, 0, 10, 50, 5)))
	part := func(start siltstone.Offset) *Trim { return &Trim{[]TrimPart{{7, 0, start, false}}} }
	f.void("log start", part(0))
	f.void("log start", part(21))
	f.void("not open", &Trim{[]TrimPart{{7, 0, 5, false}, {7, 3, 5, false}}})
	f.void("twice", &Trim{[]TrimPart{{7, 0, 5, false}, {7, 0, 6, false}}})
	p := f.partition(logs, 0)
	f.must(part(9))
	if p.Len() != 2 || p.LogStart != 9 || p.SizeBytes() != 150 {
		t.Errorf("%d ranges, start %d, %d bytes", p.Len(), p.LogStart, p.SizeBytes())
	}
	f.void("log start", part(9))
	if c := f.must(part(10)); !slices.Equal(c.Trimmed, []Trimmed{{tp(logs, 0), 10, false}}) {
		t.Errorf("trimmed %+v", c.Trimmed)
	}
	if p.Len() != 1 || p.Range(0).Base != 10 || p.SizeBytes() != 50 || !f.s.Live(object(1)) {
		t.Errorf("ranges %+v; object 1 live: %v", ranges(p), f.s.Live(object(1)))
	}
	f.must(&Trim{[]TrimPart{{Number: 7, Partition: 1, Gone: true}}})
	if _, open := f.s.Partition(tp(logs, 1)); open || f.s.Live(object(1)) {
		t.Error("partition 1 and object 1 should be gone")
	}
	f.must(part(20))
	if p.Len() != 0 || p.SizeBytes() != 0 || p.Next != 20 || f.s.Live(object(2)) {
		t.Errorf("ranges %+v, next %d", ranges(p), p.Next)
	}
	f.must(flush(3, ext(7, 0, 1, 1, 1)))
	if p.Range(0).Base != 20 {
		t.Errorf("ranges %+v", ranges(p))
	}
	f.must(&Trim{[]TrimPart{{Number: 7, Partition: 0, Gone: true}, {Number: 7, Partition: 5, Gone: true}}})
	f.must(&Open{1, alice, []OpenTopic{{siltstone.TopicID{3}, 7, []int32{0}}}}) // the number is free again
}

func TestReplace(t *testing.T) {
	f := newFolder(t, leadAlice, openAll,
		flush(1, ext(7, 0, 10, 100, 5), ext(7, 1, 4, 9, 1)), flush(2, ext(7, 0, 10, 50, 7), ext(8, 0, 1, 1, 1)),
		flush(3, ext(7, 0, 5, 20, 6)), &Drop{[]segment.ObjectID{object(77)}})
	out := func(n uint64, refs ...Ref) ReplaceOut { return ReplaceOut{object(n), refs} }
	in := func(n uint64, e ...Extent) ReplaceIn { return ReplaceIn{object(n), e} }
	swap := func(o []ReplaceOut, i ...ReplaceIn) *Replace { return &Replace{o, i} }
	both := []ReplaceOut{out(2, Ref{7, 0, 0}), out(1, Ref{7, 0, 0})} // in any order
	whole := ext(7, 0, 20, 90, 7)

	f.void("not live", swap([]ReplaceOut{out(4, Ref{7, 0, 0})}, in(10, whole)))
	f.void("not live", swap([]ReplaceOut{out(1, Ref{7, 0, 1})}, in(10, ext(7, 0, 10, 1, 1)))) // another generation
	f.void("not in a row", swap([]ReplaceOut{out(1, Ref{7, 0, 0}), out(3, Ref{7, 0, 0})}, in(10, ext(7, 0, 15, 1, 1))))
	f.void("not live", swap([]ReplaceOut{out(3, Ref{7, 1, 0})}, in(10, ext(7, 1, 4, 1, 1))))
	f.void("not open", swap([]ReplaceOut{out(1, Ref{7, 2, 0})}, in(10, whole)))
	f.void("twice", swap([]ReplaceOut{out(1, Ref{7, 0, 0}, Ref{7, 0, 0})}, in(10, whole)))
	f.void("cover", swap(both, in(10, ext(7, 0, 19, 90, 7))))
	f.void("cover", swap(both, in(10, ext(7, 0, 21, 90, 7))))
	f.void("cover", swap(both))
	f.void("goes in", swap(both, in(10, whole, ext(7, 1, 4, 9, 1))))
	f.void("goes in", swap(both, in(10, whole, ext(9, 9, 4, 9, 1))))
	f.void("there already", swap(both, in(3, whole)))
	f.void("there already", swap(both, in(10, ext(7, 0, 10, 1, 1)), in(10, ext(7, 0, 10, 1, 1))))
	f.void("two ranges", swap(both, in(10, ext(7, 0, 10, 1, 1), ext(7, 0, 10, 1, 1))))
	f.void("given up", swap(both, in(77, whole)))
	f.void("holds nothing", swap(both, in(10, whole), in(11)))
	f.void("bytes", swap(both, in(10, ext(7, 0, 20, 0, 7))))

	c := f.must(swap(append(both, out(1, Ref{7, 1, 0})), in(10, ext(7, 0, 5, 10, 5), ext(7, 1, 4, 8, 1)), in(11, ext(7, 0, 15, 20, 7))))
	p := f.partition(logs, 0)
	if !slices.Equal(c.Replaced, []*Partition{p, f.partition(logs, 1)}) {
		t.Errorf("replaced %+v", c.Replaced)
	}
	if d := cmp.Diff([]Range{
		{Object: object(10), Base: 0, Offsets: 5, LengthBytes: 10, MaxTimestamp: 5, Epoch: 1, Generation: 1},
		{Object: object(11), Base: 5, Offsets: 15, LengthBytes: 20, MaxTimestamp: 7, Epoch: 1, Generation: 1},
		{Object: object(3), Base: 20, Offsets: 5, LengthBytes: 20, MaxTimestamp: 6, Epoch: 1},
	}, ranges(p)); d != "" {
		t.Error(d)
	}
	if p.SizeBytes() != 50 || f.s.Live(object(1)) || !f.s.Live(object(2)) {
		t.Errorf("%d bytes; object 1 live %v, 2 %v", p.SizeBytes(), f.s.Live(object(1)), f.s.Live(object(2)))
	}
	f.void("not live", swap(both, in(12, whole))) // moved ground
	f.must(swap([]ReplaceOut{out(11, Ref{7, 0, 1}), out(3, Ref{7, 0, 0})}, in(12, ext(7, 0, 20, 30, 7))))
	if r := p.Range(1); r.Generation != 2 || r.Base != 5 || r.Offsets != 20 {
		t.Errorf("range is %+v", r)
	}
}

func TestReplaceFillsHoles(t *testing.T) {
	f := newFolder(t, leadAlice, openAll, flush(1, ext(7, 0, 10, 100, 5)),
		&Lead{Epoch: 2, Leader: alice, ISR: []siltstone.Incarnation{alice}, Unclean: true})
	e := flush(2, ext(7, 0, 10, 100, 5))
	e.Epoch, e.Objects[0].Parts[0].Epoch = 2, 2
	f.must(e)
	f.must(&Replace{
		[]ReplaceOut{{object(1), []Ref{{7, 0, 0}}}, {object(2), []Ref{{7, 0, 0}}}},
		[]ReplaceIn{{object(3), []Extent{ext(7, 0, siltstone.UncleanJump+20, 9, 9)}}},
	})
	if p := f.partition(logs, 0); p.Len() != 1 || p.Range(0).End() != p.Next {
		t.Errorf("ranges %+v, next %d", ranges(p), p.Next)
	}
}

func TestDrop(t *testing.T) {
	f := newFolder(t, leadAlice, openAll, flush(1, ext(7, 0, 10, 100, 5)))
	f.void("there already", &Drop{[]segment.ObjectID{object(2), object(1)}})
	f.void("there already", &Drop{[]segment.ObjectID{object(2), object(2)}})
	f.must(&Drop{[]segment.ObjectID{object(2), object(3)}})
	f.void("given up", &Drop{[]segment.ObjectID{object(2)}})
	if seq, ok := f.s.Dropped(object(3)); !ok || seq != f.seq-1 {
		t.Errorf("object 3 was dropped by %d, %v", seq, ok)
	}
	if _, ok := f.s.Dropped(object(4)); ok {
		t.Error("object 4 was not dropped")
	}
}

func TestUnknownAndBroken(t *testing.T) {
	s := New()
	for _, kind := range []byte{0, KindDrop + 1, 255} {
		if _, err := s.Apply(ledger.Entry{Seq: 1, Kind: kind}); !errors.Is(err, siltstone.ErrNewerFormat) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
	body := leadAlice.Encode()
	for _, b := range [][]byte{nil, body[:len(body)-1], append(slices.Clone(body), 0)} {
		if c, err := s.Apply(ledger.Entry{Seq: 1, Kind: KindLead, Body: b}); err != nil || c.Void == "" || s.Epoch() != 0 {
			t.Errorf("a body of %d bytes: void for %q, %v", len(b), c.Void, err)
		}
	}
}

func TestOf(t *testing.T) {
	seen := map[int]int{}
	for n := range int32(4000) {
		shard := Of(tp(logs, n))
		if want := int(tp(logs, n).Slot()) / 256; shard != want {
			t.Fatalf("partition %d is in shard %d, want %d", n, shard, want)
		}
		seen[shard]++
	}
	if len(seen) != Count {
		t.Errorf("%d shards have partitions", len(seen))
	}
	if Ledger(3) != "shard-03" || Ledger(15) != "shard-15" {
		t.Error(Ledger(3), Ledger(15))
	}
}
