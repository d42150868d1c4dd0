package agent

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

const aLease = 6 * time.Second // as siltstone.lease.ms is by default

// sharing makes agents that share the coordinator. Each may be cut off from it.
func (r *rig) sharing() *running {
	var cut atomic.Bool
	r.adjust = func(o *Options) {
		o.Alone, o.Address = false, "agent"+o.Incarnation.String()
		o.Flush.Eager = true
		o.Coordinator = cfaulty.Wrap(o.Coordinator, func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if cut.Load() {
				<-ctx.Done()
				return cfaulty.Unanswered(c)
			}
			return do(ctx)
		})
	}
	a := r.launch()
	a.cut = &cut
	return a
}

func (a *running) readyWithin(d time.Duration) {
	a.rig.t.Helper()
	for end := time.Now().Add(d); !a.Status().Ready; time.Sleep(10 * time.Millisecond) {
		if !time.Now().Before(end) {
			a.rig.t.Fatalf("not ready within %s: %s", d, a.Status().Why)
		}
	}
}

func (a *running) staysUnready(d time.Duration) {
	a.rig.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if s := a.Status(); s.Ready || a.leadsAny() {
			a.rig.t.Fatalf("ready: %+v", s)
		}
	}
}

func (a *running) leadsAny() bool {
	s := a.Status()
	for _, e := range s.Epochs {
		if e >= 0 {
			return true
		}
	}
	for _, g := range s.Groups {
		if g {
			return true
		}
	}
	return false
}

func TestOneAgentIsActive(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.sharing()
		a.readyWithin(time.Second)
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		a.mustProduce(tp, 0, aBatch(t, 1, 1, "first"))
		b := r.sharing()
		b.staysUnready(time.Minute)
		if why := b.Status().Why; !strings.Contains(why, "agent"+a.opts.Incarnation.String()) {
			t.Errorf("it does not say who is active: %s", why)
		}
		if !a.Status().Ready {
			t.Error(a.Status().Why)
		}
		a.mustProduce(tp, 1, aBatch(t, 1, 1, "second"))
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		b.readyWithin(watchEvery + time.Second) // it need not wait for the lease
		b.mustProduce(tp, 2, aBatch(t, 1, 1, "third"))
		wantValues(t, b.readAll(tp, 0), "first", "second", "third")
	})
}

// TestAnAgentThatIsCutOff leads no more once its lease is over, and not again
// when it comes back while another leads.
func TestAnAgentThatIsCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.sharing()
		a.readyWithin(time.Second)
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		a.mustProduce(tp, 0, aBatch(t, 1, 1, "first"))
		b := r.sharing()
		b.staysUnready(beatMost)
		a.cut.Store(true)
		lost := a.send(tp, -1, aBatch(t, 1, 1, "lost"))
		cutOff := time.Now()
		b.readyWithin(aLease + beatMost + 2*watchEvery)
		if time.Since(cutOff) < aLease-beatMost {
			t.Errorf("taken over after %s", time.Since(cutOff))
		}
		if a.leadsAny() || a.Status().Ready {
			t.Errorf("two lead: %+v", a.Status())
		}
		b.mustProduce(tp, 1, aBatch(t, 1, 1, "second"))
		a.cut.Store(false)
		if <-lost.Done; !errors.Is(lost.Parts[0].Err, siltstone.ErrNotLeader) {
			t.Errorf("what was not safe: %+v", lost.Parts[0])
		}
		a.staysUnready(time.Minute)
		b.mustProduce(tp, 2, aBatch(t, 1, 1, "third"))
		if err := b.end(); err != nil {
			t.Fatal(err)
		}
		a.readyWithin(watchEvery + time.Second)
		a.mustProduce(tp, 3, aBatch(t, 1, 1, "fourth"))
		wantValues(t, a.readAll(tp, 0), "first", "second", "third", "fourth")
	})
}

