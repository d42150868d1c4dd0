// Package tcp sends messages between agents over TCP: it is the adapter of
// peer.Transport that a running agent has. docs/formats/peer.md has its bytes.
//
// What one agent says to another goes over two connections that it has dialled,
// one for each lane, and on which the other says nothing but that it is alive.
// Both lanes are up, or neither is: when one breaks, both are closed, and
// dialled again. No message is taken from a connection, and nothing is sent on
// it, before both ends have proved that they know the cluster's secret.
//
// New starts nothing. Run has one goroutine for each peer to be reached, with
// two for each of its connections, and two for each connection that is accepted.
package tcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

// Limits of what is not an option.
const (
	minSecretBytes   = 16
	maxUnproven      = 64 // connections accepted, in their handshake
	controlBytes     = 1 << 20
	dialTimeout      = time.Second
	handshakeTimeout = 2 * time.Second
	writeTimeout     = 5 * time.Second
)

// Options of a transport.
type Options struct {
	Self     siltstone.Incarnation
	Cluster  siltstone.ClusterID
	Secret   []byte       // what all agents of the cluster know, at least 16 bytes
	Listener net.Listener // Run closes it

	Dial       func(ctx context.Context, network, address string) (net.Conn, error) // default: net.Dialer's
	QueueBytes int                                                                  // that wait to be sent to a peer on Bulk; default 64 MiB
	Silence    time.Duration                                                        // after which a connection is broken, longer than 2 s; default 3 s
	Log        *slog.Logger
	Metrics    prometheus.Registerer // nil: none
}

func (o *Options) validate() error {
	switch {
	case o.Self == 0:
		return errors.New("tcp: no incarnation")
	case o.Listener == nil:
		return errors.New("tcp: no listener")
	case o.Log == nil:
		return errors.New("tcp: no log")
	case len(o.Secret) < minSecretBytes:
		return fmt.Errorf("tcp: a secret of %d bytes is too short", len(o.Secret))
	case o.QueueBytes < 0:
		return errors.New("tcp: a negative bound")
	case o.Silence != 0 && o.Silence <= handshakeTimeout: // one lane is silent while the other's handshake takes its time
		return fmt.Errorf("tcp: a silence of %v is no longer than a handshake", o.Silence)
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = 64 << 20
	}
	if o.Silence == 0 {
		o.Silence = 3 * time.Second
	}
	return nil
}

// Transport is a peer.Transport over TCP.
type Transport struct {
	Options
	writeTimeout time.Duration
	id           identity
	metrics      *metrics
	troubles     troubles
	turns        turns
	serving      sync.WaitGroup

	mu    sync.RWMutex
	links map[siltstone.Incarnation]*link
	start func(*link) // while Run runs
	ended bool
}

var _ peer.Transport = (*Transport)(nil)

// New checks the options.
func New(o Options) (*Transport, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Transport{
		Options:      o,
		writeTimeout: writeTimeout,
		id:           identity{self: o.Self, cluster: o.Cluster, secret: o.Secret},
		metrics:      newMetrics(o.Metrics),
		links:        map[siltstone.Incarnation]*link{},
	}, nil
}

// keepAlive is how often each end of a connection shows that it lives.
func (t *Transport) keepAlive() time.Duration { return t.Silence / 6 }

// Reach implements peer.Transport. It passes over the transport's own incarnation.
func (t *Transport) Reach(peers []peer.Peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	wanted := map[siltstone.Incarnation]string{}
	for _, p := range peers {
		if p.Incarnation != t.Self {
			wanted[p.Incarnation] = p.Address
		}
	}
	for to, l := range t.links {
		if _, ok := wanted[to]; !ok {
			l.hangUp()
			if t.start == nil {
				delete(t.links, to) // it never runs
			}
		}
	}
	for to, address := range wanted {
		old := t.links[to]
		if old != nil && old.gone.Err() == nil {
			old.move(address)
			continue
		}
		l := newLink(t, to, address)
		if old != nil {
			l.after = old.done
		}
		t.links[to] = l
		if t.start != nil {
			t.start(l)
		}
	}
}

// Send implements peer.Transport.
func (t *Transport) Send(to siltstone.Incarnation, lane peer.Lane, pieces ...[]byte) bool {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	if size == 0 || size > peer.MaxMessageBytes {
		return false
	}
	t.mu.RLock()
	l := t.links[to]
	t.mu.RUnlock()
	if l == nil || l.gone.Err() != nil {
		return false
	}
	s := l.session.Load()
	if s == nil {
		return false
	}
	if !s[lane].box.add(size, pieces) {
		t.metrics.full[lane].Inc()
		return false
	}
	return true
}

// Run implements peer.Transport. The error is nil, or why it could not go on.
func (t *Transport) Run(ctx context.Context, h peer.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { t.Listener.Close() })()
	t.mu.Lock()
	t.start = func(l *link) {
		t.serving.Go(func() {
			l.run(ctx, h)
			t.forget(l)
		})
	}
	for _, l := range t.links {
		t.start(l)
	}
	t.mu.Unlock()

	err := t.accept(ctx, h)
	cancel()
	t.Listener.Close()
	t.mu.Lock()
	t.start, t.ended = nil, true
	t.mu.Unlock()
	t.serving.Wait()
	return err
}

// forget ends what is kept of a link that has ended.
func (t *Transport) forget(l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.links[l.to] == l {
		delete(t.links, l.to)
		t.troubles.forget(l.to.String())
	}
}
