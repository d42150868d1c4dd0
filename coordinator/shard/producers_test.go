package shard

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// row is a batch of one record.
func row(delta int64, producer int64, epoch int16, sequence int32) segment.Row {
	return segment.Row{OffsetDelta: delta, Offsets: 1, MaxTimestamp: 100 + delta, ProducerID: producer,
		ProducerEpoch: epoch, BaseSequence: sequence, Marker: segment.NoMarker, CoordinatorEpoch: -1}
}

func inTxn(r segment.Row) segment.Row {
	r.Attributes |= batch.TransactionalBit
	return r
}

func marker(delta, producer int64, epoch int16, kind batch.MarkerType) segment.Row {
	r := inTxn(row(delta, producer, epoch, -1))
	r.Attributes |= batch.ControlBit
	r.Marker, r.CoordinatorEpoch = kind, 6
	return r
}

func TestProducersRememberFiveBatches(t *testing.T) {
	p := newFolder(t, leadAlice, openAll, flush(1, ext(7, 0, 20, 9, 9))).partition(logs, 0)
	rows := []segment.Row{row(0, -1, -1, -1)}
	for i := range int64(7) {
		rows = append(rows, row(1+i, 900, 3, int32(i)))
	}
	if err := p.AddRows(0, 10, rows); err != nil {
		t.Fatal(err)
	}
	want := &Producer{ID: 900, Epoch: 3, CoordinatorEpoch: -1, LastTimestamp: 107, TxnStart: -1}
	for i := range int32(5) {
		want.Batches = append(want.Batches, ProducerBatch{siltstone.Offset(3 + i), 1, 2 + i, int64(103 + i)})
	}
	if d := cmp.Diff(map[int64]*Producer{900: want}, p.Producers); d != "" {
		t.Error(d)
	}
	if err := p.AddRows(10, 10, []segment.Row{row(0, 900, 4, 0)}); err != nil {
		t.Fatal(err)
	}
	if got := p.Producers[900]; got.Epoch != 4 || len(got.Batches) != 1 || got.Batches[0].Base != 10 {
		t.Errorf("after a new epoch: %+v", got)
	}
}

func TestTransactions(t *testing.T) {
	p := newFolder(t, leadAlice, openAll, flush(1, ext(7, 0, 20, 9, 9))).partition(logs, 0)
	if got := p.LastStable(20); got != 20 {
		t.Errorf("without transactions, %d is stable", got)
	}
	err := p.AddRows(0, 20, []segment.Row{
		inTxn(row(1, 1, 0, 0)), inTxn(row(2, 2, 0, 0)), inTxn(row(3, 1, 0, 1)), inTxn(row(4, 3, 0, 0)),
		marker(5, 2, 0, batch.Abort),  // while 1 is open from offset 1 on
		marker(6, 1, 0, batch.Commit), // commits are not noted
		marker(7, 4, 2, batch.Abort),  // of a producer without a transaction here
		marker(8, 3, 1, batch.Abort),  // by an epoch bump
		inTxn(row(9, 3, 1, 0)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]AbortedTxn{{2, 2, 5, 1}, {3, 4, 8, 9}}, p.Aborted); d != "" {
		t.Error(d)
	}
	if got := p.LastStable(20); got != 9 {
		t.Errorf("%d is stable, want 9", got)
	}
	if got := p.Producers[3]; got.Epoch != 1 || got.TxnStart != 9 || got.CoordinatorEpoch != 6 || len(got.Batches) != 1 {
		t.Errorf("producer 3: %+v", got)
	}
	p.trim(6)
	if d := cmp.Diff([]AbortedTxn{{3, 4, 8, 9}}, p.Aborted); d != "" {
		t.Error(d)
	}
}

func TestAddRowsInOrder(t *testing.T) {
	p := newFolder(t, leadAlice, openAll, flush(1, ext(7, 0, 20, 9, 9))).partition(logs, 0)
	add := func(base siltstone.Offset, offsets int64, rows ...segment.Row) error {
		return p.AddRows(base, offsets, rows)
	}
	if err := add(0, 5, row(0, 900, 0, 0)); err != nil || p.Indexed != 5 {
		t.Fatal(err, p.Indexed)
	}
	if err := add(0, 5, row(0, 900, 7, 0)); err != nil || p.Producers[900].Epoch != 0 {
		t.Error("rows that were given before changed something", err)
	}
	if err := add(9, 5, row(0, 900, 1, 0)); err != nil || p.Indexed != 14 { // above a hole, or what was trimmed
		t.Error(err, p.Indexed)
	}
	long := row(4, 900, 2, 0)
	long.Offsets = 3
	for name, err := range map[string]error{
		"overlapping":        add(13, 3),
		"past the end":       add(14, 7),
		"row past its range": add(14, 6, long),
		"row before it":      add(14, 6, row(-1, 900, 2, 0)),
		"row of no offsets":  add(14, 6, segment.Row{ProducerID: 900}),
	} {
		if !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p.Indexed != 14 || p.Producers[900].Epoch != 1 {
		t.Errorf("refused rows changed something: %d, %+v", p.Indexed, p.Producers[900])
	}
}
