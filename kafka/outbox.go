package kafka

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// flushBytes of answers are written out even if the next is ready too: so
	// much may wait on a connection beside an answer that counts.
	flushBytes = 16 << 10
	// freeBytes is the size above which an answer as large as the cluster counts.
	freeBytes = 16 << 10
	// keptBytes is the largest buffer that is used again.
	keptBytes = 256 << 10
	// pieceBytes may take Limits.Write to be taken by the client.
	pieceBytes = 1 << 20
	// Where others wait for the memory of what is written, the client must take
	// impatientBytes in each impatientTime.
	impatientBytes = 64 << 10
	impatientTime  = time.Second
)

// buffers are those of outboxes that have nothing to write, so that a
// connection that waits keeps none.
var buffers sync.Pool

// outbox collects a connection's answers and writes them. Record batches are
// not copied into it: they are spliced in when it is written, so that they go
// from the log's memory to the socket in one vectored write.
type outbox struct {
	server *Server
	conn   net.Conn

	buf      []byte  // answers without their record batches
	pooled   *[]byte // where buf goes back to; nil: it is not of the pool yet
	splices  []splice
	release  []func()      // once the splices are written
	wanted   []func() bool // whether others wait for the memory of the splices
	charged  int64         // of the server's memory for answers
	spliced  int           // bytes, of the answer being written
	firstAt  int           // where that answer begins in buf
	vectored net.Buffers

	// Of the last answers to Produce and Fetch, to be used again.
	produce    kmsg.ProduceResponse
	partitions []kmsg.ProduceResponseTopicPartition
}

// splice is what goes between buf[:at] and buf[at:].
type splice struct {
	at      int
	records [][]byte
}

// begin starts the answer to a request: size, correlation id and tags.
func (o *outbox) begin(r *request) {
	if o.buf == nil {
		o.take()
	}
	o.firstAt, o.spliced = len(o.buf), 0
	o.buf = append(o.buf, 0, 0, 0, 0)
	o.buf = binary.BigEndian.AppendUint32(o.buf, uint32(r.correlation))
	// An answer to ApiVersions never has tags in its header (KIP-511): the
	// client may not know yet what the server speaks.
	if r.flexible() && r.api.key != kmsg.ApiVersions {
		o.buf = append(o.buf, 0)
	}
}

// end completes the answer.
func (o *outbox) end(r *request) {
	size := len(o.buf) - o.firstAt - sizeBytes + o.spliced
	binary.BigEndian.PutUint32(o.buf[o.firstAt:], uint32(size))
	r.api.seconds.Observe(time.Since(r.arrived).Seconds())
}

// splice puts record batches at the end of what is written so far.
func (o *outbox) splice(records [][]byte, bytes int) {
	if bytes > 0 {
		o.splices = append(o.splices, splice{at: len(o.buf), records: records})
		o.spliced += bytes
	}
}

// message is a whole answer without record batches.
func (o *outbox) message(r *request, m kmsg.Response) {
	m.SetVersion(r.version)
	o.begin(r)
	o.buf = m.AppendTo(o.buf)
	o.end(r)
}

// full says that it is time to write.
func (o *outbox) full() bool { return len(o.buf) >= flushBytes || len(o.splices) > 0 }

// flush writes all answers. What was spliced is given back, written or not.
func (o *outbox) flush() error {
	if len(o.buf) == 0 {
		return nil
	}
	defer o.reset()
	at := 0
	for _, s := range o.splices {
		if s.at > at {
			o.vectored = append(o.vectored, o.buf[at:s.at])
			at = s.at
		}
		o.vectored = append(o.vectored, s.records...)
	}
	if at < len(o.buf) {
		o.vectored = append(o.vectored, o.buf[at:])
	}
	return o.write(o.vectored)
}

// write writes piece by piece, so that a client has time for each, and none
// for reading a large answer byte by byte.
func (o *outbox) write(all net.Buffers) error {
	for len(all) > 0 {
		n, size := 0, 0
		for n < len(all) && (n == 0 || size+len(all[n]) <= pieceBytes) {
			size += len(all[n])
			n++
		}
		piece := all[:n]
		var rest []byte
		if size > pieceBytes { // one buffer of more than a piece
			rest, piece[0] = piece[0][pieceBytes:], piece[0][:pieceBytes]
		}
		if err := o.writePiece(&piece); err != nil {
			return err
		}
		if rest != nil {
			all[0] = rest
			continue
		}
		all = all[n:]
	}
	return nil
}

// writePiece writes a piece, and looks up now and then where others may wait.
func (o *outbox) writePiece(piece *net.Buffers) error {
	for until := time.Now().Add(o.server.limits.Write); ; {
		deadline := until
		if soon := time.Now().Add(impatientTime); len(o.wanted) > 0 && soon.Before(until) {
			deadline = soon
		}
		if err := o.conn.SetWriteDeadline(deadline); err != nil {
			return gone(err)
		}
		written, err := piece.WriteTo(o.conn)
		o.server.metrics.sent.Add(float64(written))
		switch {
		case err == nil:
			return nil
		case !timedOut(err):
			return gone(err)
		case !time.Now().Before(until), written < impatientBytes && o.isWanted():
			return errSlowReader
		}
	}
}

func (o *outbox) isWanted() bool {
	for _, wanted := range o.wanted {
		if wanted() {
			return true
		}
	}
	return false
}

func (o *outbox) reset() {
	for _, release := range o.release {
		release()
	}
	clear(o.release)
	clear(o.wanted)
	clear(o.splices)
	clear(o.vectored[:cap(o.vectored)])
	o.release, o.wanted, o.splices, o.vectored = o.release[:0], o.wanted[:0], o.splices[:0], o.vectored[:0]
	o.giveBack()
	o.server.answers.Release(o.charged)
	o.charged = 0
}

// take takes a buffer.
func (o *outbox) take() {
	if b, ok := buffers.Get().(*[]byte); ok {
		o.pooled, o.buf = b, (*b)[:0]
		return
	}
	o.pooled, o.buf = new([]byte), make([]byte, 0, 512)
}

func (o *outbox) giveBack() {
	if o.pooled != nil && cap(o.buf) <= keptBytes {
		*o.pooled = o.buf
		buffers.Put(o.pooled)
	}
	o.pooled, o.buf = nil, nil
}

// charge takes memory for what is in the outbox, until it is written.
func (o *outbox) charge(ctx context.Context) error {
	size := min(int64(len(o.buf)), int64(o.server.limits.AnswerBytes)) - o.charged
	if size <= freeBytes {
		return nil
	}
	if err := o.server.answers.Acquire(ctx, size); err != nil {
		return errStopping
	}
	o.charged += size
	return nil
}
