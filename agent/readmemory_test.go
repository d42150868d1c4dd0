package agent

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
)

// fetchAll asks for as much as there is, and keeps it.
func (a *running) fetchAll(tp siltstone.TopicPartition, wait time.Duration) *siltstone.FetchResult {
	a.rig.t.Helper()
	res, err := a.Fetch(context.Background(), &siltstone.FetchRequest{
		Deadline: time.Now().Add(wait), MinBytes: 1, MaxBytes: 1 << 30,
		Parts: []siltstone.FetchPart{{Partition: tp, MaxBytes: 1 << 30, Epoch: -1, LastEpoch: -1}},
	})
	if err != nil {
		a.rig.t.Fatal(err)
	}
	return res
}

// TestReadersWhoKeepTheirAnswers, from memory and from objects, have an eighth of
// what is left each, and never more than there is; then a fetch is answered
// without records, and served as soon as one of them lets go.
func TestReadersWhoKeepTheirAnswers(t *testing.T) {
	const limit, batches, size = 8 << 20, 40, 500_000
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) {
			o.Memory = Memory{Answers: limit, Tail: 64 << 20, Cache: 1 << 20, Whole: 2 << 20}
			o.Flush.Bytes = 1 << 20
		}
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		for range batches {
			if _, err := a.produce(tp, -1, aBatch(t, 1, 1, strings.Repeat("x", size))); err != nil {
				t.Fatal(err)
			}
		}
		keepAnswers(t, a, tp, limit)
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		keepAnswers(t, r.start(), tp, limit)
	})
}

func keepAnswers(t *testing.T, a *running, tp siltstone.TopicPartition, limit int) {
	var kept []*siltstone.FetchResult
	total, first := 0, 0
	for {
		res := a.fetchAll(tp, 0)
		n := sizeOf(res.Parts[0].Records)
		if n == 0 {
			if res.Parts[0].HighWatermark != 40 || res.Parts[0].Err != nil {
				t.Errorf("without records: %+v", res.Parts[0])
			}
			break
		}
		if first == 0 {
			first = n
		}
		total += n
		if kept = append(kept, res); total > limit {
			t.Fatalf("%d bytes are kept, of %d", total, limit)
		}
	}
	if most := limit/readShare + 1<<20; first > most || len(kept) < 3 {
		t.Errorf("%d answers, the first of %d bytes, want at most %d", len(kept), first, most)
	}
	served := make(chan int, 1)
	go func() { served <- sizeOf(a.fetchAll(tp, time.Minute).Parts[0].Records) }()
	synctest.Wait()
	select {
	case n := <-served:
		t.Errorf("%d bytes were given while there was no memory", n)
	default:
	}
	begin := time.Now()
	for _, res := range kept {
		res.Release()
	}
	if n := <-served; n == 0 || time.Since(begin) > time.Second {
		t.Errorf("%d bytes after %v, once there was memory", n, time.Since(begin))
	}
}

// TestLeasesAddUp: whatever is taken, kept and given back, all is free at the end.
func TestLeasesAddUp(t *testing.T) {
	m := newReadMemory(100)
	one, two := &readLease{of: m}, &readLease{of: m}
	if one.take(1000, 0) != nil {
		t.Error("there was no room for the only one")
	}
	given := two.take(1, 0)
	if given == nil {
		t.Error("there was room beside one that is larger than all memory")
	}
	one.release()
	<-given
	for range 2 {
		if !two.reserve(60) {
			t.Error("what is reserved is not there")
		}
	}
	if two.held != 60 || one.take(20, 25) == nil || one.take(20, 20) != nil {
		t.Error("what is reserved is reserved once, and what is left to others is left")
	}
	one.release()
	two.keep(90)
	if m.free != 10 || two.held != 90 {
		t.Errorf("%d are free, and %d are held", m.free, two.held)
	}
	two.release()
	two.release()
	if m.free != 100 {
		t.Errorf("%d are free of 100", m.free)
	}
}
