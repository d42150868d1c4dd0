package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	bfaulty "github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

func TestNotReadyWhileTheCoordinatorFails(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		r.set(func() {
			r.hook = func(context.Context, cfaulty.Call, func(context.Context) error) error {
				return siltstone.ErrUnavailable
			}
		})
		req := a.send(tp, -1, aBatch(t, 1, 1, "x"))
		time.Sleep(10 * time.Second)
		if s := a.Status(); s.Ready || !strings.Contains(s.Why, shard.Ledger(shard.Of(tp))) {
			t.Errorf("nothing is committed: %+v", s)
		}
		r.set(func() { r.hook = nil })
		<-req.Done
		if err := req.Parts[0].Err; err != nil {
			t.Error(err)
		}
		if s := a.Status(); !s.Ready {
			t.Errorf("the coordinator is back: %+v", s)
		}
	})
}

// fails makes some operations on the bucket fail.
func (r *rig) fails(ops ...bfaulty.Op) {
	r.set(func() {
		r.fate = func(op bfaulty.Op, _ string) bfaulty.Fate {
			if slices.Contains(ops, op) {
				return bfaulty.Fate{Err: siltstone.ErrUnavailable}
			}
			return bfaulty.Fate{}
		}
	})
}

// TestNotReadyWhileReadsFail: a bucket that takes objects and gives none back is
// known by its readers; once one is served, or nobody has asked for a while,
// nothing is known against it any more.
func TestNotReadyWhileReadsFail(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "x")); err != nil {
			t.Fatal(err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		a = r.start() // what was written is in the bucket only
		unreadable := func() {
			t.Helper()
			r.fails(bfaulty.Get)
			if part := a.fetch(tp, 0, 1000, 0); !errors.Is(part.Err, siltstone.ErrUnavailable) {
				t.Fatalf("read: %v", part.Err)
			}
			if s := a.Status(); s.Ready || !strings.Contains(s.Why, "read objects") {
				t.Fatalf("objects cannot be read: %+v", s)
			}
			r.fails()
		}
		unreadable()
		time.Sleep(readTrouble)
		if s := a.Status(); !s.Ready {
			t.Errorf("nobody reads: %+v", s)
		}
		unreadable()
		wantValues(t, a.readAll(tp, 0), "x")
		if s := a.Status(); !s.Ready {
			t.Errorf("objects can be read: %+v", s)
		}
	})
}

// TestNotReadyWhilePutHangs: a store that says nothing at all is noticed before
// a request has failed.
func TestNotReadyWhilePutHangs(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		r.slowPuts(2 * lateAfter)
		req := a.send(tp, -1, aBatch(t, 1, 1, "x"))
		time.Sleep(lateAfter)
		if s := a.Status(); !s.Ready {
			t.Errorf("it may just be slow: %+v", s)
		}
		time.Sleep(time.Second)
		if s := a.Status(); s.Ready || !strings.Contains(s.Why, errLate.Error()) {
			t.Errorf("no answer: %+v", s)
		}
		<-req.Done
		if err, s := req.Parts[0].Err, a.Status(); err != nil || !s.Ready {
			t.Errorf("it is answered: %v, %+v", err, s)
		}
	})
}

// TestEndsWithRecords: an agent that has to end with records in its memory says so.
func TestEndsWithRecords(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		r.fails(bfaulty.Put)
		if _, err := a.produce(tp, 1, aBatch(t, 1, 1, "x")); err != nil {
			t.Fatal(err)
		}
		if err := a.end(); !errors.Is(err, ErrUnwritten) || !strings.Contains(err.Error(), "put ") {
			t.Errorf("ended with %v", err)
		}
		r.fails()
		if err := r.start().end(); err != nil {
			t.Errorf("ended with %v, and had nothing", err)
		}
	})
}

// TestChangesWhileTheCoordinatorFails: those that nobody waits for any more cost
// nothing and are not made later; of others there is a bound.
func TestChangesWhileTheCoordinatorFails(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		r.set(func() {
			r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
				if c.Op == cfaulty.Append && c.Name == topic.Ledger {
					return coordinator.ErrUnknown
				}
				return do(ctx)
			}
		})
		create := func(ctx context.Context, name string) error {
			return a.Change(ctx, func(v *topic.View) topic.Decision {
				d, _ := topic.Create(v, []topic.NewTopic{{Name: name, ID: siltstone.TopicID([]byte(name + "................")[:16]), Partitions: 1, Replication: -1}})
				return d
			})
		}
		// One is on its way; nobody waits for any.
		for i := range 3 * maxChanges {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if err := create(ctx, fmt.Sprint("given-up-", i)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("change %d: %v", i, err)
			}
			cancel()
		}
		// These are waited for.
		var refused atomic.Int64
		var wg sync.WaitGroup
		for i := range maxChanges + 10 {
			wg.Go(func() {
				if err := create(t.Context(), fmt.Sprint("t", i)); errors.Is(err, siltstone.ErrUnavailable) {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := refused.Load(); n != 11 {
			t.Errorf("%d are refused, want 11: one beside %d is on its way", n, maxChanges)
		}
		r.set(func() { r.hook = nil })
		wg.Wait()
		if n := a.Topics().Len(); n != maxChanges { // with the one that was on its way
			t.Errorf("%d topics, want %d", n, maxChanges)
		}
	})
}
