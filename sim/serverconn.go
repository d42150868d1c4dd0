package sim

import (
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// Read implements net.Conn. It gives one piece at a time, and what has arrived
// before it was asked for in an event of its own: servers that go on reading
// when they are let go all at once would otherwise race.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		there := len(c.in) > 0 || c.inErr != nil
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.gone != nil:
			return 0, c.gone
		case c.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case there && c.served:
			return c.take(b)
		case there && !c.hungry:
			c.hungry = c.node.put(hunger{c})
		}
		c.reading = !there
		c.cond.Wait()
		c.reading = false
	}
}

func (c *conn) take(b []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, c.inErr
	}
	n := copy(b, c.in[0])
	if c.in[0] = c.in[0][n:]; len(c.in[0]) == 0 {
		c.in = c.in[1:]
		c.served = false
	}
	return n, nil
}

// hunger is a server's wish to have what has arrived.
type hunger struct{ conn *conn }

func (h hunger) from() (*node, string, string) { return h.conn.node, h.conn.link, "hungry" }

func (h hunger) happen() {
	c := h.conn
	c.world.soon(func() {
		c.node.receive(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.served, c.hungry = true, false
			c.cond.Broadcast()
		})
	})
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	written := 0
	for {
		switch {
		case c.closed:
			return written, net.ErrClosed
		case c.writeBy.passed:
			return written, os.ErrDeadlineExceeded
		case c.gone != nil:
			return written, c.gone
		case written == len(b):
			return written, nil
		}
		if room := windowBytes - c.flying; room > 0 {
			n := min(room, len(b)-written)
			c.out = append(c.out, b[written:written+n]...)
			c.flying += n
			written += n
			c.speak()
			continue
		}
		c.cond.Wait()
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.readBy.stop()
	c.writeBy.stop()
	c.cond.Broadcast()
	c.speak()
	return nil
}

// speak tells the driver that there is something to carry.
func (c *conn) speak() {
	if !c.unspoken {
		c.unspoken = c.node.put(speech{c})
	}
}

// A speech is what a server wrote since the driver looked last, or its close.
type speech struct{ conn *conn }

func (s speech) from() (*node, string, string) { return s.conn.node, s.conn.link, "" }

func (s speech) happen() {
	c := s.conn
	c.mu.Lock()
	out, closed := c.out, c.closed
	c.out, c.unspoken = nil, false
	c.mu.Unlock()
	if len(out) > 0 {
		c.carry("from", out, &c.lastOut, func(piece []byte) {
			c.mu.Lock()
			c.flying -= len(piece)
			c.cond.Broadcast()
			c.mu.Unlock()
			if !c.hung {
				c.peer.received(c, piece)
			}
		})
	}
	if !closed {
		return
	}
	c.node.conns = slices.DeleteFunc(c.node.conns, func(o *conn) bool { return o == c })
	if !c.deaf() {
		c.world.tracef("%s closed by the server", c.link)
		c.world.notBefore(later(c.world.now, c.lastOut), func() {
			if !c.deaf() {
				c.over = true
				c.peer.closed(c, io.EOF)
			}
		})
	}
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.node.listener.Addr() }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return addr("client:1") }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readBy.set(t)
	c.writeBy.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readBy.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeBy.set(t)
	return nil
}

// A deadline is one of a connection's; its cond's lock guards it.
type deadline struct {
	cond   *sync.Cond
	timer  *time.Timer
	round  int // tells the timer of an older deadline from this one's
	passed bool
}

func (d *deadline) stop() {
	d.round++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (d *deadline) set(t time.Time) {
	d.stop()
	d.passed = false
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.passed = true
		d.cond.Broadcast()
		return
	}
	round := d.round
	d.timer = time.AfterFunc(wait, func() {
		d.cond.L.Lock()
		defer d.cond.L.Unlock()
		if d.round == round {
			d.passed = true
			d.cond.Broadcast()
		}
	})
}
