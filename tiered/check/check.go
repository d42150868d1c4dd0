// Package check verifies a whole cluster at rest: the chain of hashes of every
// ledger, what it folds to, every checkpoint, every object that a fold refers
// to with each of its batches, and that folds and objects say the same, of
// producers too. It
// promises to change nothing, and to go on after damage as far as it can. It
// runs on its caller's goroutine.
package check

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Options are the two stores of a cluster.
type Options struct {
	Coordinator coordinator.Coordinator
	Bucket      bucket.Bucket
	// Now tells which producers cannot have been forgotten yet.
	Now time.Time
}

// Report is what a check found. Empty Problems are a clean cluster.
type Report struct {
	Cluster    string    `json:"cluster"`
	Ledgers    []Ledger  `json:"ledgers"`
	Topics     int       `json:"topics"`
	Partitions int       `json:"partitions"`
	Groups     int       `json:"groups"`
	Offsets    int       `json:"offsets"` // that groups have committed
	Objects    int       `json:"objects"` // that a fold refers to
	Bytes      int64     `json:"bytes"`   // of those
	Batches    int64     `json:"batches"`
	Records    int64     `json:"records"`
	Orphans    []Object  `json:"orphans"` // objects that nothing refers to: of failed flushes, or not collected yet
	Problems   []Problem `json:"problems"`
	// Unreadable is what the problems of objects cost.
	Unreadable []Unreadable `json:"unreadable"`
}

// Ledger is how far one goes.
type Ledger struct {
	Name       string          `json:"name"`
	Floor      coordinator.Seq `json:"floor"`
	Last       coordinator.Seq `json:"last"`
	Checkpoint coordinator.Seq `json:"checkpoint"` // 0: none
}

// Object is one of the bucket.
type Object struct {
	Key       string `json:"key"`
	SizeBytes int64  `json:"size_bytes"`
}

// Problem is one thing that is not as it must be.
type Problem struct {
	Where string `json:"where"`
	What  string `json:"what"`
}

func (p Problem) String() string { return p.Where + ": " + p.What }

// checker is one run.
type checker struct {
	Options
	ledgers *ledger.Client
	report  *Report

	clusterID siltstone.ClusterID
	topics    *topic.View
	shards    []*shardHistory
	refs      map[string][]ref // by object key
	used      map[string]bool  // keys of other objects that belong here
}

// Run checks a cluster that nobody writes to. An error means that it could not
// read on; what it found until then is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	c := &checker{
		Options: o,
		ledgers: ledger.NewClient(ledger.Options{Coordinator: o.Coordinator, Bucket: o.Bucket, Rand: rand.Uint64}),
		report:  &Report{Orphans: []Object{}, Problems: []Problem{}, Unreadable: []Unreadable{}},
		refs:    map[string][]ref{},
		used:    map[string]bool{coordinator.ClusterKey: true},
	}
	return c.report, c.run(ctx)
}

func (c *checker) run(ctx context.Context) error {
	if err := c.checkClusterID(ctx); err != nil {
		return err
	}
	topics, err := checkLedger(ctx, c, topic.Ledger, ofTopics)
	if err != nil {
		return err
	}
	c.topics = topics.View()
	c.checkTopics()
	for n := range shard.Count {
		h := newHistory(shard.Ledger(n))
		k := ofShard
		k.seen = h.see
		if h.fold, err = checkLedger(ctx, c, shard.Ledger(n), k); err != nil {
			return err
		}
		c.shards = append(c.shards, h)
		c.checkShard(n, h)
	}
	for n := range group.Count {
		fold, err := checkLedger(ctx, c, group.Ledger(n), ofGroups)
		if err != nil {
			return err
		}
		c.checkGroups(n, fold)
	}
	err = c.checkObjects(ctx)
	c.report.Unreadable = sumUnreadable(c.report.Unreadable)
	if err != nil {
		return err
	}
	for _, h := range c.shards {
		if err := c.checkProducers(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) problem(where, format string, args ...any) {
	c.report.Problems = append(c.report.Problems, Problem{where, fmt.Sprintf(format, args...)})
}

// damage notes an error that is about what is stored, and returns any other.
func (c *checker) damage(where string, err error) error {
	for _, kind := range []error{siltstone.ErrCorrupt, siltstone.ErrNewerFormat, siltstone.ErrForeign, bucket.ErrNotFound, bucket.ErrRange} {
		if errors.Is(err, kind) {
			c.problem(where, "%v", err)
			return nil
		}
	}
	return err
}

func (c *checker) checkClusterID(ctx context.Context) error {
	id, err := c.ledgers.ClusterID(ctx)
	c.clusterID, c.report.Cluster = id, id.String()
	if err == nil && id == (siltstone.ClusterID{}) {
		c.problem("cluster id", "neither coordinator nor bucket has one")
	}
	return c.damage("cluster id", err)
}

func (c *checker) checkTopics() {
	numbers := map[uint32]string{}
	for _, t := range c.topics.All() {
		c.report.Topics++
		c.report.Partitions += int(t.Partitions)
		if other, taken := numbers[t.Number]; taken {
			c.problem("topic "+t.Name, "it has the number %d, and so has %s", t.Number, other)
		}
		numbers[t.Number] = t.Name
	}
}
