package kafka

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// claims are lengths and counts that no frame can hold, in each encoding: of
// strings, of lists and bytes, and of both in flexible versions.
var claims = [][]byte{
	{0x7f, 0xff},
	{0x7f, 0xff, 0xff, 0xff},
	{0x10, 0x00, 0x00, 0x00},
	binary.AppendUvarint(nil, 1<<31),
	binary.AppendUvarint(nil, 1<<28+1),
	binary.AppendUvarint(nil, 1<<63),
}

// TestClaims: a small request that says, at any place whatever, that much
// follows, makes the server allocate little. So no length and no count sizes an
// allocation before it is held against the bytes that are there.
func TestClaims(t *testing.T) {
	f := start(t)
	c := newConn(t.Context(), f.server, &wire{}, 1)
	decodeAll := func(a *api, version int16, bodies [][]byte) float64 {
		return allocated(func() {
			for _, body := range bodies {
				r := &request{server: f.server, api: a, version: version, body: body, size: len(body), frame: newBuffer(len(body))}
				if r.held = int64(r.size) * a.weight; !f.server.memory.TryAcquire(r.held) {
					t.Fatal("there is no memory")
				}
				_, _ = a.start(c, r)
				r.release()
			}
		})
	}
	requests := 0
	wellFormed(t, f.server, f.create("t", 2), func(a *api, q kmsg.Request) {
		body := q.AppendTo(nil)
		var bodies [][]byte
		for at := range body {
			for _, claim := range claims {
				bodies = append(bodies, append(append(body[:at:at], claim...), body[min(at+len(claim), len(body)):]...))
				bodies = append(bodies, append(append(body[:at:at], claim...), body[at+1:]...))
			}
		}
		requests += len(bodies)
		const each = 64 << 10 // a few structs, and a fetch's lists
		if took := decodeAll(a, q.GetVersion(), bodies); took > float64(len(bodies)*each) {
			for i, b := range bodies {
				if took := decodeAll(a, q.GetVersion(), bodies[i:i+1]); took > 1<<20 {
					t.Fatalf("%s v%d: %.0f bytes were allocated for the %d of %x", a.name, q.GetVersion(), took, len(b), b)
				}
			}
			t.Errorf("%s v%d: %.0f bytes were allocated for %d requests", a.name, q.GetVersion(), took, len(bodies))
		}
	})
	t.Logf("%d requests", requests)
}

// TestRandomFrames sends what was a request of every API and version before
// bytes of it were changed, lost or put in. Each is answered as its header asks,
// or its connection is closed; and nothing is left of it.
func TestRandomFrames(t *testing.T) {
	const rounds = 20
	f := start(t)
	random := rand.New(rand.NewPCG(5, 8))
	var frames [][]byte
	wellFormed(t, f.server, f.create("t", 2), func(a *api, q kmsg.Request) {
		for range rounds {
			frames = append(frames, mutate(random, frameOf(int16(a.key), q.GetVersion(), random.Int32(), q.AppendTo(nil))))
		}
	})
	random.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
	answered, closed, left := 0, 0, 0
	var c *client
	for _, frame := range frames {
		if c == nil {
			c = f.dial()
		}
		if _, err := c.conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		switch err := c.answerTo(frame); {
		case err == nil:
			answered++
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			left++
		default:
			closed++
		}
		c.conn.Close()
		c = nil
	}
	if c != nil {
		c.conn.Close()
	}
	t.Logf("%d frames: %d answered, %d closed, %d waited for others", len(frames), answered, closed, left)
	if answered < len(frames)/20 || closed < len(frames)/20 {
		t.Error("the frames are of one kind")
	}
	ask[*kmsg.ApiVersionsResponse](f.dial(), 3, named("tests", "1"))
	waitFor(t, func() bool { return metric(f.server.metrics.connections) <= 1 && metric(f.server.metrics.held) == 0 })
}

