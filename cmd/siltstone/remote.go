package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/dynamo"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/open"
)

// remote are flags that say where the stores of a cluster are.
type remote struct{ cluster, bucket, coordinator string }

const defaultCluster = "siltstone"

func (r *remote) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.cluster, "cluster", defaultCluster, "`name` of the cluster")
	r.registerStores(cmd)
}

func (r *remote) registerStores(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.bucket, "bucket", "", "`URL` of its bucket, like s3://my-bucket/prefix or minio://host:9000/my-bucket (docs/buckets.md)")
	f.StringVar(&r.coordinator, "coordinator", "", "`URL` of its coordinator's table, like dynamodb://my-table?region=eu-west-1")
}

// remoteStores are a cluster's, wherever they are.
type remoteStores struct {
	name        string // of the cluster
	coordinator *dynamo.Coordinator
	bucket      *open.Bucket
	ledgers     *ledger.Client
}

// open opens both stores. It sends no request yet.
func (r *remote) open(ctx context.Context, log *slog.Logger, metrics prometheus.Registerer) (*remoteStores, error) {
	switch {
	case r.cluster == "":
		return nil, usagef("--cluster is empty")
	case r.bucket == "":
		return nil, usagef("--bucket says where the records are, like s3://my-bucket")
	case r.coordinator == "":
		return nil, usagef("--coordinator says where the table is, like dynamodb://my-table")
	}
	table, err := dynamo.Parse(r.coordinator)
	if err != nil {
		return nil, usagef("--coordinator: %w", err)
	}
	if _, err := open.Parse(r.bucket); err != nil {
		return nil, usagef("--bucket: %w", err)
	}
	c, err := dynamo.New(ctx, dynamo.Options{Location: table, Metrics: metrics})
	if err != nil {
		return nil, err
	}
	b, err := open.URL(ctx, r.bucket, open.Options{Rand: rand.Uint64, Metrics: metrics})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &remoteStores{
		name: r.cluster, coordinator: c, bucket: b,
		ledgers: ledger.NewClient(ledger.Options{Coordinator: c, Bucket: b, Rand: rand.Uint64, Logger: log}),
	}, nil
}

func (s *remoteStores) Close() error { return errors.Join(s.bucket.Close(), s.coordinator.Close()) }

// nameKey is the register that has the cluster's name.
const nameKey = "name"

// check finds the cluster in its stores, and that they are fit to be written
// to; and the secret that its agents share.
func (s *remoteStores) check(ctx context.Context) (id siltstone.ClusterID, secret []byte, err error) {
	if id, err = s.find(ctx); err != nil {
		return id, nil, err
	}
	if err := bucket.CheckConditions(ctx, s.bucket, rand.Uint64()); err != nil {
		return id, nil, err
	}
	secret, err = s.secret(ctx)
	return id, secret, err
}

// find finds the cluster in its stores.
func (s *remoteStores) find(ctx context.Context) (id siltstone.ClusterID, err error) {
	if err := s.coordinator.CheckTable(ctx); err != nil {
		return id, err
	}
	if id, err = s.ledgers.ClusterID(ctx); err != nil {
		return id, err
	}
	if id == (siltstone.ClusterID{}) {
		return id, fmt.Errorf("%w: siltstone cluster init begins one", errNoCluster)
	}
	v, err := s.coordinator.Get(ctx, nameKey)
	if err != nil {
		return id, err
	}
	if len(v.Data) == 0 {
		return id, fmt.Errorf("%w: siltstone cluster init was cut off, call it again", errNoCluster)
	}
	if string(v.Data) != s.name {
		return id, fmt.Errorf("%w: they are of the cluster %q, and --cluster says %q", siltstone.ErrForeign, v.Data, s.name)
	}
	return id, nil
}

// describedStores is what stores hold, as --json prints it.
type describedStores struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Bucket      string `json:"bucket"`
	Coordinator string `json:"coordinator"`
	// Agents have registers; some may have died since.
	Agents []describedAgent `json:"agents"`
}

