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
	"github.com/siltstone-io/siltstone/coordinator/group"
)

const aLease = 6 * time.Second // as siltstone.lease.ms is by default

// sharing makes agents that share the coordinator. Each may be cut off from it.
func (r *rig) sharing() *running {
	var cut atomic.Bool
	if r.hub == nil {
		r.hub = &hub{all: map[siltstone.Incarnation]*port{}}
	}
	var p *port
	r.adjust = func(o *Options) {
		p = r.hub.port(o.Incarnation)
		o.Alone, o.Address, o.PeerAddress, o.Peers = false, "agent"+o.Incarnation.String(), "peer"+o.Incarnation.String(), p
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
	a.cut, a.port = &cut, p
	return a
}

// die ends an agent as kill -9 does, as far as others see.
func (a *running) die() {
	a.cut.Store(true)
	a.port.set(func() { a.port.on = false })
	a.stop()
}

func (a *running) readyWithin(d time.Duration) {
	a.rig.t.Helper()
	for end := time.Now().Add(d); !a.Status().Ready; time.Sleep(10 * time.Millisecond) {
		if !time.Now().Before(end) {
			a.rig.t.Fatalf("not ready within %s: %s", d, a.Status().Why)
		}
	}
}

// leads is how many shards it leads, of both kinds.
func (a *running) leads() (n int) {
	s := a.Status()
	for _, l := range s.Logs {
		if l.Own {
			n++
		}
	}
	for _, l := range s.Groups {
		if l.Own {
			n++
		}
	}
	return n
}

// shareWithin waits until each agent leads its share, and all agree on it.
func shareWithin(t *testing.T, d time.Duration, agents ...*running) {
	t.Helper()
	end := time.Now().Add(d)
	for ; ; time.Sleep(10 * time.Millisecond) {
		why := ""
		total := 0
		for _, a := range agents {
			n := a.leads()
			total += n
			if most := 2 * ((16 + len(agents) - 1) / len(agents)); n > most || !a.Status().Ready {
				why = a.Status().Why + ": leads too many, or is not ready"
			}
			for i, l := range a.Status().Logs {
				if l != (Led{Node: l.Node, Epoch: l.Epoch, Own: l.Own}) || l.Node != agents[0].Status().Logs[i].Node {
					why = "they do not agree"
				}
			}
		}
		if why == "" && total == 32 {
			return
		}
		if !time.Now().Before(end) {
			for _, a := range agents {
				t.Logf("%+v", a.Status())
			}
			t.Fatalf("after %s: %d led: %s", d, total, why)
		}
	}
}

// ledWithin waits until agents lead all shards, whoever leads how many.
func (a *running) ledWithin(d time.Duration, agents ...*running) {
	a.rig.t.Helper()
	for end := time.Now().Add(d); ; time.Sleep(10 * time.Millisecond) {
		n := 0
		for _, a := range agents {
			n += a.leads()
		}
		if n == 32 {
			return
		}
		if !time.Now().Before(end) {
			a.rig.t.Fatalf("after %s %d shards are led: %+v", d, n, a.Status())
		}
	}
}

// sharingTopic is such an agent, which leads everything, and its topic's one partition.
func (r *rig) sharingTopic() (*running, siltstone.TopicPartition) {
	r.t.Helper()
	a := r.sharing()
	a.readyWithin(time.Second)
	return a, siltstone.TopicPartition{Topic: a.create("t", 1)}
}

// leaderAndOther are of two agents the one that leads a partition, and the other.
func leaderAndOther(t *testing.T, tp siltstone.TopicPartition, a, b *running) (leader, other *running) {
	t.Helper()
	if leader = leaderAmong(t, tp, a, b); leader == a {
		return a, b
	}
	return b, a
}

// leaderAmong is the agent that leads a partition.
func leaderAmong(t *testing.T, tp siltstone.TopicPartition, agents ...*running) *running {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, a := range agents {
			if _, ok := a.Leads(tp); ok {
				return a
			}
		}
	}
	t.Fatal("nobody leads")
	return nil
}

