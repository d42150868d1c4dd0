package shard

import (
	"fmt"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/internal/foldtest"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// goldenBodies has an entry of each kind, with each part of its format.
var goldenBodies = []Body{
	leadAlice,
	openAll,
	&Segment{Epoch: 1, Writer: alice, Objects: []SegmentObject{
		{object(41), []Part{
			{Extent: ext(7, 0, 300, 20_000, 1_800_000_000_000), Epoch: 1},
			{Extent: ext(7, 1, 1, 70, 1_800_000_000_100), Epoch: 1},
			{Extent: ext(8, 0, 5, 400, -1), Epoch: 1},
		}},
		{segment.ObjectID{Hour: 500_001, Incarnation: alice, Number: 42}, []Part{
			{Extent: ext(7, 0, 10, 800, 1_800_000_000_200), Epoch: 1, Earlier: []EpochRun{{0, 4}}},
		}},
		{segment.ObjectID{Hour: 500_001, Incarnation: bob, Number: 3}, []Part{{Extent: ext(7, 5, 2, 99, 7), Epoch: 1}}},
	}},
	&Replace{
		Out: []ReplaceOut{{object(41), []Ref{{7, 0, 0}, {7, 1, 2}}}, {object(42), []Ref{{7, 0, 0}}}},
		In:  []ReplaceIn{{segment.ObjectID{Hour: 500_009, Incarnation: carol, Number: 1}, []Extent{ext(7, 0, 310, 15_000, 1_800_000_000_200), ext(7, 1, 1, 70, 9)}}},
	},
	&Trim{[]TrimPart{{7, 0, 100, false}, {Number: 7, Partition: 5, Gone: true}}},
	&Drop{[]segment.ObjectID{object(50), object(52), {Hour: 500_001, Incarnation: bob, Number: 9}}},
	&Lead{Epoch: 2, Leader: carol, ISR: []siltstone.Incarnation{carol}, Unclean: true},
	&Lead{Epoch: 3},
}

// goldenState has a row of each kind, with each part of its format.
func goldenState() *State {
	s := New()
	bodies := []Body{
		leadAlice, openAll,
		&Segment{1, alice, []SegmentObject{
			{object(1), []Part{{Extent: ext(7, 0, 10, 100, 50), Epoch: 1}, {Extent: ext(7, 5, 3, 70, -1), Epoch: 1}}},
			{object(2), []Part{{Extent: ext(7, 0, 5, 60, 40), Epoch: 1}}},
		}},
		&Lead{Epoch: 4, Leader: bob, ISR: []siltstone.Incarnation{bob, carol}, Unclean: true},
		&Segment{4, bob, []SegmentObject{{segment.ObjectID{Hour: 500_002, Incarnation: bob, Number: 1}, []Part{
			{Extent: ext(7, 0, 8, 80, 60), Epoch: 4, Earlier: []EpochRun{{2, 3}}},
		}}}},
		&Replace{
			[]ReplaceOut{{object(1), []Ref{{7, 0, 0}}}, {object(2), []Ref{{7, 0, 0}}}},
			[]ReplaceIn{{object(3), []Extent{ext(7, 0, 15, 90, 50)}}},
		},
		&Trim{[]TrimPart{{7, 0, 4, false}}},
		&Drop{[]segment.ObjectID{object(8), object(9)}},
	}
	for i, b := range bodies {
		c, err := s.Apply(ledger.Entry{Seq: coordinator.Seq(i + 1), Kind: b.Kind(), Body: b.Encode()})
		if err != nil || c.Void != "" {
			panic(fmt.Sprintf("%T: %v, %s", b, err, c.Void))
		}
	}
	p, _ := s.Partition(tp(logs, 0))
	err := p.AddRows(Assigned{Partition: p, Base: 0, Offsets: 10}, 1_800_000_000_500, []segment.Row{
		{OffsetDelta: 0, Offsets: 4, ProducerID: 900, ProducerEpoch: 2, BaseSequence: 11, MaxTimestamp: 50, Marker: segment.NoMarker},
		{OffsetDelta: 4, Offsets: 2, ProducerID: 901, ProducerEpoch: 0, BaseSequence: 0, MaxTimestamp: 48, Marker: segment.NoMarker, Attributes: batch.TransactionalBit},
		{OffsetDelta: 6, Offsets: 2, ProducerID: 902, ProducerEpoch: 1, BaseSequence: 7, MaxTimestamp: 49, Marker: segment.NoMarker, Attributes: batch.TransactionalBit},
		{OffsetDelta: 8, Offsets: 1, ProducerID: 900, ProducerEpoch: 2, BaseSequence: 15, MaxTimestamp: 40, Marker: segment.NoMarker},
		{OffsetDelta: 9, Offsets: 1, ProducerID: 901, ProducerEpoch: 0, BaseSequence: -1, MaxTimestamp: 50, Marker: batch.Abort, CoordinatorEpoch: 3, Attributes: batch.TransactionalBit | batch.ControlBit},
	})
	if err != nil {
		panic(err)
	}
	return s
}

func TestGoldenEntries(t *testing.T) { foldtest.GoldenEntries(t, goldenBodies, Decode) }

func TestGoldenCheckpoint(t *testing.T) { foldtest.GoldenCheckpoint(t, goldenState(), New()) }
