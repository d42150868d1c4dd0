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
		a, tp := r.sharingTopic()
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

// TestRefusedAgain: a batch that is refused again and again keeps those after it out
// for as long as when it is refused once.
func TestRefusedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.sharingTopic()
		s := &sender{id: 7}
		first, second := s.batch(t, "first"), s.batch(t, "second")
		a.cut.Store(true)
		time.Sleep(aLease + time.Second)
		for begin := time.Now(); time.Since(begin) < refusedTime; time.Sleep(time.Second) {
			if _, err := a.produce(tp, -1, first); !errors.Is(err, siltstone.ErrNotLeader) {
				t.Fatal(err)
			}
		}
		a.cut.Store(false)
		a.readyWithin(beatMost + beatAgain + 3*time.Second)
		if _, err := a.produce(tp, -1, second); !errors.Is(err, siltstone.ErrNotLeader) {
			t.Fatalf("the second, before the first: %v", err)
		}
		a.mustProduce(tp, 0, first)
		a.mustProduce(tp, 1, second)
	})
}

// TestRefusedAfterItWasTaken: a batch that was taken, and given up when another
// led, is as one that was refused.
func TestRefusedAfterItWasTaken(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.sharingTopic()
		b := r.sharing()
		shareWithin(t, 10*time.Second, a, b)
		l, other := leaderAndOther(t, tp, a, b)
		s := &sender{id: 7}
		first, second := s.batch(t, "first"), s.batch(t, "second")
		l.cut.Store(true)
		lost := l.send(tp, -1, first)
		shareWithin(t, aLease+2*beatMost, other)
		l.cut.Store(false)
		if <-lost.Done; !errors.Is(lost.Parts[0].Err, siltstone.ErrNotLeader) {
			t.Fatalf("taken by who does not lead: %v", lost.Parts[0].Err)
		}
		if err := other.end(); err != nil {
			t.Fatal(err)
		}
		shareWithin(t, beatMost+beatAgain+3*time.Second, l)
		if _, err := l.produce(tp, -1, second); !errors.Is(err, siltstone.ErrNotLeader) {
			t.Fatalf("the second, before the first: %v", err)
		}
		l.mustProduce(tp, 0, first)
		l.mustProduce(tp, 1, second)
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
