package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// answerTimeout fails a run instead of waiting for an answer that does not come.
	answerTimeout  = time.Minute
	maxAnswerBytes = 64 << 20
)

// connection asks a server, one request at a time, and costs next to nothing:
// with a thousand of them it is the server that is measured. It is a
// kmsg.Requestor; requests say themselves which version they have.
type connection struct {
	net    net.Conn
	in     *bufio.Reader
	format *kmsg.RequestFormatter
	asked  int32
	buf    []byte
	stop   func() bool
}

// connect opens a connection that ends with its context.
func connect(ctx context.Context, addr string) (*connection, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &connection{
		net: c, in: bufio.NewReaderSize(c, 4<<10), format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")),
		stop: context.AfterFunc(ctx, func() { _ = c.Close() }),
	}, nil
}

func (c *connection) close() {
	c.stop()
	_ = c.net.Close()
}

// Request sends a request and waits for its answer.
func (c *connection) Request(_ context.Context, q kmsg.Request) (kmsg.Response, error) {
	c.asked++
	c.buf = c.format.AppendRequest(c.buf[:0], q, c.asked)
	if err := c.net.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	if _, err := c.net.Write(c.buf); err != nil {
		return nil, err
	}
	answer, err := c.read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kmsg.NameForKey(q.Key()), err)
	}
	resp := q.ResponseKind()
	resp.SetVersion(q.GetVersion())
	b := kbin.Reader{Src: answer}
	if id := b.Int32(); id != c.asked {
		return nil, fmt.Errorf("%s: an answer to request %d, not to %d", kmsg.NameForKey(q.Key()), id, c.asked)
	}
	if resp.IsFlexible() {
		kmsg.SkipTags(&b)
	}
	return resp, resp.ReadFrom(b.Src)
}

func (c *connection) read() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.in, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxAnswerBytes {
		return nil, fmt.Errorf("an answer of %d bytes", n)
	}
	answer := make([]byte, n)
	_, err := io.ReadFull(c.in, answer)
	return answer, err
}
