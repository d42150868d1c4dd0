package tiered

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

// slow is a bucket whose GETs take a second.
func slow(string) faulty.Fate { return faulty.Fate{Delay: time.Second} }

// objects are n objects of one partition, each of a batch, offset i in object i.
func (s *store) objects(n, sizeBytes int) (runs []run, ranges []shard.Range) {
	for i := range n {
		base := siltstone.Offset(i)
		r := run{tp: partition(0), base: base, batches: [][]byte{newBatch(s.t, base, 1, 0, sizeBytes)}, end: base + 1}
		runs = append(runs, r)
		ranges = append(ranges, s.put(r)...)
	}
	return runs, ranges
}

func read(ctx context.Context, r *Reader, it run, rng shard.Range) error {
	found, err := r.Read(ctx, request(it, rng, it.base, 1<<20))
	if err == nil && !equalBatches(found.Batches, it.batches) {
		return fmt.Errorf("%d batches, want %d", len(found.Batches), len(it.batches))
	}
	return err
}

func TestOneLoadForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.fate = slow
		runs, ranges := s.objects(1, 100)
		r := s.reader(Options{}, defaultSizes)
		start := time.Now()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := read(t.Context(), r, runs[0], ranges[0]); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
		s.wantGets(1, "fifty readers")
	})
}

func TestLoadOutlivesItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.fate = slow
		runs, ranges := s.objects(1, 100)
		r := s.reader(Options{}, defaultSizes)
		for i := range 4 { // each waits 300 ms, of the second that it takes
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			err := read(ctx, r, runs[0], ranges[0])
			cancel()
			if i < 3 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("reader %d: %v, want its own deadline", i, err)
			}
			if i == 3 && err != nil {
				t.Errorf("reader %d: %v, want what the first one started", i, err)
			}
		}
		s.wantGets(1, "four readers")
	})
}

func TestLoadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.fate = slow
		runs, ranges := s.objects(7, 100)
		r := s.reader(Options{Loads: 2}, defaultSizes)
		start := time.Now()
		var wg sync.WaitGroup
		for i := range runs {
			wg.Go(func() {
				if err := read(t.Context(), r, runs[i], ranges[i]); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		s.wantGets(2, "with two loads at once")
		wg.Wait()
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("seven loads, two at a time, took %v", took)
		}
	})
}

func TestFailedLoadIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		down := errors.New("the store is down")
		s.fate = func(string) faulty.Fate { return faulty.Fate{Err: down} }
		runs, ranges := s.objects(1, 100)
		r := s.reader(Options{}, defaultSizes)
		if err := read(t.Context(), r, runs[0], ranges[0]); !errors.Is(err, down) {
			t.Errorf("%v, want the store's error", err)
		}
		s.wantGets(1, "retries are the bucket's")
		s.fate = nil
		if err := read(t.Context(), r, runs[0], ranges[0]); err != nil {
			t.Errorf("once the store is back: %v", err)
		}
	})
}

func TestLoadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.fate = func(string) faulty.Fate { return faulty.Fate{Delay: time.Hour} }
		runs, ranges := s.objects(1, 100)
		r := s.reader(Options{LoadTimeout: 7 * time.Second}, defaultSizes)
		start := time.Now()
		if err := read(t.Context(), r, runs[0], ranges[0]); !errors.Is(err, siltstone.ErrUnavailable) || time.Since(start) != 7*time.Second {
			t.Errorf("%v after %v, want ErrUnavailable after 7s", err, time.Since(start))
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.fate = func(string) faulty.Fate { return faulty.Fate{Delay: time.Hour} }
		runs, ranges := s.objects(4, 100)
		r := s.reader(Options{Loads: 1, LoadTimeout: 2 * time.Hour}, defaultSizes)
		r.ReadAhead(ranges[3])
		var wg sync.WaitGroup
		for i := range 3 { // one loads, two wait for its slot
			wg.Go(func() {
				if err := read(t.Context(), r, runs[i], ranges[i]); !errors.Is(err, siltstone.ErrUnavailable) {
					t.Errorf("a read that waits: %v, want ErrUnavailable", err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		r.Close()
		wg.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if err := read(t.Context(), r, runs[0], ranges[0]); !errors.Is(err, siltstone.ErrUnavailable) {
			t.Errorf("a read after Close: %v, want ErrUnavailable", err)
		}
		r.ReadAhead(ranges...)
		r.Close()
	})
}

func TestReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.fate = slow
		runs, ranges := s.objects(5, 100)
		r := s.reader(Options{AheadLoads: 2, Loads: 1}, defaultSizes)
		start := time.Now()
		r.ReadAhead(ranges[0], ranges[0], ranges[1], ranges[2])
		if time.Since(start) != 0 {
			t.Error("ReadAhead waits")
		}
		synctest.Wait()
		s.wantGets(2, "two loads ahead at once")
		time.Sleep(500 * time.Millisecond)
		if err := read(t.Context(), r, runs[0], ranges[0]); err != nil { // joins the load that is under way
			t.Error(err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("a read of what is being read ahead took %v in all", took)
		}
		synctest.Wait()
		if one := r.cache.unread; one == 0 || one > r.cache.used*2/3 {
			t.Errorf("%d of %d bytes count as unread, want those of one of two", one, r.cache.used)
		}
		r.ReadAhead(ranges...) // 0 and 1 are there
		time.Sleep(2 * time.Second)
		s.wantGets(4, "two more")
		for i := range 4 {
			if err := read(t.Context(), r, runs[i], ranges[i]); err != nil {
				t.Error(err)
			}
		}
		s.wantGets(4, "all were read ahead")
	})
}

// What is read ahead and not read takes up no more than its share.
func TestReadAheadLeavesTheCacheAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		runs, ranges := s.objects(30, 1000)
		const limit = 16_000
		r := s.reader(Options{CacheBytes: limit}, defaultSizes)
		if err := read(t.Context(), r, runs[0], ranges[0]); err != nil {
			t.Fatal(err)
		}
		for _, rng := range ranges[1:] {
			r.ReadAhead(rng)
			synctest.Wait()
		}
		s.wantGets(1+3, "a quarter of the cache")
		if err := read(t.Context(), r, runs[0], ranges[0]); err != nil {
			t.Fatal(err)
		}
		s.wantGets(1+3, "what was read stays")
		for i := 1; i <= 3; i++ {
			if err := read(t.Context(), r, runs[i], ranges[i]); err != nil {
				t.Fatal(err)
			}
		}
		if r.cache.unread != 0 {
			t.Errorf("%d bytes count as unread when all were read", r.cache.unread)
		}
	})
}

func TestChunksAreReadAheadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		it := newRun(t, partition(0), 0, 40, 1000)
		rng := s.put(it)[0]
		rng.Generation = 1
		r := s.reader(Options{}, sizes{whole: 1000, footer: 4000, chunk: 8000})
		s.fate = slow
		q := request(it, rng, 0, 3000)
		start := time.Now()
		const ownWork = 400 * time.Millisecond // of the reader, after each read
		reads := 0
		var got [][]byte
		for q.From < rng.End() {
			found, err := r.Read(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, found.Batches...)
			q.From = found.Next
			reads++
			time.Sleep(ownWork)
		}
		if !equalBatches(got, it.batches) {
			t.Errorf("%d batches, want %d", len(got), len(it.batches))
		}
		s.wantGets(1+6, "the footer and six chunks")
		if took, want := time.Since(start), 2*time.Second+time.Duration(reads)*ownWork; took != want {
			t.Errorf("took %v, want %v: only the footer and the first chunk are waited for", took, want)
		}
	})
}

