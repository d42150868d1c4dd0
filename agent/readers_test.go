package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	bfaulty "github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

// TestMissingObjectIsItsPartitionsErrorAlone: the others of the request are served.
func TestMissingObjectIsItsPartitionsErrorAlone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var put string
		r.fate = func(op bfaulty.Op, key string) bfaulty.Fate {
			if op == bfaulty.Put {
				put = key
			}
			return bfaulty.Fate{}
		}
		a := r.start()
		id := a.create("t", 2)
		bad, good := siltstone.TopicPartition{Topic: id}, siltstone.TopicPartition{Topic: id, Partition: 1}
		for _, tp := range []siltstone.TopicPartition{good, bad} {
			if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.bucket.Delete(t.Context(), []string{put}); err != nil {
			t.Fatal(err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		b := r.start()
		for _, order := range [][]siltstone.TopicPartition{{bad, good}, {good, bad}} {
			q := &siltstone.FetchRequest{Deadline: time.Now(), MinBytes: 1, MaxBytes: 1 << 20}
			for _, tp := range order {
				q.Parts = append(q.Parts, siltstone.FetchPart{Partition: tp, MaxBytes: 1 << 20, Epoch: -1, LastEpoch: -1})
			}
			res, err := b.Fetch(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for i, tp := range order {
				part := &res.Parts[i]
				if tp == good && (part.Err != nil || len(part.Records) != 1) {
					t.Errorf("%s, whose object is there: %+v", tp, part)
				}
				if tp == bad && (!errors.Is(part.Err, siltstone.ErrCorrupt) || !errors.Is(part.Err, bucket.ErrNotFound)) {
					t.Errorf("%s, whose object is missing: %v", tp, part.Err)
				}
			}
		}
	})
}

func TestFetchOfAReaderThatHasGone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := a.Fetch(ctx, &siltstone.FetchRequest{
				Deadline: time.Now().Add(10 * time.Minute), MinBytes: 1, MaxBytes: 100,
				Parts: []siltstone.FetchPart{{Partition: tp, MaxBytes: 100, Epoch: -1, LastEpoch: -1}},
			})
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		op := &sizeOp{done: make(chan struct{})}
		if err := a.do(t.Context(), op, op.done); err != nil || op.deadlines > 0 {
			t.Errorf("%d fetches wait that nobody waits for, %v", op.deadlines, err)
		}
	})
}

// TestReadersOfTinyRanges are answered, however little an object has for them.
func TestReadersOfTinyRanges(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.Flush.Eager = true }
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		var want []string
		for i := range 3 * maxPartRanges {
			want = append(want, fmt.Sprint(i))
			if _, err := a.produce(tp, -1, aBatch(t, 1, 1, want[i])); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		var gets atomic.Int64
		r.set(func() {
			r.fate = func(op bfaulty.Op, _ string) bfaulty.Fate {
				if op == bfaulty.Get {
					gets.Add(1)
				}
				return bfaulty.Fate{Delay: 20 * time.Millisecond}
			}
		})
		b := r.start()
		start, before := time.Now(), gets.Load()
		res, err := b.Fetch(t.Context(), &siltstone.FetchRequest{
			Deadline: time.Now().Add(time.Minute), MinBytes: 1 << 20, MaxBytes: 1 << 20,
			Parts: []siltstone.FetchPart{{Partition: tp, MaxBytes: 1 << 20, Epoch: -1, LastEpoch: -1}},
		})
		if err != nil || len(res.Parts[0].Records) == 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		if took := time.Since(start); took > coldTime+100*time.Millisecond || gets.Load()-before > maxPartRanges+readAhead {
			t.Errorf("a fetch took %s, and %d objects", took, gets.Load()-before)
		}
		wantValues(t, b.readAll(tp, 0), want...)
	})
}

// TestObjectsAreReadOnceForAllPartitions, though an answer has room for few of
// them and the cache for not many more.
func TestObjectsAreReadOnceForAllPartitions(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		const partitions, objects, size = 8, 40, 10_000
		r.adjust = func(o *Options) {
			o.Memory.Answers = 8 * slabBytes
			o.Memory.Whole = 1 << 20
			o.Memory.Cache = 10 * partitions * size
		}
		a := r.start()
		id := a.create("t", partitions)
		for range objects {
			req := &siltstone.AppendRequest{Acks: -1, Deadline: time.Now().Add(time.Minute), Done: make(chan struct{})}
			for p := range int32(partitions) {
				req.Parts = append(req.Parts, siltstone.AppendPart{
					Partition: siltstone.TopicPartition{Topic: id, Partition: p}, Batches: aBatch(t, 1, 1, strings.Repeat("x", size)),
				})
			}
			if err := a.Append(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			<-req.Done
			for p := range req.Parts {
				if err := req.Parts[p].Err; err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		var gets atomic.Int64
		r.set(func() {
			r.fate = func(op bfaulty.Op, _ string) bfaulty.Fate {
				if op == bfaulty.Get {
					gets.Add(1)
				}
				return bfaulty.Fate{}
			}
		})
		b := r.start()
		<-b.Ready()
		before := gets.Load()
		var next [partitions]siltstone.Offset
		fetches := 0
		for ; slices.Min(next[:]) < objects; fetches++ {
			q := &siltstone.FetchRequest{Deadline: time.Now().Add(time.Second), MinBytes: 1, MaxBytes: 50 << 20}
			for p := range int32(partitions) {
				q.Parts = append(q.Parts, siltstone.FetchPart{
					Partition: siltstone.TopicPartition{Topic: id, Partition: p}, Offset: next[p], MaxBytes: 1 << 20, Epoch: -1, LastEpoch: -1,
				})
			}
			res, err := b.Fetch(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for p := range res.Parts {
				if res.Parts[p].Err != nil {
					t.Fatal(res.Parts[p].Err)
				}
				next[p] += siltstone.Offset(len(res.Parts[p].Records))
			}
			res.Release()
		}
		if n := gets.Load() - before; n > objects+readAhead || fetches < 2 {
			t.Errorf("%d objects were read by %d gets, in %d fetches", objects, n, fetches)
		}
	})
}
