package kafka

import (
	"bytes"
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
