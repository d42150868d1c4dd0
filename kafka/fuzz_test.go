package kafka

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// wire is a connection that reads what was recorded, and keeps nothing.
type wire struct {
	net.Conn
	in *bytes.Reader
}

func (w *wire) Read(b []byte) (int, error)       { return w.in.Read(b) }
func (w *wire) Write(b []byte) (int, error)      { return len(b), nil }
func (w *wire) Close() error                     { return nil }
func (w *wire) RemoteAddr() net.Addr             { return &net.UnixAddr{Name: "wire"} }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// FuzzConnection: whatever bytes arrive, the connection ends, and gives back
// all memory that it took.
func FuzzConnection(f *testing.F) {
	s := start(f, limits(func(l *Limits) { l.FrameBytes, l.MemoryBytes = 1<<20, 16<<20 }))
	topic := s.create("t", 2)
	for _, a := range s.server.apis {
		if a == nil {
			continue
		}
		for _, version := range []int16{a.min, a.max} {
			q := a.key.Request()
			q.SetVersion(version)
			f.Add(formatter.AppendRequest(nil, q, 1))
			lists(func() kmsg.Request {
				q := a.key.Request()
				q.SetVersion(version)
				return q
			}, 1, func(_ string, q kmsg.Request) { f.Add(formatter.AppendRequest(nil, q, 1)) })
		}
	}
	good := produce(topic, -1, oneBatch(f, batch.LZ4, "a", "b"))
	good.SetVersion(9)
	fetch := fetchOf(topic.ID, "t", 0, 1)
	fetch.SetVersion(13)
	f.Add(formatter.AppendRequest(formatter.AppendRequest(nil, good, 1), fetch, 2))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0x16, 0x03, 0x01, 0, 5})
	f.Fuzz(func(t *testing.T, frames []byte) {
		if len(frames) > 1<<16 {
			t.Skip()
		}
		c := newConn(t.Context(), s.server, &wire{in: bytes.NewReader(frames)}, 1)
		// Fetches wait for nobody here: the client has gone.
		if err := c.serve(); err == nil {
			t.Error("a connection ended without a reason")
		}
		if held := metric(s.server.metrics.held); held != 0 {
			t.Errorf("%v bytes are still held", held)
		}
	})
}

// FuzzRequest: whatever a request's body is, and its version, it is answered in
// that version, or the connection is closed for a reason that has a name.
func FuzzRequest(f *testing.F) {
	s := start(f, limits(func(l *Limits) { l.FrameBytes, l.MemoryBytes = 1<<20, 16<<20 }))
	wellFormed(f, s.server, s.create("t", 2), func(a *api, q kmsg.Request) {
		f.Add(int16(a.key), q.GetVersion(), q.AppendTo(nil))
	})
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		if len(body) > 1<<16 {
			t.Skip()
		}
		answerOne(t, s.server, frameOf(key, version, 7, body))
		if held := metric(s.server.metrics.held); held != 0 {
			t.Errorf("%v bytes are still held", held)
		}
	})
}

// answerOne serves a frame, and holds the answer against its version. It gives
// up what waits for others.
func answerOne(t *testing.T, s *Server, frame []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	c := newConn(ctx, s, &wire{}, 1)
	frames := frameReader{server: s, in: bufio.NewReader(bytes.NewReader(frame)), deadline: c.setReadDeadline, active: c.active}
	r, err := frames.next(ctx)
	if err != nil {
		wantReason(t, err)
		return
	}
	defer r.release()
	a, err := r.api.start(c, r)
	if err != nil {
		wantReason(t, err)
		return
	}
	to := &sink{}
	out := outbox{server: s, conn: to}
	if err := a.respond(ctx, &out); err != nil {
		wantReason(t, err)
		out.reset()
		return
	}
	if err := out.flush(); err != nil {
		t.Fatal(err)
	}
	if p, ok := a.(*produceAnswer); ok && p.acks == 0 {
		if to.written.Len() > 0 {
			t.Errorf("an answer of %d bytes, and none was asked for", to.written.Len())
		}
		return
	}
	q := r.api.key.Request()
	q.SetVersion(r.version)
	if !r.api.serves(r.version) {
		q.SetVersion(0) // of ApiVersions, which then says what there is
	}
	b := to.written.Bytes()
	if len(b) < sizeBytes+4 || int(binary.BigEndian.Uint32(b)) != len(b)-sizeBytes {
		t.Fatalf("%s v%d: %d bytes are no answer", r.api.name, r.version, len(b))
	}
	parse(t, q, b[sizeBytes:], r.correlation)
}

// wantReason: a connection is closed for one of the reasons that there are.
func wantReason(t *testing.T, err error) {
	t.Helper()
	if label, _ := closeReason(err); label == "other" && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closed for %v, which has no name", err)
	}
}

// frameOf is a frame with a header of the right kind.
func frameOf(key, version int16, correlation int32, body []byte) []byte {
	q := kmsg.RequestForKey(key)
	b := binary.BigEndian.AppendUint16(make([]byte, sizeBytes), uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	b = append(b, 0xff, 0xff) // no client id
	if q != nil {
		if q.SetVersion(version); q.IsFlexible() {
			b = append(b, 0)
		}
	}
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-sizeBytes))
	return b
}
