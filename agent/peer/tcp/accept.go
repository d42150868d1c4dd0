package tcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

// accept serves connections that others make, until ctx ends.
func (t *Transport) accept(ctx context.Context, h peer.Handler) error {
	unproven := make(chan struct{}, maxUnproven)
	for {
		conn, err := t.Listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return nil
		}
		if err != nil {
			if !temporary(err) {
				return fmt.Errorf("tcp: accept: %w", err)
			}
			t.failed("accept", err)
			pause(ctx, 2*minBackoff) // out of file descriptors, most likely: some will be closed
			continue
		}
		select {
		case unproven <- struct{}{}:
		default:
			conn.Close()
			t.failed("accept", errCrowded)
			continue
		}
		t.serving.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			hello, err := t.welcome(conn)
			<-unproven
			if err != nil {
				if ctx.Err() == nil && !hungUp(err) {
					t.failed(host(conn), err)
				}
				return
			}
			t.troubles.forget(host(conn))
			t.receive(ctx, conn, hello, h)
		})
	}
}

func temporary(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && t.Temporary()
}

// host is whose connection it is, as long as that is all that is known.
func host(conn net.Conn) string {
	address := conn.RemoteAddr().String()
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}

func (t *Transport) welcome(conn net.Conn) (hello, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return hello{}, err
	}
	h, err := t.id.accept(conn)
	if err != nil {
		return h, err
	}
	t.metrics.received[h.lane].Add(float64(helloBytes + proofBytes))
	t.metrics.sent[h.lane].Add(float64(answerBytes))
	return h, conn.SetDeadline(time.Time{})
}

// receive gives the handler what a peer sends.
func (t *Transport) receive(ctx context.Context, conn net.Conn, from hello, h peer.Handler) {
	ctx, leave, err := t.turns.enter(ctx, source{from.from, from.lane})
	if err != nil {
		return
	}
	defer leave()
	t.metrics.accepted.Inc()
	defer t.metrics.accepted.Dec()

	ctx, cancel := context.WithCancel(ctx)
	var signs sync.WaitGroup
	defer signs.Wait()
	defer conn.Close() // which ends them
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	signs.Go(func() {
		defer cancel()
		t.showLife(ctx, conn, from.lane)
	})
	r := bufio.NewReaderSize(t.progress(conn, from.lane), firstBytes)
	for {
		message, err := readFrame(r)
		if err != nil {
			if ctx.Err() == nil {
				t.Log.Info("a peer's connection to this agent has ended", "peer", from.from, "lane", from.lane, "err", err)
			}
			return
		}
		if len(message) > 0 {
			h.Received(from.from, from.lane, message)
		}
	}
}

// showLife tells the dialler that this agent lives, also while the handler
// takes its time for a message.
func (t *Transport) showLife(ctx context.Context, conn net.Conn, lane peer.Lane) {
	tick := time.NewTicker(t.keepAlive())
	defer tick.Stop()
	for {
		if conn.SetWriteDeadline(time.Now().Add(t.writeTimeout)) != nil {
			return
		}
		n, err := conn.Write([]byte{alive})
		t.metrics.sent[lane].Add(float64(n))
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// source is where messages come from, in order.
type source struct {
	from siltstone.Incarnation
	lane peer.Lane
}

// turns sees to it that one connection of a source is served at a time, the newest.
type turns struct {
	mu sync.Mutex
	of map[source]*turn
}

type turn struct {
	taken  chan struct{} // has one while a connection is served
	newest context.CancelFunc
	users  int // connections that are served, or wait to be
}

// enter ends the connection of the source that there was, and waits until it is
// not served any more, so that no message of it comes late. The context ends
// when a newer one comes. It does not wait for longer than the dialler does.
func (t *turns) enter(ctx context.Context, s source) (_ context.Context, leave func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	if t.of == nil {
		t.of = map[source]*turn{}
	}
	mine := t.of[s]
	if mine == nil {
		mine = &turn{taken: make(chan struct{}, 1)}
		t.of[s] = mine
	} else {
		mine.newest()
	}
	mine.newest = cancel
	mine.users++
	t.mu.Unlock()

	gone := func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.users--; mine.users == 0 {
			delete(t.of, s)
		}
	}
	soon, stop := context.WithTimeout(ctx, handshakeTimeout)
	defer stop()
	select {
	case mine.taken <- struct{}{}:
		return ctx, func() { <-mine.taken; gone() }, nil
	case <-soon.Done():
		gone()
		return nil, nil, soon.Err()
	}
}
