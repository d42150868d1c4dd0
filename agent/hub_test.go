package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

// A hub connects the agents of a rig.
type hub struct {
	mu  sync.Mutex
	all map[siltstone.Incarnation]*port
}

// A port is one agent's transport. It looks every 10 ms whom it can reach.
type port struct {
	hub   *hub
	self  siltstone.Incarnation
	inbox chan func(peer.Handler)

	// By hub.mu.
	on, cut bool
	wanted  []peer.Peer
	up      map[siltstone.Incarnation]bool
	sent    int
}

func (h *hub) port(self siltstone.Incarnation) *port {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &port{hub: h, self: self, inbox: make(chan func(peer.Handler), 1<<14), up: map[siltstone.Incarnation]bool{}}
	h.all[self] = p
	return p
}

func (p *port) Reach(peers []peer.Peer) {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	p.wanted = peers
	for to := range p.up {
		if !slices.ContainsFunc(peers, func(w peer.Peer) bool { return w.Incarnation == to }) {
			delete(p.up, to)
		}
	}
}

func (p *port) Send(to siltstone.Incarnation, lane peer.Lane, pieces ...[]byte) bool {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	if !p.up[to] {
		return false
	}
	m := slices.Concat(pieces...)
	p.sent++
	p.hub.all[to].inbox <- func(h peer.Handler) { h.Received(p.self, lane, m) }
	return true
}

func (p *port) Run(ctx context.Context, h peer.Handler) error {
	p.set(func() { p.on = true })
	defer p.set(func() { p.on = false })
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case do := <-p.inbox:
			do(h)
		case <-tick.C:
			p.look(h)
		}
	}
}

func (p *port) set(change func()) {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	change()
}

// look tells the handler what has changed.
func (p *port) look(h peer.Handler) {
	for _, to := range p.wantedNow() {
		p.hub.mu.Lock()
		o, was := p.hub.all[to.Incarnation], p.up[to.Incarnation]
		is := o.on && !o.cut && !p.cut
		refused := !o.on && !p.cut
		p.up[to.Incarnation] = is
		p.hub.mu.Unlock()
		switch {
		case is && !was:
			h.Up(to.Incarnation)
		case was && !is:
			h.Down(to.Incarnation, refused)
		}
	}
}

func (p *port) wantedNow() []peer.Peer {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	return p.wanted
}
