package shard

import (
	"errors"
	"math"
	"testing"
	"unsafe"

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

// addRows gives a partition the rows of a range, flushed at the time 1000.
func addRows(p *Partition, base siltstone.Offset, offsets int64, rows ...segment.Row) error {
	return p.AddRows(Assigned{Partition: p, Base: base, Offsets: offsets}, 1000, rows)
}

// flushed is a partition with twenty records, whose rows nobody has read.
func flushed(t *testing.T) *Partition {
	return newFolder(t, leadAlice, openAll, flush(1, ext(7, 0, 20, 9, 9))).partition(logs, 0)
}

func TestProducersRememberFiveBatches(t *testing.T) {
	p := flushed(t)
	rows := []segment.Row{row(0, -1, -1, -1)}
	for i := range int64(7) {
		rows = append(rows, row(1+i, 900, 3, int32(i)))
	}
	if err := addRows(p, 0, 10, rows...); err != nil {
		t.Fatal(err)
	}
	pr := p.Producers[900]
	if len(p.Producers) != 1 || pr.Epoch != 3 || pr.LastSequence() != 6 || pr.LastTimestamp != 1000 || pr.TxnStart != -1 || pr.CoordinatorEpoch != -1 {
		t.Errorf("of %d producers, %+v", len(p.Producers), pr)
	}
	var want []ProducerBatch
	for i := range int32(5) {
		want = append(want, ProducerBatch{Base: siltstone.Offset(3 + i), Offsets: 1, FirstSequence: 2 + i, Timestamp: int64(103 + i)})
	}
	if d := cmp.Diff(want, pr.Batches()); d != "" {
		t.Error(d)
	}
	if err := addRows(p, 10, 10, row(0, 900, 4, 0)); err != nil {
		t.Fatal(err)
	}
	if pr.Epoch != 4 || len(pr.Batches()) != 1 || pr.Batches()[0].Base != 10 {
		t.Errorf("after a new epoch: %+v", pr)
	}
}

// TestCheck is Kafka's rules, of ProducerAppendInfo and ProducerStateEntry.
func TestCheck(t *testing.T) {
	old, late := siltstone.ErrProducerEpoch, siltstone.ErrOutOfOrderSequence
	five := NewProducer(9, 3) // 10 to 12, 13 to 15, 16 to 18, 19 to 21, 22 to 24
	for i := range int32(6) {
		five.Add(3, ProducerBatch{Base: siltstone.Offset(100 + 3*i), Offsets: 3, FirstSequence: 7 + 3*i})
	}
	wraps := NewProducer(9, 0)
	wraps.Add(0, ProducerBatch{Base: 50, Offsets: 4, FirstSequence: math.MaxInt32 - 1})
	ended := NewProducer(9, 3) // by a marker
	for name, c := range map[string]struct {
		pr             Producer
		epoch          int16
		first, records int32
		repeats        siltstone.Offset // 0: nothing
		err            error
	}{
		"the next one":                       {five, 3, 25, 2, 0, nil},
		"one is missing":                     {five, 3, 26, 2, 0, late},
		"the last one again":                 {five, 3, 22, 3, 115, nil},
		"the oldest remembered":              {five, 3, 10, 3, 103, nil},
		"older than remembered":              {five, 3, 7, 3, 0, late},
		"part of one":                        {five, 3, 22, 2, 0, late},
		"more than one":                      {five, 3, 19, 6, 0, late},
		"all over again":                     {five, 3, 0, 3, 0, late},
		"a new epoch":                        {five, 4, 0, 3, 0, nil},
		"a new epoch, not from the start":    {five, 4, 25, 3, 0, late},
		"an old epoch":                       {five, 2, 25, 3, 0, old},
		"an old epoch's first":               {five, 2, 0, 3, 0, old},
		"an old epoch that repeats":          {five, 2, 22, 3, 0, old},
		"after the largest sequence":         {wraps, 0, 2, 1, 0, nil},
		"after the largest, one is missing":  {wraps, 0, 3, 1, 0, late},
		"over the largest again":             {wraps, 0, math.MaxInt32 - 1, 4, 50, nil},
		"after a marker, from the start":     {ended, 3, 0, 1, 0, nil},
		"after a marker, not from the start": {ended, 3, 5, 1, 0, late},
	} {
		t.Run(name, func(t *testing.T) {
			original, repeated, err := c.pr.Check(c.epoch, c.first, c.records)
			if !errors.Is(err, c.err) || repeated != (c.repeats > 0) || original.Base != c.repeats {
				t.Errorf("repeats %+v (%v), %v", original, repeated, err)
			}
		})
	}
	if wraps.LastSequence() != 1 {
		t.Errorf("the last sequence is %d", wraps.LastSequence())
	}
	if wraps.Add(0, ProducerBatch{FirstSequence: math.MaxInt32, Offsets: 1}); len(wraps.Batches()) != 1 {
		t.Errorf("a batch that does not follow stands behind others: %+v", wraps.Batches())
	}
}

func TestTransactions(t *testing.T) {
	p := flushed(t)
	if got := p.LastStable(20); got != 20 {
		t.Errorf("without transactions, %d is stable", got)
	}
	err := addRows(p, 0, 20,
		inTxn(row(1, 1, 0, 0)), inTxn(row(2, 2, 0, 0)), inTxn(row(3, 1, 0, 1)), inTxn(row(4, 3, 0, 0)),
		marker(5, 2, 0, batch.Abort),  // while 1 is open from offset 1 on
		marker(6, 1, 0, batch.Commit), // commits are not noted
		marker(7, 4, 2, batch.Abort),  // of a producer without a transaction here
		marker(8, 3, 1, batch.Abort),  // by an epoch bump
		inTxn(row(9, 3, 1, 0)),
	)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]AbortedTxn{{2, 2, 5, 1}, {3, 4, 8, 9}}, p.Aborted); d != "" {
		t.Error(d)
	}
	if got := p.LastStable(20); got != 9 {
		t.Errorf("%d is stable, want 9", got)
	}
	if got := p.Producers[3]; got.Epoch != 1 || got.TxnStart != 9 || got.CoordinatorEpoch != 6 || len(got.Batches()) != 1 {
		t.Errorf("producer 3: %+v", got)
	}
	p.trim(6)
	if d := cmp.Diff([]AbortedTxn{{3, 4, 8, 9}}, p.Aborted); d != "" {
		t.Error(d)
	}
}

