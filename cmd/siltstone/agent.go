package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/agent/peer/tcp"
)

// agentCommand is an agent of a cluster whose stores are elsewhere.
type agentCommand struct {
	server
	remote
	zone                     string
	peer, advertisePeer      string // empty: as Kafka's protocol
	flushBytes               string
	flushWait, flushInterval time.Duration
}

func newAgent() *cobra.Command {
	var a agentCommand
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run an agent of a cluster in a bucket and a DynamoDB table",
		Long: `Run an agent of a cluster in a bucket and a DynamoDB table.

It keeps nothing on this machine. The agents of a cluster find each other in the
table, and share the partitions and groups; where one stops, or dies, the others
take over what it led.

Each setting may come from its flag, else from the environment (--flush-wait is
SILTSTONE_FLUSH_WAIT), else from the file that --config names.`,
		Example: "  siltstone agent --bucket s3://my-bucket --coordinator dynamodb://my-table --zone eu-west-1a\n" +
			"  . localstack/run/env && siltstone agent\n" +
			"  siltstone agent --config /etc/siltstone.properties",
		Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readSettings(cmd); err != nil {
				return err
			}
			return a.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	a.remote.register(cmd)
	f := cmd.Flags()
	f.StringVar(&a.zone, "zone", "", "`name` of the availability zone that it runs in, which Kafka clients are told as its rack")
	f.StringVar(&a.peer, "peer", "", "`address` for other agents (default: a free port of the address of --kafka)")
	f.StringVar(&a.advertisePeer, "advertise-peer", "", "`address` that other agents are told to come to (default: that of --peer, and for 0.0.0.0 this machine's name)")
	f.StringVar(&a.flushBytes, "flush-bytes", "8MiB", "`size` of what is buffered from which on it is written out at once")
	f.DurationVar(&a.flushWait, "flush-wait", 250*time.Millisecond, "how long the first who waits for records to be written out waits for others")
	f.DurationVar(&a.flushInterval, "flush-interval", 5*time.Second, "how long records may wait to be written out that nobody waits for")
	a.server.register(f)
	registerSettings(cmd)
	return cmd
}

// wholeFromStore is up to what size objects are read whole, where each request
// has its price; less where there is little memory for what readers wait for.
const wholeFromStore = 16 << 20

// flush is what the flags say of it.
func (a *agentCommand) flush() (f agent.Flush, err error) {
	n, err := humanize.ParseBytes(a.flushBytes)
	if err != nil || n < 64<<10 || n > 1<<30 {
		return f, usagef("--flush-bytes %q is not a size from 64KiB to 1GiB", a.flushBytes)
	}
	if a.flushWait <= 0 || a.flushInterval < a.flushWait {
		return f, usagef("--flush-wait %s is above 0, and --flush-interval %s no shorter", a.flushWait, a.flushInterval)
	}
	return agent.Flush{Bytes: int(n), Wait: a.flushWait, Interval: a.flushInterval}, nil
}

// peerAddresses are where it listens for other agents, and where they are told
// to come; zero: as it listens.
func (a *agentCommand) peerAddresses() (at, told address, err error) {
	if a.peer != "" {
		at, err = parseAddress("peer", a.peer)
	} else if at, err = parseAddress("kafka", a.kafkaAddr); err == nil {
		at.port = 0
	}
	if err == nil && a.advertisePeer != "" {
		told, err = parseAdvertised("advertise-peer", a.advertisePeer)
	}
	return at, told, err
}

// run serves until ctx ends, then flushes what is buffered.
func (a *agentCommand) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	settings, err := a.check()
	if err != nil {
		return err
	}
	flush, err := a.flush()
	if err != nil {
		return err
	}
	peersAt, peersTold, err := a.peerAddresses()
	if err != nil {
		return err
	}
	settings.zone = a.zone
	settings.memory.limit()
	memory := settings.memory.agent(min(wholeFromStore, settings.memory.share(64)))
	if memory.Unflushed < flush.Bytes {
		return usagef("--memory %s is too little for --flush-bytes %s: it takes 8 times as much", a.memory, a.flushBytes)
	}
	at, err := a.listen(ctx)
	if err != nil {
		return err
	}
	defer at.close()
	door, err := listen(ctx, "peer", peersAt.String())
	if err != nil {
		return err
	}
	defer func() { _ = door.Close() }()
	if peersTold == (address{}) {
		peersTold = advertised(door.Addr())
	}
	s := newService(settings, at, stderr)
	stores, err := a.open(ctx, s.log, s.metrics)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	s.store = a.bucket
	s.prepare = func(ctx context.Context) (o agent.Options, err error) {
		id, secret, err := stores.untilChecked(ctx, s.waits)
		if err != nil {
			return o, err
		}
		peers, err := tcp.New(tcp.Options{Self: s.self, Cluster: id, Listener: door, Secret: secret, Log: s.log, Metrics: s.metrics})
		return agent.Options{
			Coordinator: stores.coordinator, Bucket: stores.bucket, Cluster: id, Flush: flush, Memory: memory,
			Peers: peers, PeerAddress: peersTold.String(),
		}, err
	}
	s.chores = func(ctx context.Context) error { return stores.reap(ctx, s.log) }
	s.ready = func(context.Context, *agent.Agent) error {
		fmt.Fprintf(stdout, "siltstone agent of the cluster %s serves Kafka on %s, HTTP on %s\n", a.cluster, at.kafka.Addr(), at.http.Addr())
		if s.advertise.String() != at.kafka.Addr().String() {
			fmt.Fprintf(stdout, "Kafka clients are told to come to %s (--advertise)\n", s.advertise)
		}
		return nil
	}
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", a.cluster, err)
	}
	fmt.Fprintln(stdout, "stopped; what it had buffered is in", a.bucket)
	return nil
}
