package tcp

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

func TestMessagesInOrderEachOnce(t *testing.T) {
	const messages = 3000
	small := func(o *Options, _ *heard) { o.QueueBytes = 64 << 10 } // so that Send says no at times
	nodes := []*node{start(t, 1, small), start(t, 2, small), start(t, 3, small)}
	all := []peer.Peer{nodes[0].peer(), nodes[1].peer(), nodes[2].peer()}
	for _, n := range nodes {
		n.Reach(slices.Clone(all)) // itself among them
	}
	var sending sync.WaitGroup
	for _, n := range nodes {
		for _, to := range all {
			if to.Incarnation == n.Self {
				continue
			}
			n.awaitCall(t, "up "+string('0'+rune(to.Incarnation)))
			for lane := range peer.Lane(peer.Lanes) {
				sending.Go(func() {
					for i := range uint32(messages) {
						for !n.Send(to.Incarnation, lane, binary.BigEndian.AppendUint32(nil, i), bytes.Repeat([]byte{byte(i)}, int(i%777))) {
							runtime.Gosched()
						}
					}
				})
			}
		}
	}
	sending.Wait()
	for _, n := range nodes {
		for _, from := range all {
			for lane := range peer.Lane(peer.Lanes) {
				if from.Incarnation == n.Self {
					if got := n.messages(n.Self, lane); got != nil {
						t.Errorf("%v has %d messages of its own", n.Self, len(got))
					}
					continue
				}
				n.await(t, "messages", func() bool { return len(n.got[source{from.Incarnation, lane}]) >= messages })
				for i, m := range n.messages(from.Incarnation, lane) {
					if want := append(binary.BigEndian.AppendUint32(nil, uint32(i)), bytes.Repeat([]byte{byte(i)}, i%777)...); !bytes.Equal(m, want) {
						t.Fatalf("%v from %v, %v: message %d is %d bytes that begin with %x", n.Self, from.Incarnation, lane, i, len(m), m[:4])
					}
				}
			}
		}
	}
	for _, n := range nodes {
		if calls := n.called(); len(calls) != 2 {
			t.Errorf("calls of %v: %q", n.Self, calls)
		}
	}
}

func TestSizesOfMessages(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	a.Reach([]peer.Peer{b.peer()})
	a.awaitCall(t, "up 2")

	var pieces [][]byte
	for i := range 5000 {
		pieces = append(pieces, bytes.Repeat([]byte{byte(i)}, i%50))
	}
	largest := bytes.Repeat([]byte("siltston"), peer.MaxMessageBytes/8)
	for lane := range peer.Lane(peer.Lanes) {
		if a.Send(2, lane) || a.Send(2, lane, nil, []byte{}) {
			t.Error("a message without bytes was sent")
		}
		if a.Send(2, lane, largest, []byte{1}) {
			t.Error("a message of more than MaxMessageBytes was sent")
		}
		if a.Send(3, lane, []byte{1}) {
			t.Error("a message was sent to nobody")
		}
		for i, message := range [][][]byte{pieces, {largest}, {{7}}} {
			for !a.Send(2, lane, message...) { // the largest fits only into an empty queue
				runtime.Gosched()
			}
			want := slices.Concat(message...)
			b.await(t, "a message", func() bool { return len(b.got[source{1, lane}]) > i })
			if got := b.messages(1, lane)[i]; !bytes.Equal(got, want) {
				t.Errorf("%v: message %d has %d bytes, sent were %d", lane, i, len(got), len(want))
			}
		}
	}
}

func TestBytesOfTheWireAreCounted(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	a.Reach([]peer.Peer{b.peer()})
	a.awaitCall(t, "up 2")
	a.Send(2, peer.Bulk, make([]byte, 1000))
	b.await(t, "a message", func() bool { return len(b.got[source{1, peer.Bulk}]) == 1 })
	a.stop() // so that all is counted
	b.stop()
	sent, received := value(a.metrics.sent[peer.Bulk]), value(b.metrics.received[peer.Bulk])
	least := float64(helloBytes + proofBytes + headerBytes + 1000)
	if sent < least || received < least || received > sent || int(sent-least)%headerBytes != 0 {
		t.Errorf("%v bytes sent, %v received; at least %v, and keep-alives", sent, received, least)
	}
	for _, n := range []*node{a, b} {
		for _, g := range []float64{value(n.metrics.dialled), value(n.metrics.accepted), value(n.metrics.queued[peer.Bulk])} {
			if g != 0 {
				t.Errorf("a gauge of what has ended is %v", g)
			}
		}
	}
}

