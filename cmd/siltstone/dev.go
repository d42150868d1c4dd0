package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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
	logLevel                 string
	memory                   string
}

func newDev() *cobra.Command {
	var d dev
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a cluster of one agent, with its data in a folder",
		Example: "  siltstone dev\n" +
			"  siltstone dev --data /var/tmp/silt --kafka 127.0.0.1:19092 --http 127.0.0.1:18080",
		Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&d.dir, "data", defaultFolder, "data `folder`; made where it is missing")
	f.StringVar(&d.kafkaAddr, "kafka", defaultKafka, "`address` for Kafka's protocol")
	f.StringVar(&d.httpAddr, "http", defaultHTTP, "`address` for HTTP: records and topics (docs/http.md), /healthy, /ready, /metrics")
	f.StringVar(&d.pprofAddr, "pprof", "", "`address` for Go's profiles, at /debug/pprof/ (default none)")
	f.StringVar(&d.memory, "memory", defaultMemory, "most `bytes` of memory that it may have, as 512MiB or 4GiB")
	f.StringVar(&d.logLevel, "log-level", "warn", "least `level` of what is logged: debug, info, warn or error")
	return cmd
}

// run serves until ctx ends, then flushes what is buffered.
func (d *dev) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	level, memory, err := d.check()
	if err != nil {
		return err
	}
	memory.limit()
	dir, err := filepath.Abs(d.dir)
	if err != nil {
		return err
	}
	stores, err := openStores(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	kafkaPort, err := listen(ctx, "kafka", d.kafkaAddr)
	if err != nil {
		return err
	}
	defer kafkaPort.Close()
	httpPort, err := listen(ctx, "http", d.httpAddr)
	if err != nil {
		return err
	}
	defer httpPort.Close()
	var pprofPort net.Listener // none: no profiles
	if d.pprofAddr != "" {
		if pprofPort, err = listen(ctx, "pprof", d.pprofAddr); err != nil {
			return err
		}
		defer pprofPort.Close()
	}

	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	engine, cluster, isNew, err := newEngine(ctx, stores, agent.Options{Log: log, Metrics: metrics, Memory: memory.agent()})
	if err != nil {
		return explainFolder(dir, err)
	}
	door, err := kafka.New(kafka.Options{
		Log: engine, Groups: engine, Admin: engine, Topics: engine, Cluster: newLoneNode(engine, cluster, kafkaPort.Addr()),
		LogDir: (&url.URL{Scheme: "file", Path: filepath.Join(dir, objectsName)}).String(),
		Random: rand.Uint64, Logger: log, Metrics: metrics, Limits: memory.kafka(),
	})
	if err != nil {
		return err
	}

	web, err := newWeb(engine, log, metrics, memory.gateway())
	if err != nil {
		return err
	}

	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return engine.Run(running) })
	g.Go(func() error { return door.Serve(running, kafkaPort) })
	g.Go(func() error { return serveHTTP(running, web, httpPort) })
	g.Go(func() error { return servePprof(running, pprofPort) })
	g.Go(func() error {
		return whenReady(running, engine, isNew, func() { greet(stdout, dir, kafkaPort.Addr(), httpPort.Addr()) })
	})
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return explainFolder(dir, err)
	}
	fmt.Fprintln(stdout, "stopped; the data is in", dir)
	return nil
}

// check refuses flags that cannot be, before anything is opened.
func (d *dev) check() (level slog.Level, m memory, err error) {
	if level.UnmarshalText([]byte(d.logLevel)) != nil {
		return level, m, usagef("--log-level is debug, info, warn or error, not %q", d.logLevel)
	}
	for _, a := range []struct{ flag, addr string }{{"kafka", d.kafkaAddr}, {"http", d.httpAddr}, {"pprof", d.pprofAddr}} {
		if err := checkAddress(a.flag, a.addr); err != nil && (a.addr != "" || a.flag != "pprof") {
			return level, m, err
		}
	}
	m, err = parseMemory(d.memory)
	return level, m, err
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
	o.Coordinator, o.Bucket, o.Cluster = s.coordinator, s.bucket, cluster
	o.Incarnation = siltstone.Incarnation(rand.Uint64() | 1) // zero would be nobody
	o.Rand = rand.Uint64
	o.Flush = agent.Flush{Eager: true, Wait: 10 * time.Millisecond}
	engine, err := agent.New(o)
	return engine, cluster, cluster == fresh, err
}

// listen opens a port; its errors say which flag chooses another.
func listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program: stop that one, or choose another address with --%s", addr, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s is not allowed to you: choose a port of 1024 or above with --%s", addr, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s is not an address of this machine: choose another with --%s", addr, flag)
	}
	return nil, fmt.Errorf("--%s %s: %w", flag, addr, err)
}

// checkAddress refuses what is not host:port.
func checkAddress(flag, addr string) error {
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return usagef("--%s %q is not an address like %s", flag, addr, defaultKafka)
	}
	return nil
}

// greet says what runs where, and what to try next.
func greet(w io.Writer, dir string, kafkaAddr, httpAddr net.Addr) {
	command, at := commandName(), ""
	kafkaHere, httpHere := fromHere(kafkaAddr), fromHere(httpAddr)
	if kafkaHere != defaultKafka {
		at = " --kafka " + kafkaHere
	}
	fmt.Fprintf(w, `siltstone dev serves Kafka on %[1]s, HTTP on %[2]s; its data is in %[3]s

Try, in another terminal:
  %[4]s topic create hello%[5]s
  echo 'hello, silt' | %[4]s produce hello%[5]s
  %[4]s consume hello --exit%[5]s
  kcat -b %[6]s -C -t hello -e
  curl http://%[7]s/metrics

Ctrl-C stops it; the data stays.
`, kafkaAddr, httpAddr, dir, command, at, kafkaHere, httpHere)
}

// fromHere is an address for a client on this machine, where a server listens
// on all of its addresses.
func fromHere(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return addr.String()
}

// commandName is how this program was called.
func commandName() string {
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./cmd/siltstone"
	}
	return os.Args[0]
}
