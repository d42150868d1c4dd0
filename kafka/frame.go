package kafka

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Why a connection is closed. Each is a label of
// siltstone_kafka_connections_closed_total.
var (
	errGone         = errors.New("closed by the client")
	errIdle         = errors.New("idle")
	errSlowFrame    = errors.New("request took too long to arrive")
	errSlowReader   = errors.New("client does not read its answers")
	errTLS          = errors.New("TLS on a plaintext port: clients are to have security.protocol=PLAINTEXT")
	errHTTP         = errors.New("HTTP on a Kafka port: HTTP has another")
	errFrameTooLong = errors.New("request too large")
	errMalformed    = errors.New("malformed request")
	errUnknownAPI   = errors.New("unknown API or version")
	errNoReply      = errors.New("error of a request without a reply") // acks=0
	errStopping     = errors.New("server stops")
)

const (
	sizeBytes   = 4
	prefixBytes = sizeBytes + 8               // size, api key, version, correlation id
	minFrame    = prefixBytes - sizeBytes + 2 // with a null client id
)

// request is one frame, read whole. Its memory counts as long as it is held.
type request struct {
	api         *api
	version     int16
	correlation int32
	clientID    []byte // aliases the frame
	body        []byte // aliases the frame
	arrived     time.Time

	size   int // of the frame
	frame  *buffer
	held   int64 // of the server's memory for requests
	server *Server
}

// flexible says whether the request's version has tagged fields (KIP-482).
func (r *request) flexible() bool { return r.version >= r.api.flexible }

// release gives the frame back. Nothing that aliases it may be used after.
func (r *request) release() {
	if r.frame != nil {
		r.frame.free()
		r.frame, r.clientID, r.body = nil, nil, nil
	}
	r.account(-r.held)
}

// shrink gives the frame back of a request that is decoded into something
// smaller: from now on that counts, so many times the frame.
func (r *request) shrink(factor int64) {
	r.frame.free()
	r.frame, r.clientID, r.body = nil, nil, nil
	r.account(int64(r.size)*factor - r.held)
}

// grow takes more memory for what the request has become, if there is any.
func (r *request) grow(bytes int64) bool {
	if !r.server.memory.TryAcquire(bytes) {
		return false
	}
	r.held += bytes
	r.server.metrics.held.Add(float64(bytes))
	return true
}

// account changes what the request holds of the server's memory, downward.
func (r *request) account(change int64) {
	r.held += change
	r.server.memory.Release(-change)
	r.server.metrics.held.Add(float64(change))
}

// abandon leaves the frame to the collector, for the log may still read it.
func (r *request) abandon() { r.frame = nil }

// frameReader reads the frames of one connection.
type frameReader struct {
	server   *Server
	in       *bufio.Reader
	deadline func(time.Time) error // for reading
	active   func() time.Time      // now, while requests wait for their answer; else when the last got it
	first    bool                  // no frame has arrived yet
}

// next waits for a frame and reads it. Its memory is taken before it is
// allocated (arrive.go), and what comes after it stays unread until there is
// enough. The error is one of the reasons above, wrapped, or ctx's.
func (f *frameReader) next(ctx context.Context) (*request, error) {
	if err := f.await(); err != nil {
		return nil, err
	}
	limits := &f.server.limits
	if f.in.Buffered() < prefixBytes {
		if err := f.deadline(time.Now().Add(limits.Frame)); err != nil {
			return nil, gone(err)
		}
	}
	size, r, err := f.prefix()
	if err != nil {
		return nil, err
	}
	r.held = int64(size) * r.api.weight
	if size > limits.FrameBytes || r.held > int64(limits.MemoryBytes) {
		return nil, fmt.Errorf("%w: %s of %d bytes", errFrameTooLong, r.api.name, size)
	}
	r.size = size
	if err := f.read(ctx, r); err != nil {
		return nil, err
	}
	if err := f.header(r); err != nil {
		r.release()
		return nil, err
	}
	f.first = false
	return r, nil
}

// read reads the rest of a frame, and takes the memory that the request is to have.
func (f *frameReader) read(ctx context.Context, r *request) error {
	there, err := f.isThere(r.size)
	if err != nil {
		return err
	}
	var arriving arrival
	if !there {
		arriving = arrival{reader: f, size: r.size}
		defer arriving.end()
		if r.frame, err = arriving.read(ctx); err != nil {
			return err
		}
	}
	if err := f.server.memory.Acquire(ctx, r.held); err != nil {
		return err
	}
	f.server.metrics.held.Add(float64(r.held))
	if there {
		r.frame = newBuffer(r.size)
		_, _ = io.ReadFull(f.in, r.frame.b) // of the read buffer
	}
	return nil
}

