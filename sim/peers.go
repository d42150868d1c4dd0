package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

// maxWaiting is how much may be under way on a lane, as Send counts.
const maxWaiting = 1 << 20

// peers are a node's side of its messages: its peer.Transport, and where those
// of others arrive.
type peers struct {
	node *node

	// The driver's.
	handler peer.Handler                    // nil: nobody listens
	inboxes map[string]*inbox               // by what they are for
	wires   map[siltstone.Incarnation]*wire // the newest from each peer

	mu      sync.Mutex
	links   map[siltstone.Incarnation]*link
	reached uint64 // calls of Reach
	closed  bool   // Run has ended
	calls   sync.WaitGroup
}

func newPeers(n *node) *peers {
	return &peers{
		node: n, inboxes: map[string]*inbox{},
		wires: map[siltstone.Incarnation]*wire{}, links: map[siltstone.Incarnation]*link{},
	}
}

// Reach implements peer.Transport.
func (p *peers) Reach(to []peer.Peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached++
	change := &reach{peers: p, number: p.reached}
	want := map[siltstone.Incarnation]peer.Peer{}
	for _, one := range to {
		want[one.Incarnation] = one
	}
	for _, inc := range slices.Sorted(maps.Keys(p.links)) {
		if l := p.links[inc]; want[inc] != l.to {
			l.over, l.up = true, false
			change.ended = append(change.ended, l)
			delete(p.links, inc)
		}
	}
	for _, inc := range slices.Sorted(maps.Keys(want)) {
		if p.links[inc] == nil {
			l := &link{from: p, to: want[inc], name: fmt.Sprintf("%s to %s", p.node.name, inc)}
			p.links[inc] = l
			change.begun = append(change.begun, l)
		}
	}
	p.node.put(change)
}

// reach is what a call of Reach changes.
type reach struct {
	peers        *peers
	number       uint64
	ended, begun []*link
}

func (r *reach) from() (*node, string, string) {
	return r.peers.node, "peers", fmt.Sprintf("reach %020d", r.number)
}

func (r *reach) happen() {
	for _, l := range r.ended {
		l.end()
	}
	if r.peers.handler == nil {
		return // Run begins them
	}
	for _, l := range r.begun {
		l.connect()
	}
}

// Send implements peer.Transport. A node's messages on one link are made by
// one goroutine, or one seed would not give one trace.
func (p *peers) Send(to siltstone.Incarnation, lane peer.Lane, pieces ...[]byte) bool {
	body := slices.Concat(pieces...)
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.links[to]
	if l == nil || !l.up || len(body) == 0 || len(body) > peer.MaxMessageBytes {
		return false
	}
	if waits := l.wire.waiting[lane]; waits > 0 && waits+len(body) > maxWaiting {
		return false
	}
	l.wire.waiting[lane] += len(body)
	l.sent++
	return p.node.put(&message{link: l, wire: l.wire, lane: lane, number: l.sent, body: body})
}

// Run implements peer.Transport.
func (p *peers) Run(ctx context.Context, h peer.Handler) error {
	p.node.put(&listening{p, h})
	<-ctx.Done()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.node.put(&listening{p, nil})
	p.calls.Wait()
	return nil
}

// listening is the begin of Run, or its end.
type listening struct {
	peers   *peers
	handler peer.Handler
}

func (l *listening) from() (*node, string, string) {
	return l.peers.node, "peers", fmt.Sprintf("run %t", l.handler == nil)
}

func (l *listening) happen() {
	p := l.peers
	if l.handler == nil {
		p.end()
		return
	}
	p.handler = l.handler
	for _, link := range p.sorted() {
		link.connect()
	}
}

func (p *peers) sorted() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	var links []*link
	for _, inc := range slices.Sorted(maps.Keys(p.links)) {
		links = append(links, p.links[inc])
	}
	return links
}

// end is that of Run, or of the node: what it has sent may arrive yet.
func (p *peers) end() {
	p.handler = nil
	for _, l := range p.sorted() {
		l.end()
	}
	for _, inc := range slices.Sorted(maps.Keys(p.wires)) {
		p.wires[inc].lose(0.8)
	}
	for _, b := range p.inboxes {
		b.queue = nil
	}
}

// peerHost is where a peer is said to be.
func peerHost(p peer.Peer) string {
	name, _, _ := strings.Cut(p.Address, ":")
	return name
}

// An inbox gives a handler what has come, one call at a time. Each call is in
// an event of its own, or handlers that were blocked would race.
type inbox struct {
	peers *peers
	name  string
	queue []func(peer.Handler)
	busy  bool
}

func (p *peers) inbox(name string) *inbox {
	b := p.inboxes[name]
	if b == nil {
		b = &inbox{peers: p, name: name}
		p.inboxes[name] = b
	}
	return b
}

func (b *inbox) add(call func(peer.Handler)) {
	b.queue = append(b.queue, call)
	if !b.busy {
		b.next()
	}
}

func (b *inbox) next() {
	p := b.peers
	b.busy = false
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b.queue) == 0 || p.closed || p.handler == nil {
		return
	}
	b.busy = true
	call, handler := b.queue[0], p.handler
	b.queue = b.queue[1:]
	p.calls.Go(func() {
		call(handler)
		p.node.put(&heard{b})
	})
}

// heard is that a handler's call has returned.
type heard struct{ inbox *inbox }

func (h *heard) from() (*node, string, string) { return h.inbox.peers.node, "heard", h.inbox.name }

func (h *heard) happen() {
	n := h.inbox.peers.node
	n.world.soon(func() { n.receive(h.inbox.next) })
}

// silent is that others have heard nothing of the node for too long.
func (p *peers) silent() {
	for _, inc := range slices.Sorted(maps.Keys(p.wires)) {
		p.wires[inc].lose(1)
	}
}
