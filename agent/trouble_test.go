package agent

import (
	"context"
	"errors"
	"fmt"
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
