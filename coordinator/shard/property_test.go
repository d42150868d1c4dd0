package shard

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/internal/foldtest"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// drawBody draws an entry out of a small world, so that most entries of a
// shuffled ledger still meet what they name.
func drawBody(t *rapid.T) Body {
	epoch := siltstone.Epoch(rapid.IntRange(0, 4).Draw(t, "epoch"))
	agent := func(label string) siltstone.Incarnation {
		return siltstone.Incarnation(rapid.IntRange(0, 3).Draw(t, label))
	}
	some := func(label string, n int) int { return rapid.IntRange(0, n).Draw(t, label) }
	id := func() segment.ObjectID {
		return segment.ObjectID{Hour: 9, Incarnation: agent("of"), Number: uint64(some("object", 4))}
	}
	number := func() uint32 { return uint32(some("number", 2)) }
	partition := func() int32 { return int32(some("partition", 2)) }
	extent := func() Extent {
		return Extent{number(), partition(), int64(some("offsets", 5)), int64(some("bytes", 100)), int64(some("time", 9)) - 1}
	}
	switch rapid.IntRange(1, 6).Draw(t, "kind") {
	case int(KindLead):
		l := &Lead{Epoch: epoch, Leader: agent("leader"), Unclean: rapid.Bool().Draw(t, "unclean")}
		for range some("isr", 2) {
			l.ISR = append(l.ISR, agent("member"))
		}
		return l
	case int(KindOpen):
		o := &Open{Epoch: epoch, Writer: agent("writer")}
		for range some("topics", 2) {
			n := number()
			o.Topics = append(o.Topics, OpenTopic{siltstone.TopicID{byte(n)}, n, []int32{partition(), 3 + partition()}})
		}
		return o
	case int(KindSegment):
		s := &Segment{Epoch: epoch, Writer: agent("writer")}
		for range some("objects", 2) {
			o := SegmentObject{ID: id()}
			for range some("parts", 2) {
				p := Part{Extent: extent(), Epoch: epoch}
				if rapid.Bool().Draw(t, "more") {
					p.Earlier = []EpochRun{{siltstone.Epoch(some("earlier", 3)), int64(some("run", 3))}}
				}
				o.Parts = append(o.Parts, p)
			}
			s.Objects = append(s.Objects, o)
		}
		return s
	case int(KindReplace):
		r := &Replace{}
		for range some("out", 2) {
			r.Out = append(r.Out, ReplaceOut{id(), []Ref{{number(), partition(), uint32(some("generation", 1))}}})
		}
		for range some("in", 2) {
			r.In = append(r.In, ReplaceIn{id(), []Extent{extent()}})
		}
		return r
	case int(KindTrim):
		return &Trim{[]TrimPart{{Number: number(), Partition: partition(), Start: siltstone.Offset(some("start", 20))}}}
	default:
		return &Drop{[]segment.ObjectID{id()}}
	}
}

// drawValid draws an entry that follows from the state, as a correct writer's would.
func drawValid(t *rapid.T, s *State, fresh *uint64) Body {
	open := slices.Collect(s.Partitions())
	newID := func() segment.ObjectID {
		*fresh++
		return segment.ObjectID{Hour: uint32(*fresh / 7), Incarnation: s.leader, Number: *fresh}
	}
	kind := rapid.IntRange(0, 11).Draw(t, "step")
	switch {
	case s.epoch == 0 || kind == 0:
		l := &Lead{Epoch: s.epoch + 1, Leader: siltstone.Incarnation(rapid.IntRange(0, 3).Draw(t, "leader"))}
		if l.Leader != 0 {
			l.ISR = []siltstone.Incarnation{l.Leader, 9}
			l.Unclean = rapid.IntRange(0, 3).Draw(t, "unclean") == 0
		}
		return l
	case len(open) == 0 || kind == 1:
		*fresh++
		n := uint32(*fresh)
		return &Open{s.epoch, s.leader, []OpenTopic{{siltstone.TopicID{byte(n >> 8), byte(n)}, n, []int32{0, 4}}}}
	case kind == 2:
		return &Drop{[]segment.ObjectID{newID()}}
	case kind == 3:
		p := rapid.SampledFrom(open).Draw(t, "trimmed")
		if p.LogStart == p.Next || rapid.IntRange(0, 5).Draw(t, "gone") == 0 {
			return &Trim{[]TrimPart{{Number: p.Number, Partition: p.TP.Partition, Gone: true}}}
		}
		start := rapid.Int64Range(int64(p.LogStart)+1, int64(p.Next)).Draw(t, "start")
		return &Trim{[]TrimPart{{p.Number, p.TP.Partition, siltstone.Offset(start), false}}}
	case kind <= 5:
		p := rapid.SampledFrom(open).Draw(t, "merged")
		if p.Len() < 2 {
			break
		}
		i := rapid.IntRange(0, p.Len()-2).Draw(t, "first")
		j := rapid.IntRange(i+1, p.Len()-1).Draw(t, "last")
		r := &Replace{}
		for k := i; k <= j; k++ {
			r.Out = append(r.Out, ReplaceOut{p.Range(k).Object, []Ref{{p.Number, p.TP.Partition, p.Range(k).Generation}}})
		}
		offsets := int64(p.Range(j).End() - p.Range(i).Base)
		r.In = []ReplaceIn{{newID(), []Extent{{p.Number, p.TP.Partition, offsets, 5, 5}}}}
		return r
	}
	seg := &Segment{Epoch: s.epoch, Writer: s.leader}
	for range rapid.IntRange(1, 2).Draw(t, "objects") {
		o := SegmentObject{ID: newID()}
		for _, p := range open {
			if rapid.Bool().Draw(t, "has") || len(o.Parts) == 0 {
				e := Extent{p.Number, p.TP.Partition, rapid.Int64Range(1, 50).Draw(t, "offsets"), 61, 9}
				o.Parts = append(o.Parts, Part{Extent: e, Epoch: s.epoch})
			}
		}
		seg.Objects = append(seg.Objects, o)
	}
	return seg
}

