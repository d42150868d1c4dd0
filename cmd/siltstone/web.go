package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/gateway"
)

// What HTTP clients may take their time for. net/http counts a reply's time
// from the end of the request's headers, so it has the body's in it, and what
// the gateway may wait: 25 s for records, 30 s for an append to be safe.
const (
	headerTime = 5 * time.Second
	bodyTime   = time.Minute
	replyTime  = bodyTime + time.Minute
	idleTime   = 2 * time.Minute
	drainTime  = 5 * time.Second // for requests in flight when the server stops

	maxWebConnections = 1000
)

// newGateway is the engine's HTTP door.
func newGateway(engine *forwarder, log *slog.Logger, metrics *prometheus.Registry, limits gateway.Limits) (http.Handler, error) {
	return gateway.New(gateway.Options{
		Agent: readiness{engine.Agent}, Log: engine, Topics: engine, Random: rand.Uint64,
		Logger: log, Gatherer: metrics, Metrics: metrics, Limits: limits,
	})
}

// newWeb is a server of HTTP.
func newWeb(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		WriteTimeout:      replyTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelInfo),
		ConnState:         atMost(maxWebConnections, log),
	}
}

// atMost closes connections beyond so many, and says so once a minute at most.
func atMost(most int64, log *slog.Logger) func(net.Conn, http.ConnState) {
	var open, quiet atomic.Int64 // quiet: until when, in ns
	return func(c net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			if open.Add(1) <= most {
				return
			}
			_ = c.Close() // the server meets it, and says that it is closed
			now, until := time.Now().UnixNano(), quiet.Load()
			if now >= until && quiet.CompareAndSwap(until, now+int64(time.Minute)) {
				log.Warn("too many HTTP connections: further ones are closed at once", "open", most)
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}

// readiness is the engine as the gateway asks for it.
type readiness struct{ engine *agent.Agent }

func (r readiness) Ready() error {
	if s := r.engine.Status(); !s.Ready {
		return errors.New(s.Why)
	}
	return nil
}

// Begun is nil once the engine has been ready.
func (r readiness) Begun() error {
	select {
	case <-r.engine.Ready():
		return nil
	default:
		return errors.New(r.engine.Status().Why)
	}
}

// serveHTTP serves until ctx ends, and then what is in flight.
func serveHTTP(ctx context.Context, s *http.Server, l net.Listener) error {
	requests, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	s.BaseContext = func(net.Listener) context.Context { return requests }
	stopped := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(stopped)
		stop(gateway.ErrStopping)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		if s.Shutdown(drain) != nil {
			_ = s.Close()
		}
	})
	defer unhook()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http: %w", err)
	}
	<-stopped
	return nil
}
