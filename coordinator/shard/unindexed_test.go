package shard

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/internal/foldtest"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// history is a ledger, and the indexes of the objects that its Segments name.
type history struct {
	entries []ledger.Entry
	indexes map[segment.ObjectID]*segment.Index
}

// drawHistory draws what a correct leader writes, and the producers of its
// batches: they go on, begin a new epoch, or were forgotten and come back.
func drawHistory(t *rapid.T) *history {
	h := &history{indexes: map[segment.ObjectID]*segment.Index{}}
	s, fresh := New(), uint64(100)
	for i := range rapid.IntRange(1, 40).Draw(t, "entries") {
		b := drawValid(t, s, &fresh)
		e := ledger.Entry{Seq: coordinator.Seq(i + 1), Kind: b.Kind(), Body: b.Encode(), TimeMS: 1000 * int64(i)}
		h.entries = append(h.entries, e)
		c, err := s.Apply(e)
		if err != nil || c.Void != "" {
			t.Fatalf("%+v: %v, %s", b, err, c.Void)
		}
		for _, u := range s.Unindexed([]ledger.Change[Change]{{Entry: e, Effect: c}}) {
			h.indexes[u.Object] = drawIndex(t, u)
			if err := u.AddIndex(h.indexes[u.Object]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return h
}

// drawIndex makes the index of an object that a leader wrote, who knew what
// its partitions remember so far.
func drawIndex(t *rapid.T, u Unindexed) *segment.Index {
	w := segment.NewWriter(segment.Header{ID: u.Object})
	for _, a := range u.Ranges {
		if err := w.Run(0, a.Partition.TP, a.Base); err != nil {
			t.Fatal(err)
		}
		seen := map[int64]Producer{}
		for at := a.Base; at < a.End(); {
			n := rapid.Int64Range(1, int64(a.End()-at)).Draw(t, "records")
			b := batch.NewBuilder(batch.None, 0)
			for range n {
				b.Append(batch.Record{Timestamp: 5})
			}
			if id := rapid.Int64Range(-1, 3).Draw(t, "producer"); id >= 0 {
				pr, ok := seen[id]
				if known := a.Partition.Producers[id]; !ok && known != nil {
					pr = *known
				}
				b.Header.ProducerID, b.Header.ProducerEpoch, b.Header.BaseSequence = id, pr.Epoch, pr.nextSequence()
				switch rapid.IntRange(0, 5).Draw(t, "goes on") {
				case 0:
					b.Header.ProducerEpoch, b.Header.BaseSequence = pr.Epoch+1, 0
				case 1: // idle for so long that any sequence will do, and any epoch
					b.Header.ProducerEpoch, b.Header.BaseSequence = int16(rapid.IntRange(0, 2).Draw(t, "epoch")), 77
				}
				pr.Add(b.Header.ProducerEpoch, ProducerBatch{Offsets: int32(n), FirstSequence: b.Header.BaseSequence})
				seen[id] = pr
			}
			raw, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			batch.Stamp(raw, at, 1)
			if err := w.Batch(raw); err != nil {
				t.Fatal(err)
			}
			at += siltstone.Offset(n)
		}
	}
	_, x, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// lead folds entries and adds the rows of each as a leader does, who has them in memory.
func (h *history) lead(t *rapid.T, s *State, entries []ledger.Entry) {
	for _, e := range entries {
		h.load(t, s, []ledger.Entry{e})
	}
}

// load folds entries, and then adds their rows as who loads a ledger does.
func (h *history) load(t *rapid.T, s *State, entries []ledger.Entry) {
	var tail []ledger.Change[Change]
	for _, e := range entries {
		c, err := s.Apply(e)
		if err != nil || c.Void != "" {
			t.Fatal(err, c.Void)
		}
		tail = append(tail, ledger.Change[Change]{Entry: e, Effect: c})
	}
	for _, u := range s.Unindexed(tail) {
		if err := u.AddIndex(h.indexes[u.Object]); err != nil {
			t.Fatal(err)
		}
	}
	if again := s.Unindexed(tail); len(again) > 0 {
		t.Fatalf("%d objects are not indexed yet", len(again))
	}
}

// TestProducersThroughRestarts: whoever loads a checkpoint, the entries after
// it and the indexes that those name knows of producers what a leader knows who
// was there from the first entry on; through trims, merges, the end of
// partitions, and takeovers of any kind.
func TestProducersThroughRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		whole := New()
		h.lead(t, whole, h.entries)
		one, at := New(), 0
		for at < len(h.entries) {
			cut := rapid.IntRange(at, len(h.entries)).Draw(t, "checkpoint")
			h.lead(t, one, h.entries[at:cut])
			stop := rapid.IntRange(cut, len(h.entries)).Draw(t, "restart")
			one = foldtest.Restore(t, one, New())
			h.load(t, one, h.entries[cut:stop])
			at = stop
		}
		if !bytes.Equal(foldtest.Rows(whole), foldtest.Rows(one)) {
			t.Fatalf("after restarts: %x\nwithout:        %x", foldtest.Rows(one), foldtest.Rows(whole))
		}
		for p := range whole.Partitions() {
			if p.Len() > 0 && p.Indexed < p.Range(p.Len()-1).End() {
				t.Fatalf("%s has ranges to %d, and rows to %d", p.TP, p.Range(p.Len()-1).End(), p.Indexed)
			}
		}
	})
}

func TestIndexThatDoesNotFit(t *testing.T) {
	f := newFolder(t, leadAlice, openAll)
	e := ledger.Entry{Seq: 3, Kind: KindSegment, TimeMS: 77, Body: flush(1, ext(7, 0, 20, 9, 9)).Encode()}
	c, err := f.s.Apply(e)
	if err != nil {
		t.Fatal(err)
	}
	u := f.s.Unindexed([]ledger.Change[Change]{{Entry: e, Effect: c}})
	if len(u) != 1 || u[0].Object != object(1) || u[0].TimeMS != 77 || len(u[0].Ranges) != 1 {
		t.Fatalf("%+v", u)
	}
	for name, records := range map[string]int{"no run of the partition": 0, "a run of fewer offsets": 19, "of more": 21} {
		w := segment.NewWriter(segment.Header{ID: object(1)})
		if records > 0 {
			b := batch.NewBuilder(batch.None, 0)
			for range records {
				b.Append(batch.Record{})
			}
			raw, err := b.Build()
			if err = errors.Join(err, w.Run(0, tp(logs, 0), 0)); err != nil {
				t.Fatal(err)
			}
			batch.Stamp(raw, 0, 1)
			if err := w.Batch(raw); err != nil {
				t.Fatal(err)
			}
		}
		_, x, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if err := u[0].AddIndex(x); !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
