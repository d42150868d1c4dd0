package sim

import (
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(c.in) > 0:
			n := copy(b, c.in)
			c.in = c.in[n:]
			return n, nil
		case c.inErr != nil:
			return 0, c.inErr
		}
		c.cond.Wait()
	}
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
		case c.gone:
			return written, errReset
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
		c.carry("from", out, &c.lastTo, func(piece []byte) {
			c.mu.Lock()
			c.flying -= len(piece)
			c.cond.Broadcast()
			c.mu.Unlock()
			c.peer.received(c, piece)
		})
	}
	if !closed {
		return
	}
	c.node.conns = slices.DeleteFunc(c.node.conns, func(o *conn) bool { return o == c })
	if !c.over {
		c.world.tracef("%s closed by the server", c.link)
		c.world.notBefore(later(c.world.now, c.lastTo), func() {
			if !c.over {
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
