package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/kafka"
)

// service is an agent behind its doors: what dev and agent run.
type service struct {
	serverSettings
	at      ports
	log     *slog.Logger
	metrics *prometheus.Registry
	self    siltstone.Incarnation
	web     *stage
	waiting bool // for the stores
	away    turnAway

	store string // the bucket's URL, for people
	// prepare finds out what the stores hold. It may take as long as they do
	// to answer; meanwhile the doors are there, and not ready.
	prepare func(ctx context.Context) (agent.Options, error)
	ready   func(ctx context.Context, engine *agent.Agent) error // is called when it is
	chores  func(ctx context.Context) error                      // nil: there are none
}

func newService(s serverSettings, at ports, stderr io.Writer) *service {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if s.advertise == (address{}) {
		s.advertise = advertised(at.kafka.Addr())
	}
	return &service{
		serverSettings: s, at: at, metrics: metrics, web: newStage(),
		self: siltstone.Incarnation(rand.Uint64() | 1), // zero would be nobody
		away: turnAway{port: at.kafka},
		log:  slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: s.level})),
	}
}

// holdTime is how long Kafka clients that come before the agent serves are kept
// waiting: long enough for a restart, or a takeover after the lease, to look
// like a slow moment, and within what clients wait for (10 s: librdkafka's
// api.version.request.timeout.ms). It does not answer them, as it does not know
// yet what topics there are. Then they are turned away.
const holdTime = 8 * time.Second

// run serves until ctx ends, then flushes what is buffered.
func (s *service) run(ctx context.Context) error {
	g, running := errgroup.WithContext(ctx)
	var unwritten error // also after an interruption
	g.Go(func() error { return serveHTTP(running, newWeb(s.web, s.log), s.at.http) })
	g.Go(func() error { return servePprof(running, s.at.pprof) })
	g.Go(func() error { return newRest().watch(running) })
	if s.chores != nil {
		g.Go(func() error { return s.chores(running) })
	}
	hold := time.AfterFunc(holdTime, s.away.start)
	defer hold.Stop()
	g.Go(func() error {
		engine, err := s.newEngine(running)
		if err != nil {
			return err
		}
		door, err := s.newDoor(engine)
		if err != nil {
			return err
		}
		forward := &forwarder{Agent: engine, seed: s.advertise.String()}
		context.AfterFunc(running, forward.close)
		gateway, err := newGateway(forward, s.log, s.metrics, s.memory.gateway())
		if err != nil {
			return err
		}
		s.web.show(gateway)
		g.Go(func() error {
			err := engine.Run(running)
			if errors.Is(err, agent.ErrUnwritten) {
				unwritten = err
			}
			return err
		})
		select {
		case <-engine.Ready():
			if err := s.away.end(); err != nil {
				return err
			}
			g.Go(func() error { return door.Serve(running, s.at.kafka) })
			return s.ready(running, engine)
		case <-running.Done():
			return nil
		}
	})
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return unwritten
}

// waits notes why the service cannot begin yet.
func (s *service) waits(why error) {
	s.web.waits("not ready: " + why.Error())
	if !s.waiting {
		s.waiting = true
		s.log.Warn("the stores do not answer; trying again", "err", why)
	}
}

func (s *service) newEngine(ctx context.Context) (*agent.Agent, error) {
	o, err := s.prepare(ctx)
	if err != nil {
		return nil, err
	}
	o.Incarnation = s.self
	o.Rand, o.Log, o.Metrics = rand.Uint64, s.log, s.metrics
	o.Address, o.Zone = s.advertise.String(), s.zone
	return agent.New(o)
}

func (s *service) newDoor(engine *agent.Agent) (*kafka.Server, error) {
	return kafka.New(kafka.Options{
		Log: engine, Groups: engine, Admin: engine, Topics: engine,
		Cluster: &clusterView{Agent: engine}, LogDir: s.store,
		Random: rand.Uint64, Logger: s.log, Metrics: s.metrics, Limits: s.memory.kafka(),
	})
}
