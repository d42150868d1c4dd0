package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

// These run in virtual time, over pipes. A goroutine that were left at the end
// would fail them.

// two are a transport, and one that it dials; dial may stand between.
func two(t *testing.T, dial func(context.Context, *memory) (net.Conn, error), change ...func(*Options, *heard)) (a, b *node) {
	wire := newMemory()
	b = start(t, 2, append(change, func(o *Options, _ *heard) { o.Listener = wire })...)
	a = start(t, 1, append(change, func(o *Options, h *heard) {
		h.received = nil
		o.Listener = newMemory()
		o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, wire) }
	})...)
	a.Reach([]peer.Peer{b.peer()})
	a.awaitCall(t, "up 2")
	return a, b
}

func direct(ctx context.Context, m *memory) (net.Conn, error) { return m.dial(ctx) }

func TestIdleConnectionsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, direct)
		time.Sleep(time.Hour)
		if calls := a.called(); len(calls) != 1 {
			t.Errorf("calls: %q", calls)
		}
		// two lanes, a frame and a sign every half second
		if n := value(a.metrics.sent[peer.Bulk]); n < 7000*headerBytes || n > 7300*headerBytes {
			t.Errorf("%v bytes were sent in an hour", n)
		}
		if n := value(b.metrics.sent[peer.Bulk]); n < 7000 || n > 7500 {
			t.Errorf("%v bytes were sent back in an hour", n)
		}
	})
}

func TestFrozenPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frozen := make(chan struct{})
		a, b := two(t, func(ctx context.Context, m *memory) (net.Conn, error) {
			select {
			case <-frozen:
				<-ctx.Done()
				return nil, ctx.Err()
			default:
			}
			there, err := m.dial(ctx)
			if err != nil {
				return nil, err
			}
			ours, here := net.Pipe()
			go copyUntil(frozen, there, here)
			go copyUntil(frozen, here, there)
			return ours, nil
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		begun := time.Now()
		close(frozen)
		a.awaitCall(t, "down 2")
		if took := time.Since(begun); took > a.Silence || took < a.Silence-a.keepAlive() {
			t.Errorf("Down after %v, and not %v", took, a.Silence)
		}
		time.Sleep(a.keepAlive())
		synctest.Wait()
		if n := value(b.metrics.accepted); n != 0 {
			t.Errorf("%v connections of the frozen are still open", n)
		}
		time.Sleep(time.Minute)
		if calls := a.called(); len(calls) != 2 {
			t.Errorf("calls: %q: a peer that does not answer has not refused", calls)
		}
	})
}

func copyUntil(frozen <-chan struct{}, to, from net.Conn) {
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		select {
		case <-frozen:
			return
		default:
		}
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			from.Close()
			return
		}
	}
}

func TestPeerThatStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound, size = 1 << 20, 16 << 10
		release := make(chan struct{})
		a, b := two(t, direct, func(o *Options, h *heard) {
			o.QueueBytes = bound
			h.received = func(_ siltstone.Incarnation, lane peer.Lane, _ []byte) {
				if lane == peer.Bulk {
					<-release
				}
			}
		})
		sent := uint32(0)
		for a.Send(2, peer.Bulk, binary.BigEndian.AppendUint32(nil, sent), make([]byte, size-4)) {
			sent++
			synctest.Wait()
		}
		if queued := value(a.metrics.queued[peer.Bulk]); queued > bound || queued < bound-size-headerBytes {
			t.Errorf("%v bytes wait, of %d", queued, bound)
		}
		if n := value(a.metrics.full[peer.Bulk]); n != 1 {
			t.Errorf("counted %v that were too much", n)
		}
		const urgent = 100
		for range urgent {
			if !a.Send(2, peer.Control, []byte("x")) {
				t.Error("control waits behind bulk")
			}
		}
		b.await(t, "control", func() bool { return len(b.got[source{1, peer.Control}]) == urgent })
		if got := b.messages(1, peer.Bulk); got != nil {
			t.Errorf("%d messages came meanwhile", len(got))
		}
		close(release)
		b.await(t, "bulk", func() bool { return len(b.got[source{1, peer.Bulk}]) == int(sent) })
		for i, m := range b.messages(1, peer.Bulk) {
			if got := binary.BigEndian.Uint32(m); got != uint32(i) {
				t.Fatalf("message %d came as number %d", got, i)
			}
		}
		if calls := a.called(); len(calls) != 1 {
			t.Errorf("calls: %q", calls)
		}
	})
}

