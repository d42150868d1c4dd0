package kafka

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// pipes is a listener in memory, so that time is the bubble's.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newPipes() *pipes { return &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial(t testing.TB) *client {
	ours, theirs := net.Pipe()
	p.accepted <- theirs
	t.Cleanup(func() { ours.Close() })
	return &client{t: t, conn: ours}
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, change func(*fixture, *Options), test func(t *testing.T, f *fixture, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		f := startOn(t, p, change)
		test(t, f, p)
	})
}

func asUsual(*fixture, *Options) {}

// holding makes the log decide nothing until hold is closed.
func holding(f *fixture, _ *Options) { f.log.hold = make(chan struct{}) }

// closedAfter waits for the server to close, and says how long that took.
func closedAfter(c *client) time.Duration {
	begin := time.Now()
	b := make([]byte, 1)
	for {
		if _, err := c.conn.Read(b); err != nil {
			return time.Since(begin)
		}
	}
}

func (f *fixture) closedFor(reason string) float64 {
	return metric(f.server.metrics.closed.WithLabelValues(reason))
}

func TestSilentConnection(t *testing.T) {
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		if got := closedAfter(p.dial(t)); got != 30*time.Second {
			t.Errorf("closed after %v, want 30s", got)
		}
		c := p.dial(t)
		ask[*kmsg.ApiVersionsResponse](c, 0, kmsg.NewPtrApiVersionsRequest())
		_ = c.conn.SetReadDeadline(time.Time{})
		if got := closedAfter(c); got != 10*time.Minute {
			t.Errorf("closed after %v idle, want 10m", got)
		}
		synctest.Wait()
		if f.closedFor("idle") != 2 {
			t.Errorf("%v connections closed as idle, want 2", f.closedFor("idle"))
		}
	})
}

// TestBusyIsNotIdle: a connection that waits for an answer is not closed,
// however long that takes.
func TestBusyIsNotIdle(t *testing.T) {
	inBubble(t, func(f *fixture, o *Options) { holding(f, o); o.Limits.Idle = time.Minute }, func(t *testing.T, f *fixture, p *pipes) {
		topic := f.create("t", 1)
		c := p.dial(t)
		q := produce(topic, -1, oneBatch(t, batch.None, "v"))
		q.TimeoutMillis = 600_000
		q.SetVersion(9)
		c.send(q)
		time.Sleep(5 * time.Minute)
		close(f.log.hold)
		wantNoError(t, c.receive(q, c.last).(*kmsg.ProduceResponse))
		ask[*kmsg.ApiVersionsResponse](c, 0, kmsg.NewPtrApiVersionsRequest())
	})
}

// TestByteByByte: a request that trickles in is given up.
func TestByteByByte(t *testing.T) {
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		c := p.dial(t)
		var sending sync.WaitGroup
		defer sending.Wait()
		sending.Go(func() {
			for _, b := range formatter.AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 1) {
				if _, err := c.conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(3 * time.Second)
			}
		})
		if got := closedAfter(c); got > time.Minute {
			t.Errorf("closed after %v", got)
		}
		synctest.Wait()
		if f.closedFor("slow_request") != 1 {
			t.Error("not closed for its slowness")
		}
	})
}

// TestNeverReads: a client that sends and does not read its answers is bounded
// in what it can have in flight, and given up.
func TestNeverReads(t *testing.T) {
	inBubble(t, limits(func(l *Limits) { l.InFlight = 4 }), func(t *testing.T, f *fixture, p *pipes) {
		c := p.dial(t)
		q := formatter.AppendRequest(nil, kmsg.NewPtrApiVersionsRequest(), 1)
		begin, sent := time.Now(), 0
		for ; sent < 10_000; sent++ {
			if _, err := c.conn.Write(q); err != nil {
				break
			}
		}
		if took := time.Since(begin); took != 30*time.Second {
			t.Errorf("closed after %v, want 30s", took)
		}
		// Four in the queue, one being answered, one waiting for the queue, and
		// what the read buffer holds.
		if limit := 6 + readBytes/len(q) + 1; sent > limit {
			t.Errorf("%d requests were taken, want at most %d", sent, limit)
		}
		synctest.Wait()
		if f.closedFor("slow_reader") != 1 {
			t.Error("not closed as a slow reader")
		}
		if held := metric(f.server.metrics.held); held != 0 {
			t.Errorf("%v bytes are still held", held)
		}
	})
}

