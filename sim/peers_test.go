package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

// A talker sends numbers to its peers, those of each connection from 0, and
// judges those that it gets. Its loop is the only one that sends.
type talker struct {
	t      *testing.T
	node   *node
	others func() []peer.Peer

	mu      sync.Mutex
	up      map[siltstone.Incarnation]bool
	ups     map[siltstone.Incarnation]uint64
	refused int
	sent    map[string]uint64    // by peer, connection and lane
	got     map[string][2]uint64 // connection and number, by peer and lane
	heard   map[siltstone.Incarnation]int
}

func (k *talker) run(ctx context.Context, n *node) error {
	var done sync.WaitGroup
	done.Go(func() { _ = n.peers.Run(ctx, k) })
	defer done.Wait()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.talk(n)
		case <-ctx.Done():
			return nil
		}
	}
}

func (k *talker) talk(n *node) {
	to := k.others()
	n.peers.Reach(to)
	for _, p := range to {
		for lane := range peer.Lane(peer.Lanes) {
			for range 2 {
				k.mu.Lock()
				up, number := k.ups[p.Incarnation], fmt.Sprint(p.Incarnation, k.ups[p.Incarnation], lane)
				b := binary.BigEndian.AppendUint64(nil, up)
				b = binary.BigEndian.AppendUint64(b, k.sent[number])
				if n.peers.Send(p.Incarnation, lane, b[:8], b[8:]) {
					k.sent[number]++
				}
				clear(b) // the pieces were copied
				k.mu.Unlock()
			}
		}
	}
}

func (k *talker) Up(to siltstone.Incarnation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.up[to] {
		k.t.Errorf("%s: %s is up twice", k.node.name, to)
	}
	k.up[to] = true
	k.ups[to]++
}

func (k *talker) Down(to siltstone.Incarnation, refused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.up[to] && !refused {
		k.t.Errorf("%s: %s is down, and was not up", k.node.name, to)
	}
	k.up[to] = false
	if refused {
		k.refused++
	}
}

func (k *talker) Received(from siltstone.Incarnation, lane peer.Lane, b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	up, number := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	key := fmt.Sprint(from, lane)
	last, before := k.got[key]
	inOrder := before && up == last[0] && number == last[1]+1 || (!before || up > last[0]) && number == 0
	if !inOrder {
		k.t.Errorf("%s: from %s: %d of connection %d after %v", k.node.name, key, number, up, last)
	}
	k.got[key] = [2]uint64{up, number}
	k.heard[from]++
}

// talkers are three nodes that talk.
type talkers struct {
	*world
	t    *testing.T
	list map[string]*talker // by host
}

var talkerHosts = []string{"a", "b", "c"}

func inTalk(t *testing.T, seed uint64, test func(*talkers)) (trace string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &talkers{world: newWorld(seed), t: t, list: map[string]*talker{}}
		for _, h := range talkerHosts {
			s.start(h)
		}
		s.pass(2 * time.Second)
		test(s)
		for _, n := range s.nodes {
			n.crash()
		}
		if !s.run(func() bool { return !slices.ContainsFunc(s.nodes, func(n *node) bool { return !n.gone() }) }, time.Minute) {
			t.Error("a node does not end")
		}
		trace = s.trace.String()
	})
	return trace
}

func (s *talkers) start(host string) {
	k := &talker{
		t: s.t, up: map[siltstone.Incarnation]bool{}, ups: map[siltstone.Incarnation]uint64{},
		sent: map[string]uint64{}, got: map[string][2]uint64{}, heard: map[siltstone.Incarnation]int{},
	}
	// As they were a tick ago, which may be wrong; whom to reach is settled when
	// the world is quiet.
	var mu sync.Mutex
	var others []peer.Peer
	k.others = func() []peer.Peer { mu.Lock(); defer mu.Unlock(); return others }
	var look func()
	look = func() {
		mu.Lock()
		defer mu.Unlock()
		others = nil
		for _, h := range talkerHosts {
			if o := s.list[h]; o != nil && h != host {
				others = append(others, peer.Peer{Incarnation: o.node.incarnation, Address: h + ":9094"})
			}
		}
		if !k.node.dead {
			s.after(1700*time.Millisecond, look)
		}
	}
	booted := make(chan struct{})
	k.node = s.boot(host, func(ctx context.Context, n *node) error { <-booted; return k.run(ctx, n) })
	close(booted)
	s.list[host] = k
	s.after(0, look)
}

