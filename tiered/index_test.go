package tiered

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/faulty"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// tails makes n objects, each with a batch of producer 9 for one partition of
// each of two shards, and the shards as their ledgers have them.
func (s *store) tails(n int) (folds [2]*shard.State, changes [2][]ledger.Change[shard.Change]) {
	s.t.Helper()
	apply := func(k int, b shard.Body) {
		s.t.Helper()
		e := ledger.Entry{Seq: coordinator.Seq(len(changes[k]) + 1), Kind: b.Kind(), Body: b.Encode(), TimeMS: 7000}
		c, err := folds[k].Apply(e)
		s.must(err)
		if c.Void != "" {
			s.t.Fatal(c.Void)
		}
		changes[k] = append(changes[k], ledger.Change[shard.Change]{Entry: e, Effect: c})
	}
	for k := range folds {
		folds[k] = shard.New()
		apply(k, &shard.Lead{Epoch: 1, Leader: 7, ISR: []siltstone.Incarnation{7}})
		apply(k, &shard.Open{Epoch: 1, Writer: 7, Topics: []shard.OpenTopic{{Topic: partition(0).Topic, Number: 1, Partitions: []int32{int32(k)}}}})
	}
	for i := range n {
		var runs []run
		for k := range folds {
			runs = append(runs, run{tp: partition(int32(k)), base: siltstone.Offset(i), batches: [][]byte{ofProducer(s.t, 9, int32(i))}, end: siltstone.Offset(i + 1)})
			batch.Stamp(runs[k].batches[0], siltstone.Offset(i), 1)
		}
		ranges := s.put(runs...)
		for k, r := range ranges {
			ext := shard.Extent{Number: 1, Partition: int32(k), Offsets: r.Offsets, LengthBytes: r.LengthBytes, MaxTimestamp: r.MaxTimestamp}
			apply(k, &shard.Segment{Epoch: 1, Writer: 7, Objects: []shard.SegmentObject{{ID: r.Object, Parts: []shard.Part{{Extent: ext, Epoch: 1}}}}})
		}
	}
	return folds, changes
}

func ofProducer(t testing.TB, id int64, sequence int32) []byte {
	b := batch.NewBuilder(batch.None, 0)
	b.Header.ProducerID, b.Header.ProducerEpoch, b.Header.BaseSequence = id, 0, sequence
	b.Append(batch.Record{Timestamp: 1})
	raw, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// lost takes no loss.
func lost(_ segment.ObjectID, err error) error { return err }

func wantLast(t *testing.T, fold *shard.State, k int, sequence int32) {
	t.Helper()
	p, _ := fold.Partition(partition(int32(k)))
	if pr := p.Producers[9]; pr == nil || pr.LastSequence() != sequence || pr.LastTimestamp != 7000 {
		t.Errorf("shard %d: %+v, want sequence %d, at 7000", k, pr, sequence)
	}
	if sequence >= 0 && p.Indexed != siltstone.Offset(sequence+1) {
		t.Errorf("shard %d has rows to %d", k, p.Indexed)
	}
}

// TestAddRowsOfManyShards: an object is read once for all shards, and several
// at a time.
func TestAddRowsOfManyShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		folds, changes := s.tails(40)
		s.fate = func(string) faulty.Fate { return faulty.Fate{Delay: time.Second} }
		r := s.reader(Options{}, defaultSizes)
		start := time.Now()
		var wg sync.WaitGroup
		for k := range folds {
			wg.Go(func() {
				if err := r.AddRows(t.Context(), folds[k], changes[k], lost); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		s.wantGets(40, "40 objects of two shards")
		if took := time.Since(start); took != (40+indexesAhead-1)/indexesAhead*time.Second {
			t.Errorf("took %v", took)
		}
		for k := range folds {
			wantLast(t, folds[k], k, 39)
		}
		s.must(r.AddRows(t.Context(), folds[0], changes[0], lost))
		s.wantGets(40, "once more")
	})
}

// TestAddRowsGoesOnAfterAnError: what was added stays, and is not added twice.
func TestAddRowsGoesOnAfterAnError(t *testing.T) {
	s := newStore(t)
	folds, changes := s.tails(20)
	fold, tail := folds[1], changes[1]
	r := s.reader(Options{}, defaultSizes)
	broken := fold.Unindexed(tail)[12].Object
	var repaired atomic.Bool // while other indexes are still on their way
	s.fate = func(key string) faulty.Fate {
		if key == broken.Key() && !repaired.Load() {
			return faulty.Fate{Err: errors.New("no route")}
		}
		return faulty.Fate{}
	}
	if err := r.AddRows(t.Context(), fold, tail, lost); !errors.Is(err, siltstone.ErrUnavailable) {
		t.Fatal(err)
	}
	wantLast(t, fold, 1, 11)
	repaired.Store(true)
	s.must(r.AddRows(t.Context(), fold, tail, lost))
	wantLast(t, fold, 1, 19)
}

func TestAddRowsOfWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *store, id segment.ObjectID)
		want  error
	}{
		"missing": {func(s *store, id segment.ObjectID) { s.must(s.memory.Delete(s.t.Context(), []string{id.Key()})) }, bucket.ErrNotFound},
		"damaged": {func(s *store, id segment.ObjectID) {
			s.damage(id, func(b []byte) []byte {
				b = append([]byte(nil), b...)
				b[len(b)-segment.TrailerBytes-1] ^= 1 // of the index
				return b
			})
		}, siltstone.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			folds, changes := s.tails(5)
			c.spoil(s, folds[0].Unindexed(changes[0])[3].Object)
			r := s.reader(Options{}, defaultSizes)
			if err := r.AddRows(t.Context(), folds[0], changes[0], lost); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			wantLast(t, folds[0], 0, 2)
			var gone []error
			s.must(r.AddRows(t.Context(), folds[0], changes[0], func(_ segment.ObjectID, err error) error {
				gone = append(gone, err)
				return nil
			}))
			if len(gone) != 1 || !errors.Is(gone[0], c.want) {
				t.Errorf("lost: %v", gone)
			}
			wantLast(t, folds[0], 0, 4)
			r.Close()
			if err := r.AddRows(t.Context(), folds[1], changes[1], lost); !errors.Is(err, siltstone.ErrUnavailable) {
				t.Errorf("of a closed reader: %v", err)
			}
		})
	}
}