func TestAgentsShareTheShards(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.sharing()
		a.readyWithin(time.Second)
		topic := a.create("t", 64)
		tp := func(p int32) siltstone.TopicPartition { return siltstone.TopicPartition{Topic: topic, Partition: p} }
		for p := range int32(64) {
			a.mustProduce(tp(p), 0, aBatch(t, 1, 1, "first"))
		}
		b, c := r.sharing(), r.sharing()
		shareWithin(t, moveLeast+10*time.Second, a, b, c)
		for p := range int32(64) {
			l := leaderAmong(t, tp(p), a, b, c)
			l.mustProduce(tp(p), 1, aBatch(t, 1, 1, "second"))
			wantValues(t, l.readAll(tp(p), 0), "first", "second")
		}
		if got := len(c.Status().Members); got != 3 {
			t.Errorf("%d members", got)
		}
		// A topic that one makes is open at the others once that has returned.
		more := b.create("more", 64)
		for p := range int32(64) {
			tp := siltstone.TopicPartition{Topic: more, Partition: p}
			led := false
			for _, x := range []*running{a, b, c} {
				if _, ok := x.Leads(tp); ok {
					x.mustProduce(tp, 0, aBatch(t, 1, 1, "x"))
					led = true
				}
			}
			if !led {
				t.Fatalf("nobody leads %s", tp)
			}
		}
		// Who stops leaves its shards to the others, at once.
		if err := b.end(); err != nil {
			t.Fatal(err)
		}
		a.ledWithin(3*time.Second, a, c)
		for p := range int32(64) {
			l := leaderAmong(t, tp(p), a, c)
			wantValues(t, l.readAll(tp(p), 0), "first", "second")
		}
	})
}

// TestAKilledAgent is followed by the others within two seconds.
func TestAKilledAgent(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.sharing()
		a.readyWithin(time.Second)
		topic := a.create("t", 64)
		b, c := r.sharing(), r.sharing()
		shareWithin(t, moveLeast+10*time.Second, a, b, c)
		a.die()
		b.ledWithin(2*time.Second, b, c)
		for p := range int32(64) {
			tp := siltstone.TopicPartition{Topic: topic, Partition: p}
			leaderAmong(t, tp, b, c).mustProduce(tp, 0, aBatch(t, 1, 1, "x"))
		}
	})
}

// TestAgentsThatCannotTalk share what they get, and take over after the lease.
func TestAgentsThatCannotTalk(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.sharing()
		a.readyWithin(time.Second)
		b := r.sharing()
		b.port.set(func() { b.port.cut = true })
		time.Sleep(30 * time.Second)
		if a.leads() != 32 || b.leads() != 0 {
			t.Fatalf("%d and %d", a.leads(), b.leads())
		}
		a.die()
		shareWithin(t, aLease+beatMost+3*time.Second, b)
	})
}

// TestAnAgentThatIsCutOff leads no more once its lease is over, and takes back
// its share when it is there again.
func TestAnAgentThatIsCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.sharingTopic()
		a.mustProduce(tp, 0, aBatch(t, 1, 1, "first"))
		b := r.sharing()
		shareWithin(t, 10*time.Second, a, b)
		l, other := leaderAndOther(t, tp, a, b)
		l.cut.Store(true)
		lost := l.send(tp, -1, aBatch(t, 1, 1, "lost"))
		cutOff := time.Now()
		shareWithin(t, aLease+2*beatMost, other)
		if time.Since(cutOff) < aLease-beatMost {
			t.Errorf("taken over after %s", time.Since(cutOff))
		}
		if l.leads() > 0 || l.Status().Ready {
			t.Errorf("two lead: %+v", l.Status())
		}
		other.mustProduce(tp, 1, aBatch(t, 1, 1, "second"))
		l.cut.Store(false)
		if <-lost.Done; !errors.Is(lost.Parts[0].Err, siltstone.ErrNotLeader) {
			t.Errorf("what was not safe: %+v", lost.Parts[0])
		}
		shareWithin(t, moveLeast+10*time.Second, a, b)
		again := leaderAmong(t, tp, a, b)
		again.mustProduce(tp, 2, aBatch(t, 1, 1, "third"))
		wantValues(t, again.readAll(tp, 0), "first", "second", "third")
	})
}

