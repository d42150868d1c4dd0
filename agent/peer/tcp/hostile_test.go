package tcp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

func TestAgentsThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(*Options, *heard)
	}{
		{"secret", func(o *Options, _ *heard) { o.Secret = []byte("0123456789abcdeF") }},
		{"cluster", func(o *Options, _ *heard) { o.Cluster[0]++ }},
	} {
		t.Run(c.reason, func(t *testing.T) {
			a, b := start(t, 1), start(t, 2, c.change)
			a.Reach([]peer.Peer{b.peer()})
			for value(a.metrics.failures.WithLabelValues(c.reason)) < 3 {
				runtime.Gosched()
			}
			if calls := a.called(); calls != nil {
				t.Errorf("calls: %q", calls)
			}
			if n := a.log.count("no connection"); n != 1 {
				t.Errorf("said %d times that it cannot connect", n)
			}
		})
	}
}

// dialled is a connection to a node, before its handshake.
func dialled(t *testing.T, n *node) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", n.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestHandshakeErrors(t *testing.T) {
	b := start(t, 2)
	good := b.id2(1)
	foreign, ignorant := good, good
	foreign.cluster[0]++
	ignorant.secret = []byte("another secret...")
	for what, c := range map[string]struct {
		id   identity
		to   siltstone.Incarnation
		want error
	}{
		"taken":       {good, 2, nil},
		"incarnation": {good, 3, errAnother},
		"cluster":     {foreign, 2, siltstone.ErrForeign},
		"secret":      {ignorant, 2, errSecret},
	} {
		if err := c.id.dial(dialled(t, b), c.to, peer.Control); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if refused(errSecret) || !refused(errAnother) {
		t.Error("what an unproven peer says counts, or what a proven one says does not")
	}
}

// edited changes what is written first.
type edited struct {
	net.Conn
	edit func([]byte)
}

func (e *edited) Write(b []byte) (int, error) {
	if e.edit != nil {
		b = bytes.Clone(b)
		e.edit(b)
		e.edit = nil
	}
	return e.Conn.Write(b)
}

func TestNoByteOfAHelloCanBeChanged(t *testing.T) {
	b := start(t, 2)
	for at := range helloBytes {
		c := &edited{dialled(t, b), func(hello []byte) { hello[at] ^= 1 }}
		if err := b.id2(1).dial(c, 2, peer.Control); err == nil {
			t.Errorf("a hello was taken whose byte %d was changed", at)
		}
	}
}

func TestAnotherVersionIsSaid(t *testing.T) {
	b := start(t, 2)
	c := &edited{dialled(t, b), func(hello []byte) { hello[9] = 2 }}
	_ = b.id2(1).dial(c, 2, peer.Control)
	for b.log.count("reason=version") != 1 {
		runtime.Gosched()
	}
	// What it has answered says which version it has.
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		_, _ = b.id2(2).accept(&edited{there, func(answer []byte) { answer[9] = 2 }})
		there.Close()
	}()
	if err := b.id2(1).dial(here, 2, peer.Control); !errors.Is(err, errVersion) {
		t.Error(err)
	}
}

// recorded keeps what was written.
type recorded struct {
	net.Conn
	written bytes.Buffer
}

func (r *recorded) Write(b []byte) (int, error) {
	r.written.Write(b)
	return r.Conn.Write(b)
}

func TestReplayedHandshake(t *testing.T) {
	b := start(t, 2)
	r := &recorded{Conn: dialled(t, b)}
	if err := b.id2(1).dial(r, 2, peer.Bulk); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write(frame([]byte("once"))); err != nil {
		t.Fatal(err)
	}
	b.await(t, "a message", func() bool { return len(b.got[source{1, peer.Bulk}]) == 1 })

	again := dialled(t, b)
	if _, err := again.Write(r.written.Bytes()); err != nil {
		t.Fatal(err)
	}
	heard, _ := io.ReadAll(again) // what remains unread may reset the connection
	if len(heard) > answerBytes {
		t.Errorf("%d bytes were answered", len(heard))
	}
	for value(b.metrics.failures.WithLabelValues("secret")) != 1 {
		runtime.Gosched()
	}
	if got := b.messages(1, peer.Bulk); len(got) != 1 {
		t.Errorf("%d messages", len(got))
	}
}

