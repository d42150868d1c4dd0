package tcp

import (
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// outbox is what waits to be sent on one connection: frames, as buffers of
// which the first of each is its header.
type outbox struct {
	bound int
	wake  chan struct{} // has one when something waits
	held  prometheus.Gauge

	mu      sync.Mutex
	waiting net.Buffers
	bytes   int    // of waiting, and of what was taken and is not written yet
	headers []byte // for the next headers
	closed  bool
}

// headersAtOnce is how many headers share an allocation.
const headersAtOnce = 128

// add queues a message of size bytes, or says that too much waits. One message
// is never too much, or the largest could not be sent.
func (o *outbox) add(size int, pieces [][]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	frame := headerBytes + size
	if o.closed || o.bytes > 0 && o.bytes+frame > o.bound {
		return false
	}
	o.bytes += frame
	o.held.Add(float64(frame))
	if len(o.headers) == 0 {
		o.headers = make([]byte, headersAtOnce*headerBytes)
	}
	h := o.headers[:headerBytes:headerBytes]
	o.headers = o.headers[headerBytes:]
	putLength(h, size)
	o.waiting = append(o.waiting, h)
	for _, p := range pieces {
		if len(p) > 0 {
			o.waiting = append(o.waiting, p)
		}
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return true
}

// take gives all that waits, and keeps the spare for what will, unless it is
// large: a burst of small messages is not to be remembered for ever.
func (o *outbox) take(spare net.Buffers) net.Buffers {
	const keep = 1 << 14
	o.mu.Lock()
	defer o.mu.Unlock()
	batch := o.waiting
	o.waiting = nil
	if cap(spare) <= keep {
		o.waiting = spare[:0]
	}
	return batch
}

// wrote frees the room of bytes that were taken.
func (o *outbox) wrote(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= n
	o.held.Sub(float64(n))
}

// close drops what waits; nothing is added any more.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.waiting = true, nil
	o.held.Sub(float64(o.bytes))
}

// cut moves up to limit bytes from the front of a batch to the end of part.
func cut(part, batch net.Buffers, limit int) (net.Buffers, net.Buffers) {
	for len(batch) > 0 && limit > 0 {
		b := batch[0]
		if len(b) > limit {
			batch[0] = b[limit:]
			return append(part, b[:limit]), batch
		}
		part = append(part, b)
		limit -= len(b)
		batch[0] = nil
		batch = batch[1:]
	}
	return part, batch
}
