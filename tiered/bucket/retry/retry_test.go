package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/buckettest"
	"github.com/siltstone-io/siltstone/tiered/bucket/faulty"
	"github.com/siltstone-io/siltstone/tiered/bucket/memory"
	"github.com/siltstone-io/siltstone/tiered/bucket/retry"
)

var errSlowDown = fmt.Errorf("slow down: %w", siltstone.ErrUnavailable)

func wrap(t *testing.T, inner bucket.Bucket, o retry.Options) *retry.Bucket {
	t.Helper()
	o.Rand = rand.New(rand.NewPCG(1, 2)).Uint64
	var mu sync.Mutex
	random := o.Rand
	o.Rand = func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return random()
	}
	b, err := retry.Wrap(inner, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSuite(t *testing.T) {
	buckettest.Run(t, func(t *testing.T) bucket.Bucket { return wrap(t, memory.New(), retry.Options{}) })
}

// TestSuiteWithFailures: where calls fail now and then before they reach the
// store, nobody notices.
func TestSuiteWithFailures(t *testing.T) {
	buckettest.Run(t, func(t *testing.T) bucket.Bucket {
		var mu sync.Mutex
		calls := 0
		return wrap(t, faulty.Wrap(memory.New(), func(faulty.Op, string) faulty.Fate {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls%20 == 0 {
				return faulty.Fate{Err: errSlowDown}
			}
			return faulty.Fate{}
		}), retry.Options{})
	})
}

// store counts and times the requests that reach it.
type store struct {
	bucket.Bucket
	mu   sync.Mutex
	fate func(n int, op faulty.Op) faulty.Fate // of the nth request
	at   []time.Time
}

func newStore(fate func(n int, op faulty.Op) faulty.Fate) *store {
	s := &store{fate: fate}
	s.Bucket = faulty.Wrap(memory.New(), func(op faulty.Op, _ string) faulty.Fate {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.at = append(s.at, time.Now())
		return s.fate(len(s.at), op)
	})
	return s
}

func (s *store) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// most is the largest number of requests within any stretch of time so long, of those before the end.
func (s *store) most(d time.Duration, end time.Time) (most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, from := range s.at {
		n := 0
		for _, at := range s.at[i:] {
			if at.Sub(from) < d && at.Before(end) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func always(f faulty.Fate) func(int, faulty.Op) faulty.Fate {
	return func(int, faulty.Op) faulty.Fate { return f }
}

func TestTries(t *testing.T) {
	refused := fmt.Errorf("403: %w", bucket.ErrRefused)
	for _, c := range []struct {
		name     string
		fate     func(n int, op faulty.Op) faulty.Fate
		want     error
		requests int
	}{
		{"at once", always(faulty.Fate{}), nil, 1},
		{"the third time", func(n int, _ faulty.Op) faulty.Fate {
			if n < 3 {
				return faulty.Fate{Err: errSlowDown}
			}
			return faulty.Fate{}
		}, nil, 3},
		{"never", always(faulty.Fate{Err: errSlowDown}), siltstone.ErrUnavailable, 4},
		{"an unknown error", always(faulty.Fate{Err: errors.New("a connection broke")}), errors.New("a connection broke"), 4},
		{"no answer", always(faulty.Fate{Delay: time.Hour}), siltstone.ErrUnavailable, 4},
		{"refused", always(faulty.Fate{Err: refused}), bucket.ErrRefused, 1},
		{"an answer", always(faulty.Fate{Err: bucket.ErrExists}), bucket.ErrExists, 1},
		{"a lost answer", func(n int, _ faulty.Op) faulty.Fate {
			if n == 1 {
				return faulty.Fate{Err: errSlowDown, Applied: true}
			}
			return faulty.Fate{}
		}, bucket.ErrExists, 2}, // the caller compares, says the port
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(c.fate)
				err := wrap(t, s, retry.Options{}).Put(t.Context(), "k", bucket.Body{[]byte("x")})
				if !errors.Is(err, c.want) && (err == nil || c.want == nil || !strings.Contains(err.Error(), c.want.Error())) {
					t.Errorf("Put: %v, want %v", err, c.want)
				}
				if n := s.requests(); n != c.requests {
					t.Errorf("%d requests, want %d", n, c.requests)
				}
			})
		})
	}
}

