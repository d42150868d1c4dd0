package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka"
)

const defaultHTTP = "127.0.0.1:8080"

// dev is a cluster of one agent, with its stores in a folder.
type dev struct {
	dir, kafkaAddr, httpAddr string
	pprofAddr                string // none: no profiles
	advertise                string // none: see advertised
	logLevel                 string
	memory                   string
}

func newDev() *cobra.Command {
	var d dev
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a cluster of one agent, with its data in a folder",
		Example: "  siltstone dev\n" +
			"  siltstone dev --data /var/tmp/silt --kafka 127.0.0.1:19092 --http 127.0.0.1:18080\n" +
			"  siltstone dev --kafka 0.0.0.0:9092 --advertise silt.example.org:9092",
		Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&d.dir, "data", defaultFolder, "data `folder`; made where it is missing")
	f.StringVar(&d.kafkaAddr, "kafka", defaultKafka, "`address` for Kafka's protocol")
	f.StringVar(&d.advertise, "advertise", "", "`address` that Kafka clients are told to come to (default: that of --kafka, and for 0.0.0.0 this machine's name)")
	f.StringVar(&d.httpAddr, "http", defaultHTTP, "`address` for HTTP: records and topics (docs/http.md), /healthy, /ready, /metrics")
	f.StringVar(&d.pprofAddr, "pprof", "", "`address` for Go's profiles, at /debug/pprof/ (default none)")
	f.StringVar(&d.memory, "memory", defaultMemory, "most `bytes` of memory that it may have, as 512MiB or 4GiB")
	f.StringVar(&d.logLevel, "log-level", "warn", "least `level` of what is logged: debug, info, warn or error")
	return cmd
}

// run serves until ctx ends, then flushes what is buffered.
func (d *dev) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	s, err := d.check()
	if err != nil {
		return err
	}
	s.memory.limit()
	dir, err := filepath.Abs(d.dir)
	if err != nil {
		return err
	}
	// Before anything is written: who cannot listen leaves no folder behind.
	at, err := d.listen(ctx)
	if err != nil {
		return unlessLocked(ctx, dir, err)
	}
	defer at.close()
	if s.advertise == (address{}) {
		s.advertise = advertised(at.kafka.Addr())
	}
	stores, err := openStores(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()

	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: s.level}))
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	engine, cluster, isNew, err := newEngine(ctx, stores, agent.Options{Log: log, Metrics: metrics, Memory: s.memory.agent()})
	if err != nil {
		return explainFolder(dir, err)
	}
	door, err := kafka.New(kafka.Options{
		Log: engine, Groups: engine, Admin: engine, Topics: engine, Cluster: newLoneNode(engine, cluster, s.advertise),
		LogDir: (&url.URL{Scheme: "file", Path: filepath.Join(dir, objectsName)}).String(),
		Random: rand.Uint64, Logger: log, Metrics: metrics, Limits: s.memory.kafka(),
	})
	if err != nil {
		return err
	}

	web, err := newWeb(engine, log, metrics, s.memory.gateway())
	if err != nil {
		return err
	}

	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return engine.Run(running) })
	g.Go(func() error { return door.Serve(running, at.kafka) })
	g.Go(func() error { return serveHTTP(running, web, at.http) })
	g.Go(func() error { return servePprof(running, at.pprof) })
	g.Go(func() error { return newRest().watch(running) })
	g.Go(func() error {
		return whenReady(running, engine, isNew, func() { greet(stdout, dir, at, s.advertise) })
	})
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return explainFolder(dir, err)
	}
	fmt.Fprintln(stdout, "stopped; the data is in", dir)
	return nil
}

// devSettings is what flags say that are more than a name.
type devSettings struct {
	level     slog.Level
	memory    memory
	advertise address // zero: not given
}

// check refuses flags that cannot be, before anything is opened.
func (d *dev) check() (s devSettings, err error) {
	if s.level.UnmarshalText([]byte(d.logLevel)) != nil {
		return s, usagef("--log-level is debug, info, warn or error, not %q", d.logLevel)
	}
	if err := checkFolderName(d.dir); err != nil {
		return s, err
	}
	flags := map[address]string{}
	for _, a := range []struct{ flag, addr string }{{"kafka", d.kafkaAddr}, {"http", d.httpAddr}, {"pprof", d.pprofAddr}} {
		if a.addr == "" && a.flag == "pprof" {
			continue
		}
		at, err := parseAddress(a.flag, a.addr)
		if err != nil {
			return s, err
		}
		if other, taken := flags[at]; taken && at.port != 0 {
			return s, usagef("--%s and --%s are both %s: they need an address each", other, a.flag, a.addr)
		}
		flags[at] = a.flag
	}
	if d.advertise != "" {
		if s.advertise, err = parseAdvertised(d.advertise); err != nil {
			return s, err
		}
	}
	s.memory, err = parseMemory(d.memory)
	return s, err
}

// whenReady makes a new cluster one for development, and greets.
func whenReady(ctx context.Context, engine *agent.Agent, isNew bool, greet func()) error {
	select {
	case <-engine.Ready():
	case <-ctx.Done():
		return nil
	}
	if isNew {
		if err := setForDevelopment(ctx, engine); err != nil {
			return err
		}
	}
	greet()
	return nil
}

// setForDevelopment gives a new cluster the settings that Kafka's own
// configuration for development has: a first consumer need not wait for others.
func setForDevelopment(ctx context.Context, engine *agent.Agent) error {
	zero := "0"
	var refused error
	err := engine.Change(ctx, func(v *topic.View) (d topic.Decision) {
		d, refused = topic.AlterCluster(v, []topic.ConfigOp{{Name: "group.initial.rebalance.delay.ms", Op: topic.Set, Value: &zero}})
		return d
	})
	return errors.Join(err, refused)
}

// newEngine makes the one agent of the cluster that the stores hold, and says
// whether they held none before.
func newEngine(ctx context.Context, s *stores, o agent.Options) (*agent.Agent, siltstone.ClusterID, bool, error) {
	ledgers := ledger.NewClient(ledger.Options{Coordinator: s.coordinator, Bucket: s.bucket, Rand: rand.Uint64, Logger: o.Log})
	var fresh siltstone.ClusterID
	_, _ = crand.Read(fresh[:]) // never fails
	cluster, err := ledgers.EnsureClusterID(ctx, fresh)
	if err != nil {
		return nil, cluster, false, err
	}
	o.Coordinator, o.Alone, o.Bucket, o.Cluster = s.coordinator, true, s.bucket, cluster
	o.Incarnation = siltstone.Incarnation(rand.Uint64() | 1) // zero would be nobody
	o.Rand = rand.Uint64
	o.Flush = agent.Flush{Eager: true, Wait: 10 * time.Millisecond}
	engine, err := agent.New(o)
	return engine, cluster, cluster == fresh, err
}