func (s *talkers) heard(at, from string) int {
	k := s.list[at]
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heard[s.list[from].node.incarnation]
}

// stormyTalk is everything at once.
func stormyTalk(s *talkers) {
	s.weather.links = rough{usual: 50 * time.Millisecond, cut: .002, stall: .01, refuse: .1}
	s.drag("a", "b", 200*time.Millisecond)
	d := newDice(s.seed, "talk", 0)
	for range 12 {
		host := talkerHosts[d.below(3)]
		other := talkerHosts[d.below(3)]
		switch d.below(4) {
		case 0:
			s.part(host, other)
			s.pass(d.duration(0, 8*time.Second))
			s.mend(host, other)
		case 1:
			n := s.list[host].node
			n.pause()
			s.pass(d.duration(0, 8*time.Second))
			n.resume()
		case 2:
			s.list[host].node.crash()
			s.pass(d.duration(0, 4*time.Second))
			s.start(host)
		case 3:
			s.pass(time.Second)
		}
		s.pass(2 * time.Second)
	}
	s.weather = fair()
	s.pass(5 * time.Second)
	for _, at := range talkerHosts {
		for _, from := range talkerHosts {
			before := s.heard(at, from)
			s.pass(300 * time.Millisecond)
			if at != from && s.heard(at, from) == before {
				s.t.Errorf("seed %d: %s hears nothing from %s after the storm", s.seed, at, from)
			}
		}
	}
}

func TestPeersOneSeedOneTrace(t *testing.T) {
	for seed := range uint64(5) {
		first := inTalk(t, seed, stormyTalk)
		compareTraces(t, seed, first, inTalk(t, seed, stormyTalk))
	}
}

func TestPeersPartition(t *testing.T) {
	for _, both := range []bool{false, true} {
		inTalk(t, 1, func(s *talkers) {
			s.part("a", "b")
			if both {
				s.part("b", "a")
			}
			s.pass(300 * time.Millisecond)
			ab, ba, ac := s.heard("b", "a"), s.heard("a", "b"), s.heard("c", "a")
			s.pass(2 * time.Second)
			if n := s.heard("b", "a") - ab; n != 0 {
				t.Errorf("%d messages passed a partition", n)
			}
			if n := s.heard("a", "b") - ba; (n == 0) != both {
				t.Errorf("%d messages came the other way, both ways parted: %t", n, both)
			}
			a := s.list["a"]
			b := s.list["b"].node.incarnation
			if !a.up[b] {
				t.Error("down before the silence")
			}
			s.pass(2 * time.Second)
			if a.up[b] || s.list["b"].up[a.node.incarnation] {
				t.Error("still up after the silence")
			}
			s.mend("a", "b")
			s.mend("b", "a")
			s.pass(5 * time.Second)
			if s.heard("b", "a") == ab || s.heard("c", "a") == ac || a.refused > 0 {
				t.Errorf("after the partition: %d, %d messages, %d refused", s.heard("b", "a")-ab, s.heard("c", "a")-ac, a.refused)
			}
		})
	}
}

func TestPeersRefused(t *testing.T) {
	inTalk(t, 1, func(s *talkers) {
		s.list["b"].node.crash()
		s.pass(5 * time.Second)
		if n := s.list["a"].refused; n < 2 {
			t.Errorf("refused %d times where nobody is up", n)
		}
		s.boot("b", s.list["c"].quiet) // somebody else, as far as a knows
		before := s.list["a"].refused
		s.pass(2 * time.Second)
		if s.list["a"].refused == before {
			t.Error("not refused where another incarnation is up")
		}
	})
}

// quiet listens, and says nothing.
func (k *talker) quiet(ctx context.Context, n *node) error { return n.peers.Run(ctx, k) }
