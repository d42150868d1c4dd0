package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// dev is a cluster of one agent, with its stores in a folder.
type dev struct {
	server
	dir string
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
	cmd.Flags().StringVar(&d.dir, "data", defaultFolder, "data `folder`; made where it is missing")
	d.register(cmd.Flags())
	return cmd
}

// run serves until ctx ends, then flushes what is buffered.
func (d *dev) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	settings, err := d.check()
	if err != nil {
		return err
	}
	if err := checkFolderName(d.dir); err != nil {
		return err
	}
	settings.memory.limit()
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
	stores, err := openStores(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()

	s := newService(settings, at, stderr)
	s.store = (&url.URL{Scheme: "file", Path: filepath.Join(dir, objectsName)}).String()
	isNew := false
	s.prepare = func(ctx context.Context) (o agent.Options, err error) {
		o, isNew, err = stores.engine(ctx)
		o.Memory = s.memory.agent(wholeLocally)
		return o, err
	}
	s.ready = func(ctx context.Context, engine *agent.Agent) error {
		if isNew {
			if err := setForDevelopment(ctx, engine); err != nil {
				return err
			}
		}
		greet(stdout, dir, at, s.advertise)
		return nil
	}
	if err := s.run(ctx); err != nil {
		return explainFolder(dir, err)
	}
	fmt.Fprintln(stdout, "stopped; the data is in", dir)
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

// engine is how an agent runs on the stores of a folder; isNew says that they
// held no cluster before.
func (s *stores) engine(ctx context.Context) (o agent.Options, isNew bool, err error) {
	ledgers := ledger.NewClient(ledger.Options{Coordinator: s.coordinator, Bucket: s.bucket, Rand: rand.Uint64})
	fresh := newClusterID()
	cluster, err := ledgers.EnsureClusterID(ctx, fresh)
	return agent.Options{
		Coordinator: s.coordinator, Alone: true, Bucket: s.bucket, Cluster: cluster,
		Flush: agent.Flush{Eager: true, Wait: 10 * time.Millisecond},
	}, cluster == fresh, err
}

func newClusterID() (id siltstone.ClusterID) {
	_, _ = crand.Read(id[:]) // never fails
	return id
}
