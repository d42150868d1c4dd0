package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// nextIDs asks for n producer ids at once.
func (a *running) nextIDs(ctx context.Context, n int) (ids []int64, errs []error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			id, err := a.NextProducerID(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			ids = append(ids, id)
		})
	}
	all.Wait()
	return ids, errs
}

// clusterAppends counts the appends to the cluster's ledger.
func clusterAppends(r *rig) (appends *int) {
	appends = new(int)
	r.set(func() {
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Append && c.Name == topic.Ledger {
				r.set(func() { *appends++ })
			}
			return do(ctx)
		}
	})
	return appends
}

// TestProducerIDs: every id once, by whomever and however many are asked for,
// one entry per block, and a new run begins another.
func TestProducerIDs(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		appends := clusterAppends(r)
		seen := map[int64]bool{}
		for run := range int64(3) {
			r.adjust = func(o *Options) {
				if run == 1 {
					o.DrainTime = -1 // ends as if it crashed
				}
			}
			a := r.start()
			ids, errs := a.nextIDs(t.Context(), 500)
			more, moreErrs := a.nextIDs(t.Context(), topic.ProducerIDBlock)
			if errs = append(errs, moreErrs...); len(errs) > 0 {
				t.Fatal(errs[0])
			}
			ids = append(ids, more...)
			for _, id := range ids {
				if seen[id] || id < 2*run*topic.ProducerIDBlock || id >= (2*run+2)*topic.ProducerIDBlock {
					t.Fatalf("run %d was given %d, seen before: %v", run, id, seen[id])
				}
				seen[id] = true
			}
			if err := a.end(); err != nil {
				t.Fatal(err)
			}
		}
		if *appends != 6 {
			t.Errorf("%d appends for 6 blocks", *appends)
		}
	})
}

// TestProducerIDsOfTwoAgents: a block that another's entry came before is
// decided on again, and one whose append got no reply is taken once.
func TestProducerIDsOfTwoAgents(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var appends atomic.Int32
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Append && c.Name == topic.Ledger && appends.Add(1)%2 == 1 {
				return cfaulty.LoseReply(ctx, c, do)
			}
			return do(ctx)
		}
		a := r.start()
		b := r.launch() // leads nothing, and takes blocks all the same
		seen := map[int64]bool{}
		for range 5 {
			for _, by := range []*running{a, b} {
				ids, errs := by.nextIDs(t.Context(), topic.ProducerIDBlock)
				if len(errs) > 0 {
					t.Fatal(errs[0])
				}
				for _, id := range ids {
					if seen[id] {
						t.Fatalf("%d was given twice", id)
					}
					seen[id] = true
				}
			}
		}
	})
}

// TestProducerIDsWithoutCoordinator: who waits goes in time, and those that
// come again are not more than there is place for.
func TestProducerIDsWithoutCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		healed := make(chan struct{})
		r.set(func() {
			r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
				if c.Op != cfaulty.Append || c.Name != topic.Ledger {
					return do(ctx)
				}
				select {
				case <-healed:
					return do(ctx)
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, errs := a.nextIDs(ctx, maxChanges)
			cancel()
			for _, err := range errs {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
			}
			if len(errs) != maxChanges {
				t.Fatalf("%d were given up", len(errs))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range maxChanges {
			go func() { _, _ = a.NextProducerID(ctx) }()
		}
		synctest.Wait()
		if _, err := a.NextProducerID(t.Context()); !errors.Is(err, siltstone.ErrUnavailable) {
			t.Errorf("one too many: %v", err)
		}
		cancel()
		synctest.Wait()
		close(healed)
		if id, err := a.NextProducerID(t.Context()); err != nil || id < 0 {
			t.Errorf("after all is well: %d, %v", id, err)
		}
	})
}