// TestPipelined: requests are handed to the log without waiting for answers,
// and answered in order.
func TestPipelined(t *testing.T) {
	f := start(t, holding)
	topic := f.create("t", 1)
	c := f.dial()
	q := produce(topic, -1, oneBatch(t, batch.None, "v"))
	q.SetVersion(9)
	const n = 50
	for range n {
		c.send(q)
	}
	meta := kmsg.NewPtrMetadataRequest()
	meta.SetVersion(9)
	c.send(meta)
	waitFor(t, func() bool { return f.log.appended() == n })
	close(f.log.hold)
	seen := map[int64]bool{}
	for i := range int32(n) {
		resp := c.receive(q, i+1).(*kmsg.ProduceResponse)
		wantNoError(t, resp)
		seen[resp.Topics[0].Partitions[0].BaseOffset] = true
	}
	if len(seen) != n {
		t.Errorf("%d base offsets, want %d", len(seen), n)
	}
	c.receive(meta, n+1)
}

// TestWrongProtocol: what does not speak Kafka is closed at once and harms
// nobody else.
func TestWrongProtocol(t *testing.T) {
	f := start(t)
	other := f.dial()
	length := func(n uint32, rest ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, n), rest...) }
	tests := []struct {
		name, reason string
		bytes        []byte
	}{
		{"TLS", "tls", []byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01}},
		{"HTTP", "http", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")},
		{"HTTP POST", "http", []byte("POST /topics/a HTTP/1.1\r\n")},
		{"negative length", "malformed", length(0xffffffff)},
		{"no header", "malformed", length(4, 0, 18, 0, 0)},
		{"too large", "too_large", length(100<<20 + 1)},
		{"too large for its API", "too_large", length(50<<20, 0, 3, 0, 9, 0, 0, 0, 1)},
		{"unknown key", "unknown_api", length(10, 0x03, 0xe7, 0, 0, 0, 0, 0, 1, 0xff, 0xff)},
		{"negative key", "unknown_api", length(10, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff)},
		{"unlisted key", "unknown_api", length(10, 0, 4, 0, 0, 0, 0, 0, 1, 0xff, 0xff)},
		{"unlisted version", "unknown_api", length(10, 0, 3, 0, 14, 0, 0, 0, 1, 0xff, 0xff)},
		{"version below", "unknown_api", length(10, 0, 1, 0, 3, 0, 0, 0, 1, 0xff, 0xff)},
		{"client id past the end", "malformed", length(10, 0, 3, 0, 9, 0, 0, 0, 1, 0, 9)},
		{"body cut short", "malformed", length(11, 0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 0)},
		{"count past the end", "malformed", length(15, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := f.closedFor(tt.reason)
			c := f.dial()
			c.t = t
			if _, err := c.conn.Write(tt.bytes); err != nil {
				t.Fatal(err)
			}
			c.wantClosed()
			waitFor(t, func() bool { return f.closedFor(tt.reason) == before+1 })
		})
	}
	ask[*kmsg.ApiVersionsResponse](other, 3, named("tests", "1"))
}

// TestMalformedAfterGood: what came before a malformed request is answered.
func TestMalformedAfterGood(t *testing.T) {
	f := start(t)
	c := f.dial()
	q := kmsg.NewPtrApiVersionsRequest()
	both := formatter.AppendRequest(nil, q, 1)
	both = append(both, 0, 0, 0, 10, 0x03, 0xe7, 0, 0, 0, 0, 0, 2, 0xff, 0xff)
	if _, err := c.conn.Write(both); err != nil {
		t.Fatal(err)
	}
	c.receive(q, 1)
	c.wantClosed()
}

