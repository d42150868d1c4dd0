package tcp

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

// Waits between attempts to connect. A session that lived for less than
// maxBackoff counts as one more attempt that failed.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
)

// errMoved: the peer has another address now.
var errMoved = errors.New("the address has changed")

// link keeps the connections to one peer, for as long as Reach asks for it.
type link struct {
	t       *Transport
	to      siltstone.Incarnation
	gone    context.Context // ends with hangUp
	hangUp  context.CancelFunc
	after   <-chan struct{} // done of the last link to the same peer, which may not have ended
	done    chan struct{}   // closed at the end of run
	session atomic.Pointer[session]

	mu        sync.Mutex
	address   string
	interrupt context.CancelCauseFunc // ends the attempt of now, and its session
}

func newLink(t *Transport, to siltstone.Incarnation, address string) *link {
	l := &link{t: t, to: to, address: address, done: make(chan struct{})}
	l.gone, l.hangUp = context.WithCancel(context.Background())
	return l
}

func (l *link) move(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.address != address {
		l.address = address
		if l.interrupt != nil {
			l.interrupt(errMoved)
		}
	}
}

// begin starts an attempt: to which address, and a context that ends when that changes.
func (l *link) begin() (context.Context, string) {
	ctx, interrupt := context.WithCancelCause(l.gone)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.interrupt != nil {
		l.interrupt(nil)
	}
	l.interrupt = interrupt
	return ctx, l.address
}

// run connects, again and again. All calls of the handler about what is sent to
// this peer are made here, so they come one at a time.
func (l *link) run(ctx context.Context, h peer.Handler) {
	defer close(l.done)
	defer l.hangUp()
	defer context.AfterFunc(ctx, l.hangUp)()
	if l.after != nil {
		<-l.after
	}
	var wait time.Duration
	for l.gone.Err() == nil {
		attempt, address := l.begin()
		if l.attempt(attempt, address, h) >= maxBackoff {
			wait = 0
		}
		pause(attempt, wait)
		wait = min(max(2*wait, minBackoff), maxBackoff)
		if errors.Is(context.Cause(attempt), errMoved) {
			wait = 0
		}
	}
}

// pause waits for half of the time to all of it.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// attempt connects, and serves the session until it breaks. It returns how long that was.
func (l *link) attempt(ctx context.Context, address string, h peer.Handler) time.Duration {
	conns, err := l.connect(ctx, address)
	if err != nil {
		if ctx.Err() == nil {
			l.t.failed(l.to.String(), err)
			if refused(err) {
				h.Down(l.to, true)
			}
		}
		return 0
	}
	l.t.troubles.forget(l.to.String())
	l.t.Log.Info("connected to a peer", "peer", l.to, "address", address)
	begun := time.Now()
	s := newSession(l.t, conns)
	ended := make(chan error, 1)
	l.session.Store(s)
	l.t.serving.Go(func() {
		err := s.serve(ctx)
		l.session.Store(nil)
		ended <- err
	})
	h.Up(l.to)
	err = <-ended
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), errMoved) {
		l.t.Log.Info("a peer's connection has ended", "peer", l.to, "err", err)
		h.Down(l.to, false)
	}
	return time.Since(begun)
}

// connect dials both lanes at once.
func (l *link) connect(ctx context.Context, address string) (conns [peer.Lanes]net.Conn, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var dialling sync.WaitGroup
	for lane := range peer.Lane(peer.Lanes) {
		dialling.Go(func() {
			conn, err := l.dial(ctx, address, lane)
			if err != nil {
				cancel(err) // the first counts: the other may have failed by it
			}
			conns[lane] = conn
		})
	}
	dialling.Wait()
	if err := context.Cause(ctx); err != nil {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
		return conns, err
	}
	return conns, nil
}

func (l *link) dial(ctx context.Context, address string, lane peer.Lane) (net.Conn, error) {
	soon, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := l.t.Dial(soon, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if err == nil {
		err = l.t.id.dial(conn, l.to, lane)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	l.t.metrics.sent[lane].Add(float64(helloBytes + proofBytes))
	l.t.metrics.received[lane].Add(float64(answerBytes + 1))
	return conn, nil
}
