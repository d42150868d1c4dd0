package tiered

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/faulty"
	"github.com/siltstone-io/siltstone/tiered/bucket/memory"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// store is a bucket with objects whose requests a test counts and delays.
type store struct {
	t      testing.TB
	memory *memory.Bucket
	bucket *faulty.Bucket
	fate   func(key string) faulty.Fate // of Gets; nil: all go through
	gets   atomic.Int64
	made   uint64
}

func newStore(t testing.TB) *store {
	s := &store{t: t, memory: memory.New()}
	s.bucket = faulty.Wrap(s.memory, func(op faulty.Op, key string) faulty.Fate {
		if op != faulty.Get {
			t.Errorf("the reader asks for %s of %s", op, key)
		}
		s.gets.Add(1)
		if s.fate == nil {
			return faulty.Fate{}
		}
		return s.fate(key)
	})
	return s
}

// run is what a test's object holds of a partition: batches with offsets up to End.
type run struct {
	tp      siltstone.TopicPartition
	base    siltstone.Offset
	batches [][]byte
	end     siltstone.Offset
}

// put makes an object of runs and returns the ranges that a fold would have of them.
func (s *store) put(runs ...run) []shard.Range {
	s.t.Helper()
	s.made++
	id := segment.ObjectID{Hour: 500_000, Incarnation: 7, Number: s.made}
	w := segment.NewWriter(segment.Header{ID: id})
	for _, r := range runs {
		s.must(w.Run(0, r.tp, r.base))
		for _, b := range r.batches {
			s.must(w.Batch(b))
		}
		s.must(w.CoverTo(r.end))
	}
	parts, x, err := w.Finish()
	s.must(err)
	s.must(s.memory.Put(s.t.Context(), id.Key(), parts))
	var ranges []shard.Range
	for i := range x.Runs {
		r := &x.Runs[i]
		ranges = append(ranges, shard.Range{
			Object: id, Base: runs[i].base, Offsets: r.Offsets, LengthBytes: r.LengthBytes, MaxTimestamp: r.MaxTimestamp(), Epoch: r.LastEpoch(),
		})
	}
	return ranges
}

// damage changes a stored object, which no bucket does by itself.
func (s *store) damage(id segment.ObjectID, change func([]byte) []byte) {
	s.t.Helper()
	b, err := s.memory.Get(s.t.Context(), id.Key(), 0, -1)
	s.must(err)
	s.must(s.memory.Delete(s.t.Context(), []string{id.Key()}))
	s.must(s.memory.Put(s.t.Context(), id.Key(), bucket.Body{change(b)}))
}

func (s *store) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) wantGets(n int64, when string) {
	s.t.Helper()
	if got := s.gets.Load(); got != n {
		s.t.Errorf("%s: %d GETs, want %d", when, got, n)
	}
}

// reader opens a Reader with sizes as a test needs them.
func (s *store) reader(o Options, z sizes) *Reader {
	s.t.Helper()
	o.Bucket = s.bucket
	r, err := New(o)
	s.must(err)
	r.sizes = z
	s.t.Cleanup(r.Close)
	return r
}

func partition(n int32) siltstone.TopicPartition {
	return siltstone.TopicPartition{Topic: siltstone.TopicID{1}, Partition: n}
}

// newBatch has n records of about sizeBytes together, with timestamps from ts on.
func newBatch(t testing.TB, base siltstone.Offset, n int, ts int64, sizeBytes int) []byte {
	t.Helper()
	b := batch.NewBuilder(batch.None, 0)
	b.Header.Epoch = 3
	b.Header.BaseOffset = base
	for i := range n {
		value := bytes.Repeat([]byte{byte(base) + byte(i)}, sizeBytes/n)
		b.Append(batch.Record{Timestamp: ts + int64(i), Key: fmt.Appendf(nil, "%d", int(base)+i), Value: value})
	}
	out, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// newRun has batches of one to five records, all offsets from base on, with
// time equal to offset.
func newRun(t testing.TB, tp siltstone.TopicPartition, base siltstone.Offset, batches, sizeBytes int) run {
	r := run{tp: tp, base: base, end: base}
	for i := range batches {
		n := i%5 + 1
		r.batches = append(r.batches, newBatch(t, r.end, n, int64(r.end), sizeBytes))
		r.end += siltstone.Offset(n)
	}
	return r
}

func request(r run, rng shard.Range, from siltstone.Offset, maxBytes int) Request {
	return Request{Partition: r.tp, Range: rng, From: from, MaxBytes: maxBytes}
}

// collect reads on until the end of the range.
func collect(ctx context.Context, r *Reader, q Request) (all [][]byte, err error) {
	for {
		found, err := r.Read(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("from %d: %w", q.From, err)
		}
		all = append(all, found.Batches...)
		if found.Next == q.Range.End() {
			return all, nil
		}
		if found.Next <= q.From || len(found.Batches) == 0 {
			return nil, fmt.Errorf("from %d: %d batches, and to go on at %d", q.From, len(found.Batches), found.Next)
		}
		q.From = found.Next
	}
}

func readAll(t testing.TB, r *Reader, q Request) [][]byte {
	t.Helper()
	all, err := collect(t.Context(), r, q)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func equalBatches(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
