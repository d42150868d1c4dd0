package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A probe is a client's end that keeps what it hears.
type probe struct {
	conn  *conn
	heard []byte
	err   error
}

func (p *probe) opened(c *conn)             { p.conn = c }
func (p *probe) received(_ *conn, b []byte) { p.heard = append(p.heard, b...) }
func (p *probe) closed(_ *conn, err error)  { p.err = err }

// inWorld runs a test in a calm world of one node, which serves one connection, and one probe.
func inWorld(t *testing.T, serve func(net.Conn) error, test func(w *world, n *node, p *probe)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		n := w.boot("a", func(ctx context.Context, n *node) error {
			c, err := n.listener.Accept()
			if err != nil {
				return err
			}
			return serve(c)
		})
		p := &probe{}
		w.dial("a", "probe", p)
		if !w.run(func() bool { return p.conn != nil }, time.Second) {
			t.Fatal("no connection")
		}
		test(w, n, p)
		n.crash()
		if !w.run(n.gone, time.Minute) {
			t.Error("the node does not end")
		}
	})
}

func TestConnEchoesInOrder(t *testing.T) {
	echo := func(c net.Conn) error { _, err := io.Copy(c, c); return errors.Join(err, c.Close()) }
	inWorld(t, echo, func(w *world, n *node, p *probe) {
		w.weather.network.split, w.weather.network.stall = 0.5, 0.1
		var said []byte
		for i := range 100 {
			b := bytes.Repeat([]byte{byte(i)}, 1+i)
			said = append(said, b...)
			p.conn.send(b)
			w.pass(time.Millisecond)
		}
		p.conn.send([]byte("end"))
		said = append(said, "end"...)
		if !w.run(func() bool { return len(p.heard) == len(said) }, 10*time.Minute) || !bytes.Equal(p.heard, said) {
			t.Errorf("%d bytes came back of %d", len(p.heard), len(said))
		}
		p.conn.hangUp()
		if !w.run(n.gone, time.Minute) || n.err != nil {
			t.Errorf("after the client's end: %v", n.err)
		}
	})
}

func TestConnReadDeadline(t *testing.T) {
	var late time.Duration
	wait := func(c net.Conn) error {
		began := time.Now()
		if err := c.SetReadDeadline(began.Add(time.Second)); err != nil {
			return err
		}
		_, err := c.Read(make([]byte, 1))
		late = time.Since(began)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		_ = c.SetReadDeadline(time.Time{})
		_, err = io.ReadFull(c, make([]byte, 2))
		return err
	}
	inWorld(t, wait, func(w *world, n *node, p *probe) {
		w.pass(3 * time.Second)
		if late != time.Second {
			t.Errorf("the read ended after %v", late)
		}
		p.conn.send([]byte("ok"))
		if !w.run(n.gone, time.Second) || n.err != nil {
			t.Errorf("a read after the deadline was taken back: %v", n.err)
		}
	})
}

func TestConnWritesWaitForTheClient(t *testing.T) {
	var wrote int
	flood := func(c net.Conn) (err error) {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		wrote, err = c.Write(make([]byte, 3*windowBytes))
		return err
	}
	inWorld(t, flood, func(w *world, n *node, p *probe) {
		w.weather.network.fast, w.weather.network.usual = 2*time.Second, 2*time.Second
		w.pass(1500 * time.Millisecond)
		// The first window may have gone out before the weather changed.
		if wrote > 2*windowBytes || !errors.Is(n.err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes were written to a client that is slow, then: %v", wrote, n.err)
		}
	})
}

func TestConnEndsWithItsNode(t *testing.T) {
	var read, write error
	serve := func(c net.Conn) error {
		_, read = c.Read(make([]byte, 1))
		_, write = c.Write([]byte("x"))
		return nil
	}
	inWorld(t, serve, func(w *world, n *node, p *probe) {
		n.crash()
		if !w.run(n.gone, time.Second) || read == nil || write == nil {
			t.Errorf("after a crash: read %v, write %v", read, write)
		}
	})
}

func TestPausedNodeHearsLater(t *testing.T) {
	var heardAt time.Time
	serve := func(c net.Conn) error {
		_, err := c.Read(make([]byte, 1))
		heardAt = time.Now()
		return err
	}
	inWorld(t, serve, func(w *world, n *node, p *probe) {
		n.pause()
		p.conn.send([]byte("x"))
		w.pass(time.Second)
		resumed := w.now
		n.resume()
		w.pass(time.Second)
		if heardAt.Before(resumed) {
			t.Errorf("it heard at %v, before %v", heardAt, resumed)
		}
	})
}