func TestConnectionCap(t *testing.T) {
	f := start(t, limits(func(l *Limits) { l.Connections = 2 }))
	a, b := f.dial(), f.dial()
	ask[*kmsg.ApiVersionsResponse](a, 0, kmsg.NewPtrApiVersionsRequest())
	ask[*kmsg.ApiVersionsResponse](b, 0, kmsg.NewPtrApiVersionsRequest())
	f.dial().wantClosed()
	if got := metric(f.server.metrics.refused); got != 1 {
		t.Errorf("%v refused, want 1", got)
	}
	a.conn.Close()
	waitFor(t, func() bool { return metric(f.server.metrics.connections) == 1 })
	ask[*kmsg.ApiVersionsResponse](f.dial(), 0, kmsg.NewPtrApiVersionsRequest())
}

// TestStop: requests in flight are answered when the server stops, and those
// that the log never decides do not keep it.
func TestStop(t *testing.T) {
	inBubble(t, holding, func(t *testing.T, f *fixture, p *pipes) {
		topic := f.create("t", 1)
		c, waiting := p.dial(t), p.dial(t)
		q := produce(topic, -1, oneBatch(t, batch.None, "v"))
		q.SetVersion(9)
		c.send(q)
		poll := kmsg.NewPtrFetchRequest()
		poll.MaxWaitMillis, poll.MinBytes = 60_000, 1
		poll.Topics = fetchTopics(topic.Name, [16]byte{}, 0)
		poll.SetVersion(4)
		waiting.send(poll)
		synctest.Wait()
		f.stop()
		f.stop = nil
		synctest.Wait()
		waiting.wantClosed() // long before its time
		close(f.log.hold)
		wantNoError(t, c.receive(q, 1).(*kmsg.ProduceResponse))
		c.wantClosed()
		if err := <-f.served; err != nil {
			t.Error(err)
		}
	})
	inBubble(t, holding, func(t *testing.T, f *fixture, p *pipes) {
		topic := f.create("t", 1)
		c := p.dial(t)
		q := produce(topic, -1, oneBatch(t, batch.None, "v"))
		q.SetVersion(9)
		c.send(q)
		synctest.Wait()
		begin := time.Now()
		f.close()
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("stopped after %v, want 5s", took)
		}
		c.wantClosed()
		close(f.log.hold) // for the bubble's sake
	})
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		idle := p.dial(t)
		ask[*kmsg.ApiVersionsResponse](idle, 0, kmsg.NewPtrApiVersionsRequest())
		begin := time.Now()
		f.close()
		if took := time.Since(begin); took != 0 {
			t.Errorf("stopped after %v with nothing to do", took)
		}
		idle.wantClosed()
	})
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		deaf := p.dial(t)
		deaf.send(kmsg.NewPtrApiVersionsRequest())
		synctest.Wait()
		begin := time.Now()
		f.close()
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("stopped after %v with an answer that nobody reads, want 5s", took)
		}
	})
}

// TestAcceptFails: Serve ends when the listener does, and says why.
func TestAcceptFails(t *testing.T) {
	f := start(t)
	f.listener.Close()
	if err := <-f.served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	f.stop()
	f.stop = nil
}

// waitFor waits for a condition that another goroutine brings about.
func waitFor(t testing.TB, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); {
		if time.Now().After(end) {
			t.Fatal("it did not come about")
		}
		time.Sleep(time.Millisecond)
	}
}

func wantNoError(t testing.TB, resp *kmsg.ProduceResponse) {
	t.Helper()
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 {
				t.Errorf("partition %d: %s", p.Partition, errorName(p.ErrorCode))
			}
		}
	}
}