// TestUnavailableIsNotMissing: nothing that is trouble is taken for "no such object".
func TestUnavailableIsNotMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := wrap(t, newStore(always(faulty.Fate{Err: errSlowDown})), retry.Options{})
		for range 3 { // also once the gate is shut
			if _, err := b.Get(t.Context(), "k", 0, -1); errors.Is(err, bucket.ErrNotFound) || !errors.Is(err, siltstone.ErrUnavailable) {
				t.Errorf("Get: %v", err)
			}
			if _, err := b.Size(t.Context(), "k"); errors.Is(err, bucket.ErrNotFound) || !errors.Is(err, siltstone.ErrUnavailable) {
				t.Errorf("Size: %v", err)
			}
		}
	})
}

// TestRefusingStore has callers of all kinds who do not give up, for a minute,
// before a store that refuses everything, and says why a call failed; then the
// store recovers, and all get through.
func TestRefusingStore(t *testing.T) {
	for name, refusal := range map[string]error{"throttled": errSlowDown, "denied": fmt.Errorf("403 AccessDenied: %w", bucket.ErrRefused)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s := newStore(func(int, faulty.Op) faulty.Fate {
					if time.Since(start) < time.Minute {
						return faulty.Fate{Err: refusal}
					}
					return faulty.Fate{}
				})
				b := wrap(t, s, retry.Options{})
				var callers sync.WaitGroup
				until := func(call func() error) {
					callers.Go(func() {
						for time.Since(start) < 2*time.Minute {
							from := time.Now()
							err := call()
							if err == nil {
								return
							}
							if !errors.Is(err, refusal) {
								t.Errorf("the error does not say why: %v", err)
							}
							if took := time.Since(from); took > 10*time.Second {
								t.Errorf("a call failed after %v", took)
							}
							time.Sleep(10 * time.Millisecond) // a caller with less patience than any of ours
						}
						t.Error("a caller did not get through")
					})
				}
				// They come one after the other: those who come together are all under way before the first answer.
				for i := range 8 {
					until(func() error { return b.Put(t.Context(), fmt.Sprintf("k%d", i), bucket.Body{[]byte("x")}) })
					until(func() error { _, err := b.List(t.Context(), "", "", 1); return err })
					until(func() error { return b.Delete(t.Context(), []string{"gone"}) })
					time.Sleep(time.Millisecond)
				}
				callers.Wait()
				if most := s.most(time.Second, start.Add(time.Minute)); most > 20 {
					t.Errorf("%d requests in a second to a store that refuses everything", most)
				}
				if took := time.Since(start); took > time.Minute+3*time.Second {
					t.Errorf("all got through %v after the store recovered", took-time.Minute)
				}
			})
		})
	}
}

// TestNoDeletes: that deletes are refused does not slow other calls.
func TestNoDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(func(_ int, op faulty.Op) faulty.Fate {
			if op == faulty.Delete {
				return faulty.Fate{Err: bucket.ErrRefused}
			}
			return faulty.Fate{}
		})
		b := wrap(t, s, retry.Options{})
		for i := range 10 {
			if err := b.Delete(t.Context(), []string{"k"}); !errors.Is(err, bucket.ErrRefused) {
				t.Errorf("Delete: %v", err)
			}
			start := time.Now()
			if err := b.Put(t.Context(), fmt.Sprint("k", i), nil); err != nil {
				t.Error(err)
			}
			if _, err := b.Get(t.Context(), fmt.Sprint("k", i), 0, -1); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("Put and Get waited %v", took)
			}
		}
	})
}

func TestCallerGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(always(faulty.Fate{Delay: time.Hour}))
		b := wrap(t, s, retry.Options{})
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			start := time.Now()
			if _, err := b.Get(ctx, "k", 0, -1); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("Get: %v after %v", err, time.Since(start))
			}
			cancel()
		}
		s.mu.Lock()
		s.fate = always(faulty.Fate{})
		s.mu.Unlock()
		start := time.Now()
		if _, err := b.Get(t.Context(), "k", 0, -1); !errors.Is(err, bucket.ErrNotFound) || time.Since(start) != 0 {
			t.Errorf("Get after callers who went: %v after %v", err, time.Since(start))
		}
	})
}

