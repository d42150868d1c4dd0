package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Options of an agent. New checks them and fills in defaults for what is zero.
type Options struct {
	Coordinator coordinator.Coordinator
	Bucket      bucket.Bucket
	Cluster     siltstone.ClusterID // that both carry
	// Alone: the coordinator is locked for this process, so every other agent
	// is dead. Else agents share the shards (members.go).
	Alone bool
	// Address is where Kafka clients find this agent, PeerAddress where other
	// agents do (empty: nowhere), Zone the zone that it runs in: records are
	// replicated to agents in others.
	Address, PeerAddress, Zone string
	// Peers carries messages to other agents; nil: none can be reached, and
	// shards move between agents only when one of them stops, or dies.
	Peers peer.Transport
	// Incarnation names this run of the agent; nobody else ever has the same.
	Incarnation siltstone.Incarnation
	// Rand is drawn from by the step loop alone, so that a simulated agent
	// repeats itself. It must be different in every run.
	Rand func() uint64
	// Now is a clock that never jumps, by which the loop measures how long things
	// take; Wall says what time it is. nil: time.Now, which is both.
	Now, Wall func() time.Time
	// Log and Metrics may be nil.
	Log     *slog.Logger
	Metrics prometheus.Registerer

	Flush  Flush
	Memory Memory
	// CheckpointEntries is after how many entries a shard's fold is stored,
	// CheckpointAge after how long with at least one.
	CheckpointEntries int
	CheckpointAge     time.Duration
	// DrainTime is how long Run goes on after its context ended, to flush
	// and seal; negative is not at all.
	DrainTime time.Duration
	// Phase keeps the loop's timer from firing at the same instant as
	// anything else: it fires at whole microseconds plus Phase. Simulation only.
	Phase time.Duration
	// Turn is waited for by a fetch, of some number, before it goes on to the
	// next object, so that those that one load has woken go on one after the
	// other; nil: they need not. Simulation only.
	Turn func(ctx context.Context, number uint64)
	// Plant breaks a rule; only tests can make one that does.
	Plant planted.Bug
}

// Flush says when buffered batches are written out.
type Flush struct {
	// Bytes buffered start a flush at once, and bound an object (a larger
	// batch makes a larger object).
	Bytes int
	// Wait is how long the first one who waits for a flush waits for others.
	Wait time.Duration
	// Interval is how old a batch may become that nobody waits for.
	Interval time.Duration
	// Eager starts a flush as soon as somebody waits and the one before it is
	// committed. Who waits for that one comes again once it is answered: a
	// flush beside it would split clients into two halves, with twice the work.
	Eager bool
	// Uploads bounds the uploads in flight.
	Uploads int
}

// Memory bounds what the agent holds of records.
type Memory struct {
	// Unflushed bounds batches that are not flushed. Appends wait beyond it.
	Unflushed int
	// Tail bounds batches kept after their flush, for readers near the end.
	Tail int
	// Answers bounds what is kept for readers who have not read it yet: fetches
	// get less as it is used up, and wait beyond it. What was let go of by
	// everybody else is kept whole, object or slab.
	Answers int
	// Cache bounds what is kept of objects read back; those up to Whole bytes
	// are read whole (see tiered.Options.WholeBytes).
	Cache, Whole int
}

// validate checks options and fills in defaults.
func (o *Options) validate() error {
	switch {
	case o.Coordinator == nil || o.Bucket == nil:
		return errors.New("agent: a coordinator and a bucket are needed")
	case o.Incarnation == 0 || o.Rand == nil:
		return errors.New("agent: an incarnation and a source of randomness are needed")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Turn == nil {
		o.Turn = func(context.Context, uint64) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	setDefault(&o.Flush.Bytes, 8<<20)
	setDefault(&o.Flush.Wait, 250*time.Millisecond)
	setDefault(&o.Flush.Interval, 5*time.Second)
	setDefault(&o.Flush.Uploads, 8)
	setDefault(&o.Memory.Unflushed, 128<<20)
	setDefault(&o.Memory.Tail, 32<<20)
	setDefault(&o.Memory.Answers, 128<<20)
	setDefault(&o.Memory.Cache, 64<<20)
	setDefault(&o.Memory.Whole, 16<<20)
	setDefault(&o.CheckpointEntries, 1024)
	setDefault(&o.CheckpointAge, time.Hour)
	setDefault(&o.DrainTime, 5*time.Second)
	for name, n := range map[string]int{
		"flush bytes": o.Flush.Bytes, "uploads": o.Flush.Uploads,
		"unflushed bytes": o.Memory.Unflushed, "tail bytes": o.Memory.Tail, "bytes of answers": o.Memory.Answers, "cache bytes": o.Memory.Cache, "bytes read whole": o.Memory.Whole,
		"checkpoint entries": o.CheckpointEntries,
	} {
		if n < 0 {
			return fmt.Errorf("agent: %s is negative: %d", name, n)
		}
	}
	if o.Memory.Unflushed < o.Flush.Bytes {
		return fmt.Errorf("agent: %d bytes of unflushed memory are less than a flush of %d", o.Memory.Unflushed, o.Flush.Bytes)
	}
	return nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