// TestAnAgentAfterAnOutage goes on where it was, as nobody has taken over: also
// with what was only buffered.
func TestAnAgentAfterAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.sharingTopic()
		s := &sender{id: 7}
		first, second := s.batch(t, "first"), s.batch(t, "second")
		a.mustProduce(tp, 0, first)
		a.cut.Store(true)
		waits, buffered := a.send(tp, -1, second), a.send(tp, 1, aBatch(t, 1, 1, "third"))
		time.Sleep(aLease + time.Second)
		for range 60 {
			if time.Sleep(time.Second); a.leads() > 0 || a.Status().Ready {
				t.Fatalf("it serves: %+v", a.Status())
			}
		}
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

func ofMember(c cfaulty.Call) bool {
	return c.Op == cfaulty.Put && strings.HasPrefix(c.Name, memberPrefix)
}

// TestBeatsWhoseRepliesAreLost do not cost an agent its office.
func TestBeatsWhoseRepliesAreLost(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var puts atomic.Int64
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if ofMember(c) && puts.Add(1)%2 == 0 {
				return cfaulty.LoseReply(ctx, c, do)
			}
			return do(ctx)
		}
		a := r.sharing()
		a.readyWithin(time.Second)
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if a.leads() != 32 {
				t.Fatalf("after %d writes: %+v", puts.Load(), a.Status())
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
				if !ofMember(c) {
					return do(ctx)
				}
				if late == nil {
					late = do
				}
				return cfaulty.Unanswered(c)
			}
		})
		time.Sleep(aLease + 100*time.Millisecond)
		if a.leads() > 0 {
			t.Fatal("it leads without having confirmed that it is a member")
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
		b, c := r.sharing(), r.sharing()
		shareWithin(t, moveLeast+10*time.Second, a, b, c)
		time.Sleep(2 * moveLeast)
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
		if writes.Load() > 3*22 || reads.Load() > 3*30 {
			t.Errorf("%d writes and %d reads a minute, of three agents", writes.Load(), reads.Load())
		}
	})
}

// TestBeatsThatHang leave time for others.
func TestBeatsThatHang(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var puts atomic.Int64
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if ofMember(c) && puts.Add(1)%2 == 0 {
				<-ctx.Done()
				return cfaulty.Unanswered(c)
			}
			return do(ctx)
		}
		a := r.sharing()
		a.readyWithin(time.Second)
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if a.leads() != 32 {
				t.Fatalf("after %d writes: %+v", puts.Load(), a.Status())
			}
		}
	})
}

// TestGroupsMove: members and generations survive it, and nobody is made to join again.
func TestGroupsMove(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.sharing()
		a.readyWithin(time.Second)
		b := r.sharing()
		shareWithin(t, 10*time.Second, a, b)
		l := a
		if !a.Coordinates("g") {
			l = b
		}
		other := a
		if l == a {
			other = b
		}
		member, generation := l.join("g", "")
		if err := l.end(); err != nil {
			t.Fatal(err)
		}
		shareWithin(t, 3*time.Second, other)
		if err := other.heartbeat("g", member, generation); err != nil {
			t.Errorf("a heartbeat of the member, to another coordinator: %v", err)
		}
		if err := other.heartbeat("g", member, generation+1); !errors.Is(err, group.ErrIllegalGeneration) {
			t.Errorf("of a generation that never was: %v", err)
		}
	})
}