// TestHedges: slow ones among fast reads are sent again, and few of them where
// all are slow.
func TestHedges(t *testing.T) {
	for _, c := range []struct {
		name         string
		slow         func(n int) bool
		least, most  float64 // hedges
		wantSlowRead bool
	}{
		{"one of fifty", func(n int) bool { return n%50 == 0 }, 1, 60, false},
		{"from some time on all", func(n int) bool { return n > 900 }, 1, 60, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg := prometheus.NewRegistry()
				s := newStore(always(faulty.Fate{}))
				b := wrap(t, s, retry.Options{Metrics: reg})
				if err := b.Put(t.Context(), "k", bucket.Body{[]byte("x")}); err != nil {
					t.Fatal(err)
				}
				s.mu.Lock()
				s.fate = func(n int, _ faulty.Op) faulty.Fate {
					if c.slow(n) {
						return faulty.Fate{Delay: 500 * time.Millisecond}
					}
					return faulty.Fate{Delay: 20 * time.Millisecond}
				}
				s.mu.Unlock()
				var slowest time.Duration
				for i := range 1000 {
					start := time.Now()
					if got, err := b.Get(t.Context(), "k", 0, 1); err != nil || string(got) != "x" {
						t.Fatalf("Get = %q, %v", got, err)
					}
					if i > 500 { // it knows the latencies by then
						slowest = max(slowest, time.Since(start))
					}
				}
				if isSlow := slowest > 200*time.Millisecond; isSlow != c.wantSlowRead {
					t.Errorf("the slowest read took %v", slowest)
				}
				hedges := metric(t, reg, "siltstone_bucket_hedges_total", "")
				if hedges < c.least || hedges > c.most {
					t.Errorf("%v hedges for 1000 reads; want %v to %v", hedges, c.least, c.most)
				}
				if sent := float64(s.requests()); sent != 1001+hedges {
					t.Errorf("%v requests for 1000 reads and %v hedges", sent, hedges)
				}
			})
		})
	}
}

// TestHedgesAreBounded: where many reads are slow at once, few are sent again.
func TestHedgesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		s := newStore(always(faulty.Fate{Delay: 20 * time.Millisecond}))
		b := wrap(t, s, retry.Options{Metrics: reg})
		if err := b.Put(t.Context(), "k", bucket.Body{[]byte("x")}); err != nil {
			t.Fatal(err)
		}
		get := func() {
			if _, err := b.Get(t.Context(), "k", 0, 1); err != nil {
				t.Error(err)
			}
		}
		for range 500 {
			get()
		}
		before := metric(t, reg, "siltstone_bucket_hedges_total", "")
		s.mu.Lock()
		s.fate = always(faulty.Fate{Delay: 500 * time.Millisecond})
		s.mu.Unlock()
		var readers sync.WaitGroup
		for range 200 {
			readers.Go(get)
		}
		readers.Wait()
		if n := metric(t, reg, "siltstone_bucket_hedges_total", "") - before; n < 1 || n > 20 {
			t.Errorf("%v of 200 reads were sent again", n)
		}
	})
}

// metric is the value of a counter or gauge whose label, if it has one, is kind.
func metric(t *testing.T, reg *prometheus.Registry, name, kind string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (len(m.GetLabel()) == 0 || m.GetLabel()[0].GetValue() == kind) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s of %q", name, kind)
	return 0
}

func TestRefusingGauge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		b := wrap(t, newStore(func(n int, _ faulty.Op) faulty.Fate {
			if n <= 4 {
				return faulty.Fate{Err: errSlowDown}
			}
			return faulty.Fate{}
		}), retry.Options{Metrics: reg})
		want := func(refusing float64) {
			t.Helper()
			if got := metric(t, reg, "siltstone_bucket_refusing", "put"); got != refusing {
				t.Errorf("the gauge of puts is %v, want %v", got, refusing)
			}
			if got := metric(t, reg, "siltstone_bucket_refusing", "read"); got != 0 {
				t.Errorf("the gauge of reads is %v", got)
			}
		}
		want(0)
		if err := b.Put(t.Context(), "k", nil); !errors.Is(err, siltstone.ErrUnavailable) {
			t.Errorf("Put: %v", err)
		}
		want(1)
		if err := b.Put(t.Context(), "k", nil); err != nil {
			t.Error(err)
		}
		want(0)
	})
}