func TestPeerKilledAndBack(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	a.Reach([]peer.Peer{b.peer()})
	a.awaitCall(t, "up 2")
	address := b.Listener.Addr().String()
	b.stop()
	a.awaitCall(t, "refused 2") // nobody listens
	if calls := a.called(); calls[1] != "down 2" {
		t.Fatalf("calls: %q", calls)
	}
	if a.Send(2, peer.Control, []byte("x")) {
		t.Error("sent to the dead")
	}

	again := start(t, 3, func(o *Options, _ *heard) { o.Listener = listen(t, address) })
	before := len(a.called())
	for value(a.metrics.failures.WithLabelValues("incarnation")) < 2 {
		runtime.Gosched()
	}
	a.await(t, "refused again", func() bool { return len(a.calls) > before })
	for _, call := range a.called()[2:] {
		if call != "refused 2" {
			t.Fatalf("calls: %q", a.called())
		}
	}
	a.Reach([]peer.Peer{again.peer()})
	a.awaitCall(t, "up 3")
	a.Send(3, peer.Control, []byte("hello"))
	again.await(t, "a message", func() bool { return len(again.got[source{1, peer.Control}]) == 1 })
	if n := again.log.count("another incarnation"); n != 1 {
		t.Errorf("said %d times that somebody looks for another", n)
	}
}

func TestConnectsAgainAfterABreak(t *testing.T) {
	for lane := range peer.Lane(peer.Lanes) {
		t.Run(lane.String(), func(t *testing.T) {
			a, b := start(t, 1), start(t, 2)
			a.Reach([]peer.Peer{b.peer()})
			a.awaitCall(t, "up 2")
			a.links[2].session.Load()[lane].conn.Close() // one breaks, both are dialled again
			a.await(t, "up again", func() bool { return slices.Equal(a.calls, []string{"up 2", "down 2", "up 2"}) })
			for lane := range peer.Lane(peer.Lanes) {
				a.Send(2, lane, []byte("x"))
				b.await(t, "a message", func() bool { return len(b.got[source{1, lane}]) == 1 })
			}
		})
	}
}

func TestAddressChanges(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	a.Reach([]peer.Peer{b.peer()})
	a.awaitCall(t, "up 2")
	elsewhere := forward(t, b.Listener.Addr().String())
	a.Reach([]peer.Peer{{Incarnation: 2, Address: elsewhere}})
	a.await(t, "up again", func() bool { return slices.Equal(a.calls, []string{"up 2", "down 2", "up 2"}) })
	if got := a.links[2].session.Load()[peer.Bulk].conn.RemoteAddr().String(); got != elsewhere {
		t.Errorf("connected to %s, and not to %s", got, elsewhere)
	}
	a.Reach(nil)
	for a.Send(2, peer.Bulk, []byte("x")) {
		t.Error("sent to a peer that was given up")
	}
}

// forward listens where each connection is one to the address.
func forward(t *testing.T, address string) string {
	l := listen(t, "127.0.0.1:0")
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				in.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					way[0].Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

func TestRunLeavesNothing(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	a.Reach([]peer.Peer{b.peer(), {Incarnation: 9, Address: "127.0.0.1:1"}})
	b.Reach([]peer.Peer{a.peer()})
	a.awaitCall(t, "up 2")
	b.awaitCall(t, "up 1")
	a.stop()
	b.stop()
	a.Reach([]peer.Peer{b.peer()}) // does nothing
	if _, err := net.Dial("tcp", a.Listener.Addr().String()); err == nil {
		t.Error("it listens yet")
	}
	for { // goroutines that have nothing more to do may be on their way out
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !strings.Contains(string(stacks), "peer/tcp.(*") {
			return
		}
		runtime.Gosched()
	}
}

func TestOptions(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	defer l.Close()
	for what, change := range map[string]func(*Options){
		"nobody":          func(o *Options) { o.Self = 0 },
		"no listener":     func(o *Options) { o.Listener = nil },
		"no log":          func(o *Options) { o.Log = nil },
		"a short secret":  func(o *Options) { o.Secret = o.Secret[:15] },
		"a short silence": func(o *Options) { o.Silence = handshakeTimeout },
		"negative bounds": func(o *Options) { o.QueueBytes = -1 },
	} {
		o := Options{Self: siltstone.Incarnation(1), Listener: l, Secret: testSecret, Log: start(t, 1).Log}
		if _, err := New(o); err != nil {
			t.Fatal(err)
		}
		if change(&o); func() error { _, err := New(o); return err }() == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