// A read that has something does not wait for more.
func TestReadDoesNotWaitTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		it := newRun(t, partition(0), 0, 10, 1000)
		rng := s.put(it)[0]
		r := s.reader(Options{}, sizes{whole: 1000, footer: 4000, chunk: 2500})
		s.fate = slow
		if _, err := r.Index(t.Context(), rng.Object); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		found, err := r.Read(t.Context(), request(it, rng, 0, 1<<20))
		if err != nil || len(found.Batches) == 0 || len(found.Batches) == 10 {
			t.Fatalf("%d batches, %v; want those of the first chunk", len(found.Batches), err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v, want a second for the object and one for a chunk", took)
		}
		time.Sleep(time.Second)
		start = time.Now()
		if _, err := r.Read(t.Context(), request(it, rng, found.Next, 1)); err != nil || time.Since(start) != 0 {
			t.Errorf("the next chunk: %v after %v, want it read ahead", err, time.Since(start))
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	s := newStore(t)
	runs, ranges := s.objects(20, 1000)
	registry := prometheus.NewRegistry()
	const limit = 9000
	r := s.reader(Options{CacheBytes: limit, Metrics: registry}, defaultSizes)
	for i := range runs {
		for _, j := range []int{0, i} { // the first is always used
			if err := read(t.Context(), r, runs[j], ranges[j]); err != nil {
				t.Fatal(err)
			}
		}
		if used := metric(t, registry, "siltstone_tiered_cache_bytes"); used > limit || i > 8 && used < limit/2 {
			t.Fatalf("the cache holds %v bytes of %d", used, limit)
		}
	}
	s.wantGets(20, "the last used stay")
	if err := read(t.Context(), r, runs[1], ranges[1]); err != nil {
		t.Fatal(err)
	}
	s.wantGets(21, "the first used were given up")
	for name, want := range map[string]float64{
		"siltstone_tiered_cache_hits_total": 20, "siltstone_tiered_cache_misses_total": 21,
		"siltstone_tiered_gets_total": 21, "siltstone_tiered_ahead_loads_total": 0,
	} {
		if got := metric(t, registry, name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if kept := len(r.cache.blocks); metric(t, registry, "siltstone_tiered_cache_evictions_total") != float64(21-kept) {
		t.Errorf("evictions do not add up with %d blocks kept", kept)
	}
}

// metric is the sum of a metric over its labels.
func metric(t *testing.T, g prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
			return sum
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestAnObjectLargerThanTheCache(t *testing.T) {
	s := newStore(t)
	runs, ranges := s.objects(1, 10_000)
	r := s.reader(Options{CacheBytes: 5000}, defaultSizes)
	for range 2 {
		if err := read(t.Context(), r, runs[0], ranges[0]); err != nil {
			t.Fatal(err)
		}
	}
	s.wantGets(2, "nothing is kept")
}

func TestManyReadersAtOnce(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStore(t)
			var runs []run
			var ranges []shard.Range
			for i := range 8 {
				it := newRun(t, partition(0), siltstone.Offset(i)*1000, 20, 300)
				rng := s.put(it, newRun(t, partition(9), 0, 3, 100))[0]
				rng.Generation = way.generation
				runs, ranges = append(runs, it), append(ranges, rng)
			}
			r := s.reader(Options{CacheBytes: 30_000, Loads: 3}, way.sizes)
			var wg sync.WaitGroup
			for reader := range 8 {
				wg.Go(func() {
					for i := range 8 {
						at := (i + reader) % 8
						got, err := collect(t.Context(), r, request(runs[at], ranges[at], runs[at].base, 1000))
						if err != nil || !equalBatches(got, runs[at].batches) {
							t.Errorf("reader %d, object %d: %d batches, %v; want %d", reader, at, len(got), err, len(runs[at].batches))
						}
						r.ReadAhead(ranges[(at+1)%8])
					}
				})
			}
			wg.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.cache.used > 30_000 || r.cache.unread > r.cache.used || r.cache.unread < 0 {
				t.Errorf("the cache counts %d bytes, %d unread", r.cache.used, r.cache.unread)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	s := newStore(t)
	for name, o := range map[string]Options{
		"no bucket": {}, "negative cache": {Bucket: s.bucket, CacheBytes: -1}, "negative loads": {Bucket: s.bucket, Loads: -1},
		"negative ahead": {Bucket: s.bucket, AheadLoads: -1}, "negative timeout": {Bucket: s.bucket, LoadTimeout: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	registry := prometheus.NewRegistry()
	s.reader(Options{Metrics: registry}, defaultSizes)
	if _, err := New(Options{Bucket: s.bucket, Metrics: registry}); err == nil {
		t.Error("metrics registered twice: no error")
	}
}