// An answer is no proof of who dials: it may not be turned round.
func TestReflectedProof(t *testing.T) {
	id := identity{self: 2, cluster: testCluster, secret: testSecret}
	said := []byte("said")
	if bytes.Equal(id.proof(acceptorLabel, said), id.proof(diallerLabel, said)) {
		t.Error("both ends prove alike")
	}
}

func TestGarbage(t *testing.T) {
	b := start(t, 2)
	c := dialled(t, b)
	if _, err := c.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 5)[:helloBytes]); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); len(answer) != 0 || err != nil {
		t.Errorf("answered with %d bytes, %v", len(answer), err)
	}
	for what, wrong := range map[string][]byte{
		"a length":   binary.BigEndian.AppendUint64(nil, (peer.MaxMessageBytes+1)<<32),
		"a checksum": append(frame([]byte("x"))[:headerBytes], 'y'),
	} {
		c := dialled(t, b)
		if err := b.id2(1).dial(c, 2, peer.Control); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(append(frame([]byte(what)), wrong...)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := b.messages(1, peer.Control); len(got) != 2 {
		t.Errorf("%d messages, of the 2 that stood before garbage", len(got))
	}
}

func TestLengthAllocatesLittle(t *testing.T) {
	claim := binary.BigEndian.AppendUint64(nil, peer.MaxMessageBytes<<32)
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, err := readFrame(bufio.NewReader(bytes.NewReader(append(claim, "few bytes"...)))); !errors.Is(err, io.ErrUnexpectedEOF) {
				b.Fatal(err)
			}
		}
	})
	if n := result.AllocedBytesPerOp(); n == 0 || n > 2*firstBytes {
		t.Errorf("%d bytes were allocated for a length", n)
	}
}

// The newest connection of a peer's lane ends the older, of which nothing comes
// after the newer was welcomed.
func TestNewerConnectionEndsTheOlder(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	b := start(t, 2, func(_ *Options, h *heard) {
		h.received = func(_ siltstone.Incarnation, _ peer.Lane, m []byte) {
			if string(m) == "old" {
				close(reached)
				<-release
			}
		}
	})
	old := dialled(t, b)
	if err := b.id2(1).dial(old, 2, peer.Bulk); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Write(frame([]byte("old"))); err != nil {
		t.Fatal(err)
	}
	<-reached
	welcomed := make(chan error, 1)
	newer := dialled(t, b)
	go func() { welcomed <- b.id2(1).dial(newer, 2, peer.Bulk) }()
	if _, err := io.Copy(io.Discard, old); err != nil && !errors.Is(err, net.ErrClosed) { // until it is ended
		var op *net.OpError
		if !errors.As(err, &op) {
			t.Error(err)
		}
	}
	select {
	case err := <-welcomed:
		t.Fatalf("welcomed while the older was served: %v", err)
	default:
	}
	close(release)
	if err := <-welcomed; err != nil {
		t.Fatal(err)
	}
	if got := b.messages(1, peer.Bulk); len(got) != 1 {
		t.Errorf("%d messages of the older had come when the newer was welcomed", len(got))
	}
	b.turns.mu.Lock()
	defer b.turns.mu.Unlock()
	if n := len(b.turns.of); n != 1 {
		t.Errorf("%d sources are remembered", n)
	}
}

// frame is a message as it is sent.
func frame(message []byte) []byte {
	f := [][]byte{make([]byte, headerBytes), message}
	putLength(f[0], len(message))
	if len(message) == 0 {
		f = f[:1]
	}
	seal(f)
	return bytes.Join(f, nil)
}