func TestAddRowsInOrder(t *testing.T) {
	p := flushed(t)
	if err := addRows(p, 0, 5, row(0, 900, 0, 0)); err != nil || p.Indexed != 5 {
		t.Fatal(err, p.Indexed)
	}
	if err := addRows(p, 0, 5, row(0, 900, 7, 0)); err != nil || p.Producers[900].Epoch != 0 {
		t.Error("rows that were given before changed something", err)
	}
	if err := addRows(p, 9, 5, row(0, 900, 1, 0)); err != nil || p.Indexed != 14 { // above a hole, or what was trimmed
		t.Error(err, p.Indexed)
	}
	long := row(4, 900, 2, 0)
	long.Offsets = 3
	for name, err := range map[string]error{
		"overlapping":             addRows(p, 13, 3),
		"past the end":            addRows(p, 14, 7),
		"row past its range":      addRows(p, 14, 6, row(0, 900, 2, 0), long),
		"row before it":           addRows(p, 14, 6, row(0, 900, 2, 0), row(-1, 900, 2, 0)),
		"row of no offsets":       addRows(p, 14, 6, segment.Row{ProducerID: 900}),
		"row of no sequence":      addRows(p, 14, 6, row(0, 900, 2, 0), row(1, 900, 2, -1)),
		"row of a negative epoch": addRows(p, 14, 6, row(0, 900, -2, 0)),
	} {
		if !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p.Indexed != 14 || p.Producers[900].Epoch != 1 {
		t.Errorf("refused rows changed something: %d, %+v", p.Indexed, p.Producers[900])
	}
}

func TestForgetIdle(t *testing.T) {
	f := newFolder(t, leadAlice, openAll, flush(1, ext(7, 0, 20, 9, 9), ext(7, 1, 20, 9, 9)))
	p, alone := f.partition(logs, 0), f.partition(logs, 1)
	add := func(p *Partition, base siltstone.Offset, ms int64, r segment.Row) {
		t.Helper()
		if err := p.AddRows(Assigned{Partition: p, Base: base, Offsets: 5}, ms, []segment.Row{r}); err != nil {
			t.Fatal(err)
		}
	}
	add(p, 0, 1000, row(0, 1, 0, 0))
	add(p, 5, 1000, inTxn(row(0, 2, 0, 0)))
	add(p, 10, 2000, row(0, 3, 0, 0))
	add(alone, 0, 1000, row(0, 1, 0, 0))
	f.s.ForgetIdle(1499, 500)
	if len(p.Producers) != 3 {
		t.Errorf("%d producers are left, of 3 that have written 499 ms ago", len(p.Producers))
	}
	f.s.ForgetIdle(1500, 500)
	if p.Producers[1] != nil || p.Producers[2] == nil || p.Producers[3] == nil || alone.Producers != nil {
		t.Errorf("left: %v, %v; want the one in a transaction, and the one that wrote later", p.Producers, alone.Producers)
	}
	if p.Indexed != 15 || alone.Indexed != 5 {
		t.Error("what was forgotten would be read again")
	}
}

// A partition may have many thousands.
func TestProducerIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Producer{}); size > 160 {
		t.Errorf("a producer takes %d bytes, 160 at most", size)
	}
}