// answerTo reads the answer to a frame and holds it against its header. The
// error is how the connection ended, or that the answer waits for somebody.
func (c *client) answerTo(frame []byte) error {
	c.t.Helper()
	key, version := int16(binary.BigEndian.Uint16(frame[4:])), int16(binary.BigEndian.Uint16(frame[6:]))
	patience := 20 * time.Second
	switch kmsg.Key(key) {
	case kmsg.Produce, kmsg.Fetch, kmsg.JoinGroup, kmsg.SyncGroup: // or there is none
		patience = 5 * time.Millisecond
	}
	if int(binary.BigEndian.Uint32(frame)) != len(frame)-sizeBytes {
		_ = c.conn.(*net.TCPConn).CloseWrite() // the server waits for the rest
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_ = c.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadFull(c.conn, b); err != nil {
		c.t.Fatalf("an answer is cut short: %v", err)
	}
	q := kmsg.RequestForKey(key)
	if q == nil {
		c.t.Fatalf("an answer to key %d", key)
	}
	if q.SetVersion(version); kmsg.Key(key) == kmsg.ApiVersions && (version < 0 || version > 5) {
		q.SetVersion(0)
	}
	parse(c.t, q, b, int32(binary.BigEndian.Uint32(frame[8:])))
	return nil
}

// mutate changes a frame: mostly behind its size, which mostly stays right.
func mutate(random *rand.Rand, frame []byte) []byte {
	b := append([]byte(nil), frame...)
	for range 1 + random.IntN(3) {
		at := prefixBytes + random.IntN(len(b)-prefixBytes)
		switch random.IntN(8) {
		case 0:
			b[at] ^= 1 << random.IntN(8)
		case 1:
			b[at] = byte(random.Uint32())
		case 2:
			b = append(b[:at:at], append(claims[random.IntN(len(claims))], b[at:]...)...)
		case 3:
			copy(b[at:], claims[random.IntN(len(claims))])
		case 4:
			b = b[:at+1]
		case 5:
			b = append(b[:at:at], b[at+1:]...)
		case 6:
			b[7] = byte(random.IntN(20)) // the version
		case 7:
			b = append(b, byte(random.Uint32()))
		}
		if len(b) <= prefixBytes {
			b = append(b, 0, 0)
		}
	}
	size := uint32(len(b) - sizeBytes)
	if random.IntN(20) == 0 {
		size = random.Uint32() >> random.IntN(32)
	}
	binary.BigEndian.PutUint32(b, size)
	return b
}

// TestWrongPortIsSaid: somebody who speaks TLS or HTTP here hears of it in the
// log, at the level that is shown, and not once for each try.
func TestWrongPortIsSaid(t *testing.T) {
	var lines logLines
	f := start(t, func(_ *fixture, o *Options) { o.Logger = lines.logger() })
	for _, hello := range []string{"\x16\x03\x01\x02\x00\x01", "GET / HTTP/1.1\r\n\r\n"} {
		for range 3 {
			c := f.dial()
			if _, err := c.conn.Write([]byte(hello)); err != nil {
				t.Fatal(err)
			}
			c.wantClosed()
		}
	}
	waitFor(t, func() bool { return f.closedFor("tls") == 3 && f.closedFor("http") == 3 })
	f.close()
	for _, want := range []string{"TLS on a plaintext port", "HTTP on a Kafka port"} {
		if n := strings.Count(lines.String(), want); n != 1 {
			t.Errorf("%d lines say %q, want one: %s", n, want, lines.String())
		}
	}
}

// logLines are what is logged at the level that is shown, warnings and worse.
type logLines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *logLines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// scarce is a listener of a process that has no file descriptor left, for a while.
type scarce struct {
	*pipes
	failures int
}

func (s *scarce) Accept() (net.Conn, error) {
	if s.failures > 0 {
		s.failures--
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return s.pipes.Accept()
}

// TestNoDescriptorLeft: the server goes on when there are some again.
func TestNoDescriptorLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, begin := newPipes(), time.Now()
		startOn(t, &scarce{p, 50})
		ask[*kmsg.ApiVersionsResponse](p.dial(t), 3, named("tests", "1"))
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("served after %v, want 5s", took)
		}
	})
}

// TestRecompressionIsCounted: a small request whose batches become large where
// they are compressed anew does not cost more than there is memory for.
func TestRecompressionIsCounted(t *testing.T) {
	const partitions = 40
	f := start(t, limits(func(l *Limits) { l.FrameBytes, l.MemoryBytes = 10<<20, 10<<20 }))
	topic := f.create("t", partitions, "compression.type", "uncompressed")
	bombs := make([][]byte, partitions)
	for i := range bombs {
		bombs[i] = oneBatch(t, batch.Zstd, strings.Repeat("x", 1_000_000))
	}
	resp := ask[*kmsg.ProduceResponse](f.dial(), 9, produce(topic, -1, bombs...))
	taken, refused := 0, 0
	for _, p := range resp.Topics[0].Partitions {
		switch errorName(p.ErrorCode) {
		case "":
			taken++
		case "KAFKA_STORAGE_ERROR":
			refused++
		default:
			t.Errorf("partition %d: %s", p.Partition, errorName(p.ErrorCode))
		}
	}
	if taken != 10 || refused != partitions-10 {
		t.Errorf("%d batches of a megabyte were taken into 10 MiB, and %d refused", taken, refused)
	}
	waitFor(t, func() bool { return metric(f.server.metrics.held) == 0 })
}

// TestSlowReaderIsWanted: who does not read an answer is given up at once where
// others wait for its memory, and who reads is not.
func TestSlowReaderIsWanted(t *testing.T) {
	inBubble(t, func(f *fixture, _ *Options) { f.log.wanted = func() bool { return true } }, func(t *testing.T, f *fixture, p *pipes) {
		topic := f.create("t", 1)
		deaf, slow := p.dial(t), p.dial(t)
		wantNoError(t, ask[*kmsg.ProduceResponse](slow, 9, produce(topic, -1, oneBatch(t, batch.None, strings.Repeat("x", 1_000_000)))))
		_ = slow.conn.SetReadDeadline(time.Time{})
		q := fetchOf(topic.ID, "t", 0)
		q.SetVersion(13)
		deaf.send(q)
		slow.send(q)
		begin := time.Now()
		for read := 0; read < 1_000_000; {
			n, err := slow.conn.Read(make([]byte, impatientBytes/4))
			if err != nil {
				t.Fatalf("after %d bytes and %v: %v", read, time.Since(begin), err)
			}
			read += n
			time.Sleep(impatientTime / 8)
		}
		synctest.Wait()
		if f.closedFor("slow_reader") != 1 || time.Since(begin) > 20*time.Second {
			t.Errorf("%v are closed after %v", f.closedFor("slow_reader"), time.Since(begin))
		}
	})
}