// await waits for the first byte of a frame.
func (f *frameReader) await() error {
	if f.in.Buffered() > 0 {
		return nil
	}
	wait := f.server.limits.Idle
	if f.first {
		wait = f.server.limits.FirstFrame
	}
	for until := time.Now().Add(wait); ; {
		if err := f.deadline(until); err != nil {
			return gone(err)
		}
		_, err := f.in.Peek(1)
		switch {
		case err == nil:
			return nil
		case !timedOut(err):
			return gone(err)
		}
		if until = f.active().Add(wait); !until.After(time.Now()) {
			return errIdle
		}
	}
}

// prefix reads what tells how much memory the frame needs, and checks that it
// is a frame at all.
func (f *frameReader) prefix() (size int, r *request, err error) {
	p, err := f.in.Peek(sizeBytes)
	if err != nil {
		return 0, nil, slowOrGone(err)
	}
	switch {
	case p[0] == 0x16 && p[1] == 0x03: // a TLS handshake record
		return 0, nil, errTLS
	case isHTTP(string(p)):
		return 0, nil, errHTTP
	}
	length := int32(binary.BigEndian.Uint32(p))
	if length < minFrame {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", errMalformed, length)
	}
	if int64(length) > int64(f.server.limits.FrameBytes) {
		return 0, nil, fmt.Errorf("%w: %d bytes", errFrameTooLong, length)
	}
	if p, err = f.in.Peek(prefixBytes); err != nil {
		return 0, nil, slowOrGone(err)
	}
	key := int16(binary.BigEndian.Uint16(p[4:]))
	r = &request{
		server:      f.server,
		version:     int16(binary.BigEndian.Uint16(p[6:])),
		correlation: int32(binary.BigEndian.Uint32(p[8:])),
	}
	if r.api = f.server.api(key); r.api == nil {
		return 0, nil, fmt.Errorf("%w: key %d, version %d", errUnknownAPI, key, r.version)
	}
	if !r.api.serves(r.version) && r.api.key != kmsg.ApiVersions {
		return 0, nil, fmt.Errorf("%w: %s, version %d", errUnknownAPI, r.api.name, r.version)
	}
	_, err = f.in.Discard(sizeBytes)
	return int(length), r, gone(err)
}

// header parses a frame's header.
func (f *frameReader) header(r *request) error {
	r.arrived = time.Now()
	f.server.metrics.received.Add(float64(r.size + sizeBytes))
	in := kbin.Reader{Src: r.frame.b[prefixBytes-sizeBytes:]}
	if n := in.Int16(); n >= 0 {
		r.clientID = in.Span(int(n))
	}
	// A version of ApiVersions that is not known is not parsed any further.
	if r.flexible() && r.api.serves(r.version) {
		skipTags(&in)
	}
	r.body = in.Src
	if !in.Ok() {
		return fmt.Errorf("%w: header of %s", errMalformed, r.api.name)
	}
	return nil
}

// skipTags passes over tagged fields (KIP-482).
func skipTags(in *kbin.Reader) {
	for n := in.Uvarint(); n > 0 && in.Ok(); n-- {
		in.Uvarint()
		in.Span(int(in.Uvarint()))
	}
}

func isHTTP(p string) bool {
	switch p {
	case "GET ", "POST", "PUT ", "HEAD", "DELE", "OPTI", "PATC", "CONN", "TRAC", "PRI ":
		return true
	}
	return false
}

func timedOut(err error) bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timeout.Timeout()
}

func gone(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errGone, err)
}

func slowOrGone(err error) error {
	if timedOut(err) {
		return errSlowFrame
	}
	return gone(err)
}

// Frames are read into buffers of powers of two that are used again.
const (
	smallestClass = 10 // 1 KiB
	largestClass  = 24 // 16 MiB; longer frames are left to the collector
)

var classes [largestClass + 1]sync.Pool

type buffer struct {
	b     []byte
	class int // 0: of no class
}

func newBuffer(n int) *buffer {
	class := max(bits.Len(uint(n-1)), smallestClass)
	if class > largestClass {
		return &buffer{b: make([]byte, n)}
	}
	if b, ok := classes[class].Get().(*buffer); ok {
		b.b = b.b[:n]
		return b
	}
	return &buffer{b: make([]byte, n, 1<<class), class: class}
}

func (b *buffer) free() {
	if b.class != 0 {
		classes[b.class].Put(b)
	}
}
