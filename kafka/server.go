// Package kafka is a door to the log: a server of the Kafka protocol. It
// decodes, checks and encodes, and keeps nothing but connections and fetch
// sessions; what it serves it reaches through Log, Groups, Topics and Cluster.
//
// It promises to answer the requests of a connection in their order, to
// advertise exactly what it implements (table.go), and that no client, however
// slow, silent, greedy or malformed, costs more than Limits. Record batches
// pass through it without a copy.
//
// New starts nothing. Serve runs two goroutines per connection, a reader and a
// writer (conn.go), and returns when all have ended. There is one file per
// API, whose header says which versions there are and what they do.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Server serves the Kafka protocol.
type Server struct {
	log      Log
	groups   Groups
	admin    Admin
	topics   Topics
	cluster  Cluster
	logDir   string
	random   func() uint64
	logger   *slog.Logger
	limits   Limits
	metrics  *metrics
	apis     []*api              // by key
	memory   *semaphore.Weighted // for requests that are there
	arrivals arrivals            // for those that are arriving
	answers  *semaphore.Weighted // for large answers that are not written yet
	building *semaphore.Weighted // large answers at a time
	sessions *sessionCache
	seldom   seldom

	// recompressing has a place for each who compresses a batch anew, as many
	// as there are CPUs: each may need as much memory as a topic allows.
	recompressing chan struct{}

	// stopped is closed when requests in flight have had their time to end
	// after Serve's context did. It belongs to Serve.
	stopped chan struct{}
}

// builtAtOnce is how many large answers are built at a time: it costs CPU, and
// others wait for their turn behind all of them.
const builtAtOnce = 4

// New checks the options.
func New(o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	m := newMetrics(o.Metrics)
	return &Server{
		log: o.Log, groups: o.Groups, admin: o.Admin, topics: o.Topics, cluster: o.Cluster, logDir: o.LogDir, random: o.Random,
		logger: o.Logger, limits: o.Limits, metrics: m,
		apis:     newAPIs(m),
		memory:   semaphore.NewWeighted(int64(o.Limits.MemoryBytes)),
		arrivals: newArrivals(o.Limits.MemoryBytes / arrivalShare),
		answers:  semaphore.NewWeighted(int64(o.Limits.AnswerBytes)),
		building: semaphore.NewWeighted(builtAtOnce),
		sessions: newSessionCache(o.Limits, o.Random, m),
		stopped:  make(chan struct{}),

		recompressing: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}, nil
}

// api finds the row of a key, or nil.
func (s *Server) api(key int16) *api {
	if key < 0 || int(key) >= len(s.apis) {
		return nil
	}
	return s.apis[key]
}

// Serve accepts connections and serves them until ctx ends; then it reads no
// more, lets requests in flight end for Limits.Drain at most, and closes all.
// It closes the listener. It is called once. The error is nil, or why it could
// not go on.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	stopAccept := context.AfterFunc(ctx, func() { l.Close() })
	var open conns
	var serving sync.WaitGroup
	err := s.accept(ctx, l, &open, &serving)
	cancel()
	stopAccept()
	l.Close()

	drain := time.AfterFunc(max(s.limits.Drain, 0), func() {
		close(s.stopped)
		open.closeAll()
	})
	serving.Wait()
	drain.Stop()
	return err
}

func (s *Server) accept(ctx context.Context, l net.Listener, open *conns, serving *sync.WaitGroup) error {
	for id := uint64(1); ; id++ {
		nc, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				nc.Close()
			}
			return nil
		}
		if err != nil {
			if !temporary(err) {
				return fmt.Errorf("kafka: accept: %w", err)
			}
			if s.seldom.may("accept") {
				s.logger.Warn("cannot accept connections", "err", err)
			}
			select { // out of file descriptors, most likely: some will be closed
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if !open.add(nc, s.limits.Connections) {
			s.metrics.refused.Inc()
			nc.Close()
			if s.seldom.may("refuse") {
				s.logger.Warn("too many connections: further ones are closed at once", "open", s.limits.Connections)
			}
			continue
		}
		s.metrics.connections.Inc()
		serving.Go(func() {
			s.serveConn(ctx, nc, id)
			open.remove(nc)
			s.metrics.connections.Dec()
		})
	}
}

func (s *Server) serveConn(ctx context.Context, nc net.Conn, id uint64) {
	logger := s.logger.With("conn", id, "peer", nc.RemoteAddr().String())
	logger.Debug("connection opened")
	why := newConn(ctx, s, nc, id).serve()
	reason, fault := closeReason(why)
	s.metrics.closed.WithLabelValues(reason).Inc()
	level := slog.LevelDebug
	if fault {
		level = slog.LevelInfo
	}
	if (errors.Is(why, errTLS) || errors.Is(why, errHTTP)) && s.seldom.may(reason) {
		level = slog.LevelWarn // somebody has the wrong port, and should hear of it
	}
	logger.Log(ctx, level, "connection closed", "reason", reason, "err", why)
}

// closeReason is the label of why a connection was closed, and whether its
// client is to blame.
func closeReason(why error) (label string, fault bool) {
	reasons := []struct {
		err   error
		label string
		fault bool
	}{
		{errStopping, "stopping", false},
		{errIdle, "idle", false},
		{errNoReply, "no_reply", false},
		{errSlowFrame, "slow_request", true},
		{errSlowReader, "slow_reader", true},
		{errTLS, "tls", true},
		{errHTTP, "http", true},
		{errFrameTooLong, "too_large", true},
		{errUnknownAPI, "unknown_api", true},
		{errMalformed, "malformed", true},
		{errGone, "gone", false},
	}
	for _, r := range reasons {
		if errors.Is(why, r.err) {
			return r.label, r.fault
		}
	}
	return "other", true
}

func temporary(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && t.Temporary()
}

// seldom keeps clients from filling the log with what is worth a warning.
type seldom struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// may says whether there was no warning of the kind for a minute.
func (s *seldom) may(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.last[kind]) >= time.Minute {
		if s.last == nil || len(s.last) >= 1000 { // errors are kinds too
			s.last = map[string]time.Time{}
		}
		s.last[kind] = now
		return true
	}
	return false
}

// conns is the open connections.
type conns struct {
	mu  sync.Mutex
	set map[net.Conn]struct{}
}

func (o *conns) add(nc net.Conn, limit int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.set) >= limit {
		return false
	}
	if o.set == nil {
		o.set = map[net.Conn]struct{}{}
	}
	o.set[nc] = struct{}{}
	return true
}

func (o *conns) remove(nc net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.set, nc)
}

// closeAll closes them; what runs on them ends of it.
func (o *conns) closeAll() {
	o.mu.Lock()
	all := make([]net.Conn, 0, len(o.set))
	for nc := range o.set {
		all = append(all, nc)
	}
	o.mu.Unlock()
	for _, nc := range all {
		nc.Close()
	}
}
