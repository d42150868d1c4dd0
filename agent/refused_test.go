package agent

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
)

// TestTheSecondBatchDoesNotComeBeforeTheFirst: a new producer's first batch is
// refused, as the agent does not serve; when its second comes, it does again.
func TestTheSecondBatchDoesNotComeBeforeTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.sharing()
		a.readyWithin(time.Second)
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		s := &sender{id: 7}
		first, second, third := s.batch(t, "first"), s.batch(t, "second"), s.batch(t, "third")
		a.cut.Store(true)
		time.Sleep(aLease + time.Second)
		if _, err := a.produce(tp, -1, first); !errors.Is(err, siltstone.ErrNotLeader) {
			t.Fatal(err)
		}
		a.cut.Store(false)
		a.readyWithin(beatMost + beatAgain + 3*time.Second)
		for range 3 {
			if _, err := a.produce(tp, -1, second); !errors.Is(err, siltstone.ErrNotLeader) {
				t.Fatalf("the second, before the first: %v", err)
			}
		}
		a.mustProduce(tp, 0, first)
		a.mustProduce(tp, 1, second)
		a.mustProduce(tp, 2, third)

		// One that never sends its first again is not kept out for ever.
		other := &sender{id: 8}
		first, second = other.batch(t, "lost"), other.batch(t, "later")
		a.cut.Store(true)
		time.Sleep(aLease + time.Second)
		if _, err := a.produce(tp, -1, first); !errors.Is(err, siltstone.ErrNotLeader) {
			t.Fatal(err)
		}
		a.cut.Store(false)
		a.readyWithin(beatMost + beatAgain + 3*time.Second)
		time.Sleep(refusedTime)
		a.mustProduce(tp, 3, second)
		wantValues(t, a.readAll(tp, 0), "first", "second", "third", "later")
	})
}

// TestFollowsOverTheLargest: after the largest sequence comes 0.
func TestFollowsOverTheLargest(t *testing.T) {
	for _, test := range []struct {
		a, b int32
		want bool
	}{
		{1, 0, true}, {0, 1, false}, {5, 5, false}, {0, math.MaxInt32, true}, {math.MaxInt32, 0, false},
		{9, math.MaxInt32 - 7, true}, {math.MaxInt32 - 7, 9, false},
	} {
		if got := follows(test.a, test.b); got != test.want {
			t.Errorf("%d follows %d: %v", test.a, test.b, got)
		}
	}
}
