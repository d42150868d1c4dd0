package sim

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// What a client hears when a connection fails.
var (
	errRefused = errors.New("sim: connection refused")
	errReset   = errors.New("sim: connection reset")
)

// windowBytes is how much a server may write that its client has not got.
const windowBytes = 256 << 10

// A listener accepts the connections that reach its node.
type listener struct {
	node   *node
	mu     sync.Mutex
	cond   sync.Cond
	queue  []*conn
	closed bool
}

func newListener(n *node) *listener {
	l := &listener{node: n}
	l.cond.L = &l.mu
	return l
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.cond.Wait()
	}
	if l.closed {
		return nil, net.ErrClosed
	}
	c := l.queue[0]
	l.queue = l.queue[1:]
	return c, nil
}

// Close implements net.Listener.
func (l *listener) Close() error { l.close(); return nil }

func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.cond.Broadcast()
}

// offer says whether there is somebody who accepts.
func (l *listener) offer(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.queue = append(l.queue, c)
	l.cond.Broadcast()
	return true
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return addr(l.node.host + ":9092") }

type addr string

func (a addr) Network() string { return "sim" }
func (a addr) String() string  { return string(a) }

// A caller is the client's end of a connection. It is called in the driver.
type caller interface {
	opened(c *conn)
	received(c *conn, b []byte)
	closed(c *conn, err error) // or not opened at all; the last call
}

// A conn is one connection: the server's end is a net.Conn, the client's is a
// caller. Bytes arrive in order, piece by piece.
type conn struct {
	world *world
	node  *node
	peer  caller
	link  string

	// The driver's.
	hung            bool // the client has closed its end: it hears nothing any more
	over            bool // nor does the server
	breaking        bool // nothing is carried any more
	lastIn, lastOut time.Time

	mu       sync.Mutex
	cond     sync.Cond
	in       [][]byte // arrived at the server, piece by piece
	inErr    error    // after in: io.EOF
	reading  bool     // the server waits for something to arrive
	served   bool     // the server may have the first of in, or inErr
	hungry   bool     // it has asked for that
	out      []byte   // written, and not seen by the driver
	unspoken bool     // an output for out or the close is on its way to the driver
	flying   int      // bytes written that have not arrived
	closed   bool     // by the server
	gone     error    // reset, or the node is dead
	readBy   deadline
	writeBy  deadline
}

// dial connects a peer with whoever listens at the host when it gets there.
func (w *world) dial(host, client string, p caller) *conn {
	c := &conn{world: w, peer: p, link: client}
	c.cond.L = &c.mu
	c.readBy.cond, c.writeBy.cond = &c.cond, &c.cond
	d := w.dice("dial " + client + " " + host)
	refused := d.chance(w.weather.network.refuse)
	w.after(d.duration(w.weather.network.fast, w.weather.network.usual), func() {
		n := w.at(host)
		if c.over {
			return
		}
		if refused || n == nil {
			c.over = true
			w.tracef("%s cannot reach %s", client, host)
			p.closed(c, errRefused)
			return
		}
		n.receive(func() {
			if c.over {
				return
			}
			c.node = n
			c.link = fmt.Sprintf("%s %s#%d", n.name, client, w.number("conns "+client))
			if !n.listener.offer(c) {
				c.over = true
				p.closed(c, errRefused)
				return
			}
			n.conns = append(n.conns, c)
			w.after(0, func() {
				if !c.deaf() {
					p.opened(c)
				}
			})
		})
	})
	return c
}

// at is the node that is up at a host, or nil.
func (w *world) at(host string) *node {
	for _, n := range slices.Backward(w.nodes) {
		if n.host == host && !n.dead {
			return n
		}
	}
	return nil
}

// send carries bytes from the client to the server.
func (c *conn) send(b []byte) {
	b = slices.Clone(b)
	c.carry("to", b, &c.lastIn, func(piece []byte) {
		c.node.receive(func() { c.arrive(piece, nil) })
	})
}

// arrive puts bytes, or the end, before the server.
func (c *conn) arrive(b []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.inErr = err
	} else {
		c.in = append(c.in, b)
	}
	if c.reading {
		c.served = true
		c.cond.Broadcast()
	}
}

// hangUp is the client's close: the server reads what was sent, also what is
// still on its way, then EOF.
func (c *conn) hangUp() {
	if c.hung = true; c.over || c.node == nil {
		c.over = true
		return
	}
	c.lastIn = c.world.notBefore(later(c.world.now, c.lastIn), func() {
		c.over = true
		c.node.receive(func() { c.arrive(nil, io.EOF) })
	})
}

// deaf says that the client hears nothing any more.
func (c *conn) deaf() bool { return c.over || c.hung }

// later is a, or an instant that is after b as notBefore counts.
func later(a, b time.Time) time.Time {
	if after := b.Add(time.Millisecond); a.Before(after) {
		return after
	}
	return a
}

// carry gives bytes on one way of the connection their fate.
func (c *conn) carry(way string, b []byte, last *time.Time, arrive func([]byte)) {
	w := c.world
	if c.deaf() || c.breaking {
		return
	}
	link := c.link + " " + way
	number := w.number(link)
	d := newDice(w.seed, link, number)
	rough := w.weather.network
	w.tracef("%s #%d %d bytes %08x", link, number, len(b), checksum(b))
	if d.chance(rough.cut) {
		w.tracef("%s is cut", c.link)
		c.breaking = true
		w.after(d.duration(0, 5*time.Millisecond), c.cut)
		return
	}
	at := later(w.now.Add(d.duration(rough.fast, rough.usual)), *last)
	if d.chance(rough.stall) {
		stall := d.duration(100*time.Millisecond, 8*time.Second)
		w.tracef("%s stalls for %v", c.link, stall)
		at = at.Add(stall)
	}
	pieces := [][]byte{b}
	if len(b) > 1 && d.chance(rough.split) {
		cut := 1 + d.below(len(b)-1)
		pieces = [][]byte{b[:cut], b[cut:]}
	}
	for _, piece := range pieces {
		*last = w.notBefore(at, func() {
			if !c.over {
				arrive(piece)
			}
		})
		at = last.Add(time.Millisecond)
	}
}

// cut breaks the connection, for both ends.
func (c *conn) cut() {
	if c.over {
		return
	}
	c.over = true
	if c.node != nil {
		c.node.receive(func() { c.vanish(errReset) })
	}
	if !c.hung {
		c.world.after(0, func() { c.peer.closed(c, errReset) })
	}
}

// serverDied breaks the connection from the server's side. Whether the client
// hears of it is the weather's.
func (c *conn) serverDied() {
	c.vanish(errDead)
	if c.over {
		return
	}
	c.over = true
	d := c.world.dice(c.link + " after death")
	if d.chance(0.8) && !c.hung {
		c.world.after(d.duration(0, 3*time.Millisecond), func() { c.peer.closed(c, errReset) })
	}
}

// vanish makes the server's end fail at once.
func (c *conn) vanish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = err
	c.readBy.stop()
	c.writeBy.stop()
	c.cond.Broadcast()
}
