package kafka

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// readBytes is the size of a connection's read buffer: small requests arrive
// whole with one read, large ones go past it into their own frame.
const readBytes = 4 << 10

// conn is one connection. Its reader decodes, validates and submits requests;
// its writer waits for their outcomes and writes the answers, in the order of
// the requests. What passes between them is queue.
type conn struct {
	server *Server
	net    net.Conn
	id     uint64
	queue  chan pending
	flying atomic.Int32 // requests that are not answered
	quiet  atomic.Int64 // since when there is none, ns since 1970
	broken atomic.Bool  // no answer can be written any more

	// ctx ends when the client has gone or the server stops.
	ctx    context.Context
	cancel context.CancelFunc
}

// pending is a request that waits for its answer.
type pending struct {
	request *request
	answer  answer
}

func newConn(ctx context.Context, s *Server, nc net.Conn, id uint64) *conn {
	c := &conn{server: s, net: nc, id: id, queue: make(chan pending, s.limits.InFlight)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// serve runs the connection to its end and returns when its requests are
// settled and nothing of it runs any more. The error is why it ended.
func (c *conn) serve() error {
	defer c.net.Close()
	defer c.cancel()
	// A reader that waits for bytes wakes when the server stops.
	stop := context.AfterFunc(c.ctx, func() { _ = c.net.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()

	written := make(chan error, 1)
	go func() { written <- c.write() }()
	why := c.read()
	if c.ctx.Err() != nil {
		why = errStopping
	}
	if errors.Is(why, errGone) || errors.Is(why, errSlowFrame) {
		c.hangUp()
	}
	close(c.queue)
	if err := <-written; err != nil {
		why = err
	}
	return why
}

// hangUp ends what only the client could be waiting for.
func (c *conn) hangUp() {
	c.broken.Store(true)
	c.cancel()
	c.net.Close()
}

// setReadDeadline leaves the one alone that wakes the reader when ctx has ended.
func (c *conn) setReadDeadline(t time.Time) error {
	if err := c.net.SetReadDeadline(t); err != nil {
		return err
	}
	return c.ctx.Err()
}

// read takes requests until the connection ends.
func (c *conn) read() error {
	frames := frameReader{
		server:   c.server,
		in:       bufio.NewReaderSize(c.net, readBytes),
		deadline: c.setReadDeadline,
		active:   c.active,
		first:    true,
	}
	for {
		r, err := frames.next(c.ctx)
		if err != nil {
			return err
		}
		a, err := r.api.start(c, r)
		if err != nil {
			r.release()
			return err
		}
		c.flying.Add(1)
		c.queue <- pending{request: r, answer: a} // the writer takes all until it is closed
	}
}

// active is when the connection last had a request that waited for its answer.
func (c *conn) active() time.Time {
	if c.flying.Load() > 0 {
		return time.Now()
	}
	return time.Unix(0, c.quiet.Load())
}

// write answers the queue's requests. It goes on after an error without
// writing, for submitted requests are settled before their frames are freed.
func (c *conn) write() error {
	out := outbox{server: c.server, conn: c.net}
	var why error
	for p := range c.queue {
		err := c.answer(p, &out)
		p.request.release()
		c.quiet.Store(time.Now().UnixNano())
		c.flying.Add(-1)
		if err != nil && why == nil {
			why = err
			c.hangUp()
		}
	}
	return why
}

// answer answers one request. Answers are written together as long as the next
// one is ready.
func (c *conn) answer(p pending, out *outbox) error {
	if !p.answer.ready() {
		if err := out.flush(); err != nil {
			return err
		}
	}
	err := p.answer.respond(c.ctx, out)
	switch {
	case c.broken.Load():
		out.reset()
		return nil
	case err != nil:
		return errors.Join(err, out.flush())
	case len(c.queue) == 0 || out.full():
		return out.flush()
	}
	return nil
}
