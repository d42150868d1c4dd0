package agent

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	cmemory "github.com/siltstone-io/siltstone/coordinator/memory"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	bfaulty "github.com/siltstone-io/siltstone/tiered/bucket/faulty"
	bmemory "github.com/siltstone-io/siltstone/tiered/bucket/memory"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// A rig is the stores, whose calls a test may give any fate, and the agents
// that run on them one after the other. All of it runs in a synctest bubble.
type rig struct {
	t      *testing.T
	coord  *cmemory.Coordinator
	bucket *bmemory.Bucket
	hook   cfaulty.Hook // of the coordinator's calls
	fate   func(op bfaulty.Op, key string) bfaulty.Fate
	adjust func(*Options)
	hub    *hub // where agents share the coordinator
	runs   uint64
	mu     sync.Mutex // of hook and fate while an agent runs
}

// set changes hook or fate while an agent runs.
func (r *rig) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// A running agent, and what ends it.
type running struct {
	*Agent
	rig  *rig
	stop context.CancelFunc
	cut  *atomic.Bool // from the coordinator, where several share it
	port *port
	done chan struct{}
	err  error // of Run, once done is closed
}

func bubble(t *testing.T, f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		f(t, &rig{t: t, coord: cmemory.New(), bucket: bmemory.New()})
	})
}

// start runs an agent and waits until it leads.
func (r *rig) start() *running {
	a := r.launch()
	select {
	case <-a.Ready():
	case <-a.done:
		r.t.Fatalf("agent ended: %v", a.err)
	case <-time.After(time.Minute):
		r.t.Fatalf("agent is not ready: %+v", a.Status())
	}
	return a
}

func (r *rig) launch() *running {
	r.runs++
	rnd := rand.New(rand.NewPCG(r.runs, 7))
	opts := Options{
		Coordinator: r.coordinator(), Bucket: r.store(), Alone: true,
		Incarnation: siltstone.Incarnation(r.runs), Rand: rnd.Uint64,
	}
	if r.adjust != nil {
		r.adjust(&opts)
	}
	agent, err := New(opts)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &running{Agent: agent, rig: r, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.err = agent.Run(ctx)
	}()
	r.t.Cleanup(func() {
		cancel()
		<-a.done
	})
	return a
}

// end stops an agent gracefully and returns what Run did.
func (a *running) end() error {
	a.rig.t.Helper()
	a.stop()
	select {
	case <-a.done:
		return a.err
	case <-time.After(time.Minute):
		a.rig.t.Fatal("agent does not stop")
		return nil
	}
}

// create makes a topic and returns its id.
func (a *running) create(name string, partitions int32) siltstone.TopicID {
	a.rig.t.Helper()
	id := siltstone.TopicID{1}
	copy(id[1:], name)
	var errs []error
	err := a.Change(context.Background(), func(v *topic.View) (d topic.Decision) {
		d, errs = topic.Create(v, []topic.NewTopic{{Name: name, ID: id, Partitions: partitions, Replication: -1}})
		return d
	})
	if err != nil || errs[0] != nil {
		a.rig.t.Fatalf("create %s: %v %v", name, err, errs)
	}
	return id
}