// describedAgent is an agent, as it says itself.
type describedAgent struct {
	Node        int32  `json:"node"`
	Incarnation string `json:"incarnation"`
	Address     string `json:"address"`
	Peer        string `json:"peer"`
	Zone        string `json:"zone"`
}

// describe finds what cluster is in the stores, whatever its name.
func (s *remoteStores) describe(ctx context.Context) (d describedStores, err error) {
	name, err := s.coordinator.Get(ctx, nameKey)
	if err != nil {
		return d, err
	}
	if len(name.Data) > 0 {
		s.name = string(name.Data)
	}
	id, err := s.find(ctx)
	if err != nil {
		return d, err
	}
	d.ID, d.Name = id.String(), s.name
	members, err := agent.Members(ctx, s.coordinator)
	d.Agents = []describedAgent{}
	for _, m := range members {
		d.Agents = append(d.Agents, describedAgent{m.Node, m.Incarnation.String(), m.Address, m.Peer, m.Zone})
	}
	return d, err
}

// errNoCluster is stores that no cluster was begun in.
var errNoCluster = errors.New("there is no cluster in these stores yet")

// init begins a cluster, or carries on what was begun.
func (s *remoteStores) init(ctx context.Context) (id siltstone.ClusterID, err error) {
	if err := s.coordinator.EnsureTable(ctx); err != nil {
		return id, err
	}
	if err := s.bucket.Make(ctx); err != nil {
		return id, err
	}
	// Before anything is stamped: a bucket that is refused stays as it was.
	if err := bucket.CheckConditions(ctx, s.bucket, rand.Uint64()); err != nil {
		return id, err
	}
	if id, err = s.ledgers.EnsureClusterID(ctx, newClusterID()); err != nil {
		return id, err
	}
	nonce := coordinator.Nonce(newClusterID())
	_, err = s.coordinator.Put(ctx, nameKey, []byte(s.name), "", nonce)
	if _, taken := errors.AsType[*coordinator.VersionConflict](err); err != nil && !taken {
		return id, err
	}
	if _, err := s.secret(ctx); err != nil {
		return id, err
	}
	return s.find(ctx)
}

// final are errors of check that waiting does not mend. Rights may be given
// later, or take a while to be known everywhere.
var final = []error{
	siltstone.ErrForeign, siltstone.ErrNewerFormat, siltstone.ErrCorrupt,
	errNoCluster, dynamo.ErrNoTable, bucket.ErrConditions,
}

// checkTime is how long the stores may take to answer before it is said that
// they do not.
const checkTime = 15 * time.Second

// untilChecked checks until the stores answer, and says meanwhile why it waits.
func (s *remoteStores) untilChecked(ctx context.Context, waits func(why error)) (siltstone.ClusterID, []byte, error) {
	const first, most = 250 * time.Millisecond, 5 * time.Second
	for pause := first; ; pause = min(2*pause, most) {
		once, cancel := context.WithTimeout(ctx, checkTime)
		id, secret, err := s.check(once)
		cancel()
		if err == nil {
			return id, secret, nil
		}
		for _, e := range final {
			if errors.Is(err, e) {
				return id, nil, err
			}
		}
		waits(err)
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return id, nil, ctx.Err()
		}
	}
}

const (
	reapEvery = time.Hour
	// reapAge is far above what an upload takes.
	reapAge = 24 * time.Hour
)

// reap gives up uploads in parts that a killed process has left: they are not
// seen, and cost what objects do.
func (s *remoteStores) reap(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		n, err := s.bucket.Reap(ctx, time.Now().Add(-reapAge))
		switch {
		case err != nil && ctx.Err() == nil:
			log.Warn("uploads that were left unfinished could not be given up; they cost as much as objects", "err", err)
		case n > 0:
			log.Info("gave up uploads that were left unfinished", "count", n)
		}
	}
}
