package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone/agent/peer"
)

// writeBytes bounds one vectored write, so that its deadline is one for
// progress, and not for all that waits.
const writeBytes = 1 << 20

// session is a connection on each lane to a peer.
type session [peer.Lanes]*outgoing

// outgoing is a connection that this agent has dialled.
type outgoing struct {
	t    *Transport
	lane peer.Lane
	conn net.Conn
	box  outbox

	// The writer's.
	part, scratch net.Buffers
}

func newSession(t *Transport, conns [peer.Lanes]net.Conn) *session {
	bounds := [peer.Lanes]int{peer.Control: controlBytes, peer.Bulk: t.QueueBytes}
	s := new(session)
	for lane, conn := range conns {
		s[lane] = &outgoing{
			t: t, lane: peer.Lane(lane), conn: conn,
			box: outbox{bound: bounds[lane], wake: make(chan struct{}, 1), held: t.metrics.queued[lane]},
		}
	}
	return s
}

// serve sends what is queued, until a connection breaks or ctx ends; then it
// closes both. The error is why.
func (s *session) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var serving sync.WaitGroup
	for _, o := range s {
		o.t.metrics.dialled.Inc()
		serving.Go(func() { cancel(o.write(ctx)) })
		serving.Go(func() { cancel(o.listen()) })
	}
	<-ctx.Done()
	for _, o := range s {
		o.conn.Close()
	}
	serving.Wait()
	for _, o := range s {
		o.box.close()
		o.t.metrics.dialled.Dec()
	}
	return context.Cause(ctx)
}

// write sends what is queued, and keep-alives while nothing is.
func (o *outgoing) write(ctx context.Context) error {
	idle := time.NewTicker(o.t.keepAlive())
	defer idle.Stop()
	var spare net.Buffers
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.box.wake:
		case <-idle.C:
			o.box.add(0, nil) // does nothing to a queue that is full, which needs none
		}
		batch := o.box.take(spare)
		seal(batch)
		if err := o.flush(batch); err != nil {
			return err
		}
		idle.Reset(o.t.keepAlive())
		spare = batch
	}
}

func (o *outgoing) flush(batch net.Buffers) error {
	for len(batch) > 0 {
		o.part, batch = cut(o.scratch[:0], batch, writeBytes)
		o.scratch = o.part
		if err := o.conn.SetWriteDeadline(time.Now().Add(o.t.writeTimeout)); err != nil {
			return err
		}
		n, err := o.part.WriteTo(o.conn)
		o.t.metrics.sent[o.lane].Add(float64(n))
		o.box.wrote(int(n))
		if err != nil {
			return err
		}
	}
	return nil
}

// listen hears that the peer lives.
func (o *outgoing) listen() error {
	r := o.t.progress(o.conn, o.lane)
	var signs [64]byte
	for {
		n, err := r.Read(signs[:])
		for _, b := range signs[:n] {
			if b != alive {
				return fmt.Errorf("%w: a byte %#x where the peer says that it lives", errMalformed, b)
			}
		}
		if err != nil {
			return err
		}
	}
}

// progress reads from a connection as long as each byte comes within silence
// of the one before.
type progress struct {
	conn          net.Conn
	silence, last time.Duration
	received      prometheus.Counter
}

func (t *Transport) progress(conn net.Conn, lane peer.Lane) *progress {
	return &progress{conn: conn, silence: t.Silence, last: t.keepAlive(), received: t.metrics.received[lane]}
}

// Read looks twice before it takes silence for one: if it was this agent that
// stood still, what has come meanwhile is there, or comes soon.
func (p *progress) Read(b []byte) (int, error) {
	n, err := p.within(p.silence-p.last, b)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return p.within(p.last, b)
	}
	return n, err
}

func (p *progress) within(d time.Duration, b []byte) (int, error) {
	if err := p.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		return 0, err
	}
	n, err := p.conn.Read(b)
	p.received.Add(float64(n))
	return n, err
}