// aBatch makes a batch of n records with one timestamp.
func aBatch(t testing.TB, n int, ms int64, value string) []byte {
	t.Helper()
	b := batch.NewBuilder(batch.None, 0)
	for range n {
		b.Append(batch.Record{Timestamp: ms, Value: []byte(value)})
	}
	raw, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// produce appends and waits for the outcome.
func (a *running) produce(tp siltstone.TopicPartition, acks int16, batches ...[]byte) (siltstone.Offset, error) {
	a.rig.t.Helper()
	req := a.send(tp, acks, batches...)
	<-req.Done
	return req.Parts[0].Base, req.Parts[0].Err
}

func (a *running) send(tp siltstone.TopicPartition, acks int16, batches ...[]byte) *siltstone.AppendRequest {
	a.rig.t.Helper()
	var all []byte
	for _, b := range batches {
		all = append(all, b...)
	}
	req := &siltstone.AppendRequest{
		Acks: acks, Deadline: time.Now().Add(30 * time.Second), Done: make(chan struct{}),
		Parts: []siltstone.AppendPart{{Partition: tp, Batches: all}},
	}
	if err := a.Append(context.Background(), req); err != nil {
		a.rig.t.Fatalf("append: %v", err)
	}
	return req
}

// fetch reads one partition.
func (a *running) fetch(tp siltstone.TopicPartition, from siltstone.Offset, maxBytes int, wait time.Duration) siltstone.FetchedPart {
	a.rig.t.Helper()
	res, err := a.Fetch(context.Background(), &siltstone.FetchRequest{
		Deadline: time.Now().Add(wait), MinBytes: 1, MaxBytes: maxBytes,
		Parts: []siltstone.FetchPart{{Partition: tp, Offset: from, MaxBytes: maxBytes, Epoch: -1, LastEpoch: -1}},
	})
	if err != nil {
		a.rig.t.Fatalf("fetch: %v", err)
	}
	if res.Release != nil {
		res.Release()
	}
	return res.Parts[0]
}

// readAll reads values from an offset to the high watermark, and checks that no offset is missing.
func (a *running) readAll(tp siltstone.TopicPartition, from siltstone.Offset) (values []string) {
	a.rig.t.Helper()
	for {
		part := a.fetch(tp, from, 1<<20, 0)
		if part.Err != nil {
			a.rig.t.Fatalf("fetch at %d: %v", from, part.Err)
		}
		for _, piece := range part.Records {
			for b, err := range batch.All(piece) {
				if err != nil {
					a.rig.t.Fatal(err)
				}
				for rec, err := range batch.Records(b, 1<<20) {
					if err != nil {
						a.rig.t.Fatal(err)
					}
					if rec.Offset < from {
						continue
					}
					if rec.Offset != from {
						a.rig.t.Fatalf("offset %d follows %d", rec.Offset, from-1)
					}
					from++
					values = append(values, string(rec.Value))
				}
			}
		}
		if from >= part.HighWatermark {
			return values
		}
		if len(part.Records) == 0 {
			a.rig.t.Fatalf("nothing at %d, below the high watermark %d", from, part.HighWatermark)
		}
	}
}

func wantValues(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Fatalf("read %q, want %q", got, want)
	}
}

func (r *rig) coordinator() coordinator.Coordinator {
	return cfaulty.Wrap(r.coord.Open(), func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
		r.mu.Lock()
		hook := r.hook
		r.mu.Unlock()
		if hook == nil {
			return do(ctx)
		}
		return hook(ctx, c, do)
	})
}

func (r *rig) store() bucket.Bucket {
	return bfaulty.Wrap(r.bucket, func(op bfaulty.Op, key string) bfaulty.Fate {
		r.mu.Lock()
		fate := r.fate
		r.mu.Unlock()
		if fate == nil {
			return bfaulty.Fate{}
		}
		return fate(op, key)
	})
}

// fold is a shard as its ledger has it.
func (r *rig) fold(i int) *shard.State {
	r.t.Helper()
	client := ledger.NewClient(ledger.Options{Coordinator: r.coord, Bucket: r.bucket, Rand: rand.Uint64})
	got, err := ledger.LoadFold[*shard.State](context.Background(), client, shard.Ledger(i), shard.New)
	if err != nil {
		r.t.Fatal(err)
	}
	r.addRows(got)
	return got.Fold
}

// addRows gives a shard its producers.
func (r *rig) addRows(got ledger.Loaded[*shard.State, shard.Change]) {
	r.t.Helper()
	reader, err := tiered.New(tiered.Options{Bucket: r.bucket})
	if err != nil {
		r.t.Fatal(err)
	}
	defer reader.Close()
	lost := func(_ segment.ObjectID, err error) error { return err }
	if err := reader.AddRows(context.Background(), got.Fold, got.Tail, lost); err != nil {
		r.t.Fatal(err)
	}
}

// Leads says in which epoch the agent itself leads a partition's shard.
func (a *Agent) Leads(tp siltstone.TopicPartition) (siltstone.Epoch, bool) {
	l := ledBy(a.status.Load().Logs, shard.Of(tp))
	return l.Epoch, l.Own
}

// Coordinates says whether the agent itself coordinates a group.
func (a *Agent) Coordinates(id string) bool { return ledBy(a.status.Load().Groups, group.Of(id)).Own }
