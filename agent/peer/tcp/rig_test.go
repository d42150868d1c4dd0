package tcp

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

var (
	testSecret  = []byte("0123456789abcdef")
	testCluster = siltstone.ClusterID{1, 2, 3}
)

// heard is a handler that remembers.
type heard struct {
	received func(from siltstone.Incarnation, lane peer.Lane, message []byte) // if not nil, is called first
	up       func()                                                           // if not nil, is called first

	mu      sync.Mutex
	changed chan struct{}
	calls   []string // of Up and Down
	got     map[source][][]byte
}

func newHeard() *heard {
	return &heard{changed: make(chan struct{}), got: map[source][][]byte{}}
}

func (h *heard) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *heard) Up(to siltstone.Incarnation) {
	if h.up != nil {
		h.up()
	}
	h.change(func() { h.calls = append(h.calls, fmt.Sprintf("up %d", to)) })
}

func (h *heard) Down(to siltstone.Incarnation, refused bool) {
	what := "down"
	if refused {
		what = "refused"
	}
	h.change(func() { h.calls = append(h.calls, fmt.Sprintf("%s %d", what, to)) })
}

func (h *heard) Received(from siltstone.Incarnation, lane peer.Lane, message []byte) {
	if h.received != nil {
		h.received(from, lane, message)
	}
	h.change(func() {
		s := source{from, lane}
		h.got[s] = append(h.got[s], message)
	})
}

// await waits until ok, which is called with the lock. The bound only ends a
// test that fails.
func (h *heard) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		h.mu.Lock()
		done, changed := ok(), h.changed
		h.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%s: waited in vain; calls %q", what, h.called())
		}
	}
}

func (h *heard) awaitCall(t *testing.T, call string) {
	t.Helper()
	h.await(t, call, func() bool { return slices.Contains(h.calls, call) })
}

func (h *heard) called() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func (h *heard) messages(from siltstone.Incarnation, lane peer.Lane) [][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got[source{from, lane}])
}

// node is a transport that runs.
type node struct {
	*Transport
	*heard
	log  *logged
	stop func() // and waits
}

func (n *node) peer() peer.Peer {
	return peer.Peer{Incarnation: n.Self, Address: n.Listener.Addr().String()}
}

// start runs a transport on 127.0.0.1, until stop or the end of the test.
func start(t *testing.T, self siltstone.Incarnation, change ...func(*Options, *heard)) *node {
	t.Helper()
	n := &node{heard: newHeard(), log: &logged{}}
	o := Options{Self: self, Cluster: testCluster, Secret: testSecret, Log: slog.New(slog.NewTextHandler(n.log, nil))}
	for _, c := range change {
		c(&o, n.heard)
	}
	if o.Listener == nil {
		o.Listener = listen(t, "127.0.0.1:0")
	}
	var err error
	if n.Transport, err = New(o); err != nil {
		t.Fatal(err)
	}
	if _, virtual := o.Listener.(*memory); !virtual { // a loaded machine is not what is tested
		n.Silence, n.writeTimeout = time.Minute, time.Minute
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx, n.heard) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		n.stop()
		if t.Failed() {
			t.Logf("%v: calls %q, log:\n%s", self, n.called(), n.log.text.String())
		}
	})
	return n
}

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// logged is what was written to the log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(s))
}

// memory is a network of pipes, for tests in virtual time. Its addresses are
// those of its listeners.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemory() *memory {
	return &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (m *memory) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case m.conns <- theirs:
		return ours, nil
	case <-m.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// value is that of a counter or a gauge.
func value(m prometheus.Metric) float64 {
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		panic(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}