// A handler that takes its time is no dead peer; one that is stuck holds up
// the connection that takes the place of its own.
func TestHandlerThatTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, release := make(chan struct{}), make(chan struct{})
		var messages int
		a, b := two(t, direct, func(_ *Options, h *heard) {
			h.received = func(siltstone.Incarnation, peer.Lane, []byte) {
				if messages++; messages == 1 {
					time.Sleep(writeTimeout - time.Millisecond) // longer than Silence
					return
				}
				if messages == 2 {
					close(stuck)
					<-release
				}
			}
		})
		a.Send(2, peer.Bulk, []byte("one"))
		b.await(t, "one", func() bool { return len(b.got[source{1, peer.Bulk}]) == 1 })
		a.Send(2, peer.Bulk, []byte("two"))
		<-stuck
		if calls := a.called(); len(calls) != 1 {
			t.Fatalf("calls: %q", calls)
		}
		time.Sleep(time.Minute) // pipes hold nothing, so the next keep-alive is stuck
		if calls := a.called(); !slices.Equal(calls, []string{"up 2", "down 2"}) {
			t.Errorf("calls: %q", calls)
		}
		close(release)
		a.await(t, "up again", func() bool { return slices.Equal(a.calls, []string{"up 2", "down 2", "up 2"}) })
		if got := b.messages(1, peer.Bulk); len(got) != 2 {
			t.Errorf("%d messages had come when the peer was up again", len(got))
		}
		a.Send(2, peer.Bulk, []byte("three"))
		b.await(t, "three", func() bool { return len(b.got[source{1, peer.Bulk}]) == 3 })
	})
}

func TestReachChangesWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := newMemory()
		start(t, 2, func(o *Options, _ *heard) { o.Listener = wire })
		dialled := make(chan string, 100)
		a := start(t, 1, func(o *Options, _ *heard) {
			o.Listener = newMemory()
			o.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
				dialled <- address
				if address == "right" {
					return wire.dial(ctx)
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		begun := time.Now()
		a.Reach([]peer.Peer{{Incarnation: 2, Address: "wrong"}, {Incarnation: 3, Address: "nowhere"}})
		<-dialled
		a.Reach([]peer.Peer{{Incarnation: 2, Address: "right"}})
		a.awaitCall(t, "up 2")
		if took := time.Since(begun); took >= dialTimeout {
			t.Errorf("waited %v for an address that nobody wants", took)
		}
		a.Reach(nil)
		if a.Send(2, peer.Bulk, []byte("x")) {
			t.Error("sent to a peer that was given up")
		}
		a.Reach([]peer.Peer{{Incarnation: 2, Address: "right"}})
		a.await(t, "up again", func() bool { return len(a.calls) == 2 })
		a.Reach(nil)
		synctest.Wait()
		if calls := a.called(); !slices.Equal(calls, []string{"up 2", "up 2"}) {
			t.Errorf("calls: %q", calls)
		}
		if len(a.links) != 0 {
			t.Errorf("%d links are left", len(a.links))
		}
	})
}

// Calls about a peer come one at a time, also when it is given up and wanted
// again while one is under way.
func TestCallsComeOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := newMemory()
		b := start(t, 2, func(o *Options, _ *heard) { o.Listener = wire })
		ups, release := make(chan struct{}, 10), make(chan struct{})
		a := start(t, 1, func(o *Options, h *heard) {
			o.Listener = newMemory()
			o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return wire.dial(ctx) }
			h.up = func() {
				ups <- struct{}{}
				<-release
			}
		})
		a.Reach([]peer.Peer{b.peer()})
		<-ups
		a.Reach(nil)
		a.Reach([]peer.Peer{b.peer()})
		synctest.Wait()
		if len(ups) != 0 {
			t.Error("Up was called while Up was under way")
		}
		close(release)
		<-ups
		a.await(t, "up again", func() bool { return slices.Equal(a.calls, []string{"up 2", "up 2"}) })
	})
}

// Reach before Run, and given up before it.
func TestReachBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := newMemory()
		b := start(t, 2, func(o *Options, _ *heard) { o.Listener = wire })
		tr, err := New(Options{Self: 1, Cluster: testCluster, Secret: testSecret, Listener: newMemory(), Log: b.Log,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return wire.dial(ctx) }})
		if err != nil {
			t.Fatal(err)
		}
		tr.Reach([]peer.Peer{b.peer()})
		tr.Reach(nil)
		tr.Reach([]peer.Peer{b.peer()})
		ctx, cancel := context.WithCancel(t.Context())
		h := newHeard()
		ended := make(chan error)
		go func() { ended <- tr.Run(ctx, h) }()
		h.awaitCall(t, "up 2")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestHalfHandshakesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := newMemory()
		b := start(t, 2, func(o *Options, _ *heard) { o.Listener = wire })
		open := func() net.Conn {
			c, err := wire.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c
		}
		var half []net.Conn
		for range maxUnproven {
			c := open()
			if _, err := io.WriteString(c, magic); err != nil {
				t.Fatal(err)
			}
			half = append(half, c)
		}
		begun := time.Now()
		if _, err := open().Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(begun) != 0 {
			t.Errorf("one more was not closed at once: %v after %v", err, time.Since(begun))
		}
		for _, c := range half {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Error(err)
			}
		}
		if took := time.Since(begun); took != handshakeTimeout {
			t.Errorf("closed after %v", took)
		}
		synctest.Wait()
		if err := b.id2(1).dial(open(), 2, peer.Bulk); err != nil {
			t.Errorf("nobody is taken any more: %v", err)
		}
		if n := b.log.count("reason=crowded"); n != 1 {
			t.Errorf("said %d times that there are too many", n)
		}
	})
}

// id2 is the identity of another agent of the cluster.
func (n *node) id2(self siltstone.Incarnation) identity {
	return identity{self: self, cluster: n.Cluster, secret: n.Secret}
}
