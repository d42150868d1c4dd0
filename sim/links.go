package sim

import (
	"fmt"
	"time"

	"github.com/siltstone-io/siltstone/agent/peer"
)

// silence is how long nothing has to be heard of a peer before its connection
// counts as broken, and how long a dial may take.
const silence = 3 * time.Second

// A link is a node's wish to be connected to a peer, from Reach to Reach.
type link struct {
	from    *peers
	to      peer.Peer
	name    string
	attempt uint64 // the driver's: the one under way

	// By the mu of from.
	wire *wire // the newest that was up
	up   bool
	over bool // Reach wants it no more
	sent uint64
}

// A wire is one connection, both lanes of it.
type wire struct {
	link   *link
	target *node
	number uint64
	broken bool                   // nothing is carried any more
	queue  [peer.Lanes][]*message // under way

	waiting [peer.Lanes]int // bytes; by the mu of link.from
}

// A message is on its way.
type message struct {
	link   *link
	wire   *wire
	lane   peer.Lane
	number uint64
	body   []byte
}

func (l *link) world() *world { return l.from.node.world }

// ended says that nothing is to come of the link any more.
func (l *link) ended() bool {
	l.from.mu.Lock()
	defer l.from.mu.Unlock()
	return l.over || l.from.handler == nil
}

// connect tries, and tries again.
func (l *link) connect() {
	if l.ended() {
		return
	}
	w, from := l.world(), l.from.node
	d := w.dice("dial " + l.name)
	l.attempt++
	attempt := l.attempt
	open := func() bool { return attempt == l.attempt && !l.ended() }
	fail := func(refused bool) {
		if !open() {
			return
		}
		l.attempt++
		from.receive(func() { l.down(refused) })
		w.after(d.duration(200*time.Millisecond, time.Second), func() { from.receive(l.connect) })
	}
	w.after(silence, func() { fail(false) })
	if d.chance(w.weather.links.refuse) {
		return // nobody answers
	}
	w.after(w.flight(d, from.host, peerHost(l.to)), func() {
		if !open() || w.parted(from.host, peerHost(l.to)) {
			return
		}
		n := w.at(peerHost(l.to))
		if n == nil || n.peers.handler == nil || n.incarnation != l.to.Incarnation {
			if !w.parted(peerHost(l.to), from.host) {
				w.tracef("%s is refused", l.name)
				fail(true)
			}
			return
		}
		n.receive(func() { l.accepted(n, d, open) })
	})
}

// accepted is that the peer has taken the connection. Its answer is on its way.
func (l *link) accepted(n *node, d *dice, open func() bool) {
	w, from := l.world(), l.from.node
	if !open() || n.peers.handler == nil {
		return
	}
	if old := n.peers.wires[from.incarnation]; old != nil {
		old.broken = true
	}
	for lane := range peer.Lane(peer.Lanes) {
		n.peers.inbox(inName(from, lane)).queue = nil // what an older one has brought
	}
	c := &wire{link: l, target: n, number: w.number("wires " + l.name)}
	n.peers.wires[from.incarnation] = c
	w.after(w.flight(d, n.host, from.host), func() {
		if w.parted(n.host, from.host) || w.parted(from.host, n.host) {
			return
		}
		from.receive(func() {
			if !open() || c.broken {
				return
			}
			l.attempt++ // this one has ended well
			w.tracef("%s is up, #%d", l.name, c.number)
			l.from.inbox(l.name).add(func(h peer.Handler) {
				if l.set(c) {
					h.Up(l.to.Incarnation)
				}
			})
		})
	})
}

// set makes a connection the one on which Send sends.
func (l *link) set(c *wire) bool {
	l.from.mu.Lock()
	defer l.from.mu.Unlock()
	if l.over {
		return false
	}
	l.wire, l.up = c, true
	return true
}

// down tells the node that the link is, if it was up, or is refused.
func (l *link) down(refused bool) {
	l.from.inbox(l.name).add(func(h peer.Handler) {
		l.from.mu.Lock()
		say := !l.over && (l.up || refused)
		l.up = false
		l.from.mu.Unlock()
		if say {
			h.Down(l.to.Incarnation, refused)
		}
	})
}

// end is the link's: what is under way may arrive yet.
func (l *link) end() {
	l.attempt++
	l.from.mu.Lock()
	l.up = false
	c := l.wire
	l.from.mu.Unlock()
	if c != nil && l.world().dice("end "+l.name).chance(0.5) {
		c.broken = true
	}
}

// lose breaks the connection. The chance is that its sender hears soon; else it
// hears from the silence.
func (c *wire) lose(soon float64) {
	if c.broken {
		return
	}
	w, from := c.link.world(), c.link.from.node
	d := w.dice("loss " + c.link.name)
	w.tracef("%s #%d is lost", c.link.name, c.number)
	wait := silence
	if d.chance(soon) {
		wait = d.duration(0, 5*time.Millisecond)
	}
	c.broken = true
	w.after(wait, func() {
		from.receive(func() {
			if !c.link.ended() {
				c.link.down(false)
				c.link.connect()
			}
		})
	})
}

func (m *message) from() (*node, string, string) {
	return m.link.from.node, "peer " + m.link.name, fmt.Sprintf("%020d", m.number)
}

func (m *message) happen() {
	c, w := m.wire, m.link.world()
	if c.broken {
		return
	}
	name := m.link.name + " " + m.lane.String()
	d := w.dice(name)
	w.tracef("%s m%d %d bytes %08x", name, m.number, len(m.body), checksum(m.body))
	if d.chance(w.weather.links.cut) {
		c.lose(1)
		return
	}
	wait := w.flight(d, m.link.from.node.host, c.target.host)
	if d.chance(w.weather.links.stall) {
		wait += d.duration(100*time.Millisecond, silence)
	}
	c.queue[m.lane] = append(c.queue[m.lane], m)
	w.after(wait, func() { c.arrive(m.lane) })
}

// arrive brings the first of a lane, whichever is due: so they keep their order.
func (c *wire) arrive(lane peer.Lane) {
	w, from := c.link.world(), c.link.from
	switch {
	case c.broken:
		return
	case w.parted(from.node.host, c.target.host):
		w.after(100*time.Millisecond, func() { c.arrive(lane) }) // it is sent again
		return
	}
	m := c.queue[lane][0]
	c.queue[lane] = c.queue[lane][1:]
	c.target.receive(func() {
		c.target.peers.inbox(inName(from.node, lane)).add(func(h peer.Handler) {
			from.mu.Lock()
			c.waiting[lane] -= len(m.body)
			from.mu.Unlock()
			h.Received(from.node.incarnation, lane, m.body)
		})
	})
}

func inName(from *node, lane peer.Lane) string { return "from " + from.name + " " + lane.String() }