// TestAnAgentAfterAnOutage goes on where it was, as nobody has taken over: also
// with what was only buffered.
func TestAnAgentAfterAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.sharing()
		a.readyWithin(time.Second)
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		s := &sender{id: 7}
		first, second := s.batch(t, "first"), s.batch(t, "second")
		a.mustProduce(tp, 0, first)
		a.cut.Store(true)
		waits, buffered := a.send(tp, -1, second), a.send(tp, 1, aBatch(t, 1, 1, "third"))
		time.Sleep(aLease + time.Second)
		a.staysUnready(time.Minute)
		if <-waits.Done; waits.Parts[0].Err == nil {
			t.Error("acknowledged by an agent that is cut off")
		}
		if <-buffered.Done; buffered.Parts[0].Err != nil {
			t.Error(buffered.Parts[0].Err)
		}
		a.cut.Store(false)
		a.readyWithin(beatMost + beatAgain + 3*time.Second)
		a.mustProduce(tp, 1, second)
		wantValues(t, a.readAll(tp, 0), "first", "second", "third")
	})
}

// TestBeatsWhoseRepliesAreLost do not cost an agent its office.
func TestBeatsWhoseRepliesAreLost(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var puts atomic.Int64
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Put && c.Name == activeKey {
				if puts.Add(1)%2 == 0 {
					return cfaulty.LoseReply(ctx, c, do)
				}
			}
			return do(ctx)
		}
		a := r.sharing()
		a.readyWithin(time.Second)
		b := r.sharing()
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if !a.leadsAny() || b.leadsAny() {
				t.Fatalf("after %d writes: %+v, %+v", puts.Load(), a.Status(), b.Status())
			}
		}
		if n := puts.Load(); n < 100 {
			t.Errorf("%d writes", n)
		}
	})
}

// TestABeatThatLandsLate is not taken for one of now.
func TestABeatThatLandsLate(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.sharing()
		a.readyWithin(time.Second)
		var late func(context.Context) error
		r.set(func() {
			r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
				if c.Op != cfaulty.Put || c.Name != activeKey {
					return do(ctx)
				}
				if late == nil {
					late = do
				}
				return cfaulty.Unanswered(c)
			}
		})
		time.Sleep(aLease + 100*time.Millisecond)
		if a.leadsAny() {
			t.Fatal("it leads without having confirmed that it is active")
		}
		r.set(func() { r.hook = nil })
		if err := late(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.readyWithin(beatAgain + time.Second)
	})
}

// TestAnIdleAgentCostsLittle: heartbeats, and nothing else to speak of.
func TestAnIdleAgentCostsLittle(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var reads, writes atomic.Int64
		a := r.sharing()
		a.readyWithin(time.Second)
		a.create("t", 100)
		time.Sleep(time.Second)
		r.set(func() {
			r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
				if c.Op.Writes() {
					writes.Add(1)
				} else {
					reads.Add(1)
				}
				return do(ctx)
			}
		})
		time.Sleep(time.Minute)
		if writes.Load() > 22 || reads.Load() > 100 {
			t.Errorf("%d writes and %d reads a minute", writes.Load(), reads.Load())
		}
	})
}

// TestBeatsThatHang leave time for others.
func TestBeatsThatHang(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var puts atomic.Int64
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Put && c.Name == activeKey && puts.Add(1)%2 == 0 {
				<-ctx.Done()
				return cfaulty.Unanswered(c)
			}
			return do(ctx)
		}
		a := r.sharing()
		a.readyWithin(time.Second)
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if !a.leadsAny() {
				t.Fatalf("after %d writes: %+v", puts.Load(), a.Status())
			}
		}
	})
}

// TestAStandbyChangesNothing: the active agent would not hear of it.
func TestAStandbyChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.sharing()
		a.readyWithin(time.Second)
		b := r.sharing()
		b.staysUnready(beatMost)
		err := b.Change(t.Context(), func(*topic.View) topic.Decision {
			t.Error("it decides")
			return topic.Decision{}
		})
		if !errors.Is(err, siltstone.ErrUnavailable) {
			t.Errorf("a change: %v", err)
		}
	})
}