// checkState checks what holds of every fold.
func checkState(t *rapid.T, s *State) {
	live := map[segment.ObjectID]int{}
	for p := range s.Partitions() {
		at, size := siltstone.Offset(0), int64(0)
		for r := range p.Ranges(0) {
			if r.Base < at || r.End() > p.Next || r.End() <= p.LogStart || r.Offsets < 1 {
				t.Fatalf("%s: range %+v after %d, start %d, end %d", p.TP, r, at, p.LogStart, p.Next)
			}
			at, size = r.End(), size+r.LengthBytes
			live[r.Object]++
			if _, dropped := s.Dropped(r.Object); dropped || !s.Live(r.Object) {
				t.Fatalf("%s: object %s: dropped %v, live %v", p.TP, r.Object, dropped, s.Live(r.Object))
			}
		}
		if size != p.SizeBytes() {
			t.Fatalf("%s: %d bytes, its ranges have %d", p.TP, p.SizeBytes(), size)
		}
		for i := 1; i < len(p.Epochs); i++ {
			if a, b := p.Epochs[i-1], p.Epochs[i]; a.Epoch >= b.Epoch || a.Start >= b.Start {
				t.Fatalf("%s: epochs %v", p.TP, p.Epochs)
			}
		}
	}
	if len(live) != len(s.objects.numbers) {
		t.Fatalf("%d objects are live, ranges name %d", len(s.objects.numbers), len(live))
	}
}

// drawLedger draws a ledger, most of whose entries follow from the ones before them.
func drawLedger(t *rapid.T) []ledger.Entry {
	s, fresh := New(), uint64(100)
	entries := make([]ledger.Entry, rapid.IntRange(1, 60).Draw(t, "entries"))
	for i := range entries {
		var b Body
		valid := rapid.IntRange(0, 4).Draw(t, "valid") > 0
		if valid {
			b = drawValid(t, s, &fresh)
		} else {
			b = drawBody(t)
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

func fold(t *rapid.T, s *State, entries []ledger.Entry) {
	for _, e := range entries {
		before := map[*Partition][2]siltstone.Offset{}
		for p := range s.Partitions() {
			before[p] = [2]siltstone.Offset{p.LogStart, p.Next}
		}
		if _, err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
		for p := range s.Partitions() {
			if was, ok := before[p]; ok && (p.LogStart < was[0] || p.Next < was[1]) {
				t.Fatalf("%s: start and end went from %v back to %d and %d", p.TP, was, p.LogStart, p.Next)
			}
		}
		checkState(t, s)
	}
}

func TestCheckpointAndTailAreTheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { foldtest.CheckpointAndTail(t, drawLedger(t), New, fold) })
}

func TestAnyOrderIsFolded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.Permutation(drawLedger(t)).Draw(t, "order")
		fold(t, New(), entries)
	})
}

func TestBodiesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBody(t)
		again, err := Decode(b.Kind(), b.Encode())
		if err != nil {
			t.Fatalf("%T %+v: %v", b, b, err)
		}
		if !bytes.Equal(again.Encode(), b.Encode()) {
			t.Fatalf("%+v came back as %+v", b, again)
		}
	})
}

func FuzzDecode(f *testing.F) {
	foldtest.FuzzDecode(f, goldenBodies, Decode, func(kind byte, body []byte) error {
		s := New()
		for _, b := range []Body{leadAlice, openAll} {
			if _, err := s.Apply(ledger.Entry{Kind: b.Kind(), Body: b.Encode()}); err != nil {
				return err
			}
		}
		_, err := s.Apply(ledger.Entry{Seq: 3, Kind: kind, Body: body})
		return err
	})
}

func FuzzRestore(f *testing.F) {
	foldtest.FuzzRestore(f, goldenState(), New, func(*State) {})
}
