package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// sharing is a partition of each of two topics, both in one shard.
func sharing(t *testing.T, a, b siltstone.TopicID, partitions int32) (x, y siltstone.TopicPartition) {
	t.Helper()
	for i := range partitions * partitions {
		x = siltstone.TopicPartition{Topic: a, Partition: i / partitions}
		y = siltstone.TopicPartition{Topic: b, Partition: i % partitions}
		if shard.Of(x) == shard.Of(y) {
			return x, y
		}
	}
	t.Fatal("no shard has a partition of both")
	return x, y
}

// slowAppends makes every append to shards' ledgers take a while.
func (r *rig) slowAppends(d time.Duration) {
	r.set(func() {
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Append && strings.HasPrefix(c.Name, "shard-") {
				time.Sleep(d)
			}
			return do(ctx)
		}
	})
}

// TestTopicDeletedWhileItsSegmentIsAppended: the entry that is in flight names
// both topics, and is folded after one of them has gone.
func TestTopicDeletedWhileItsSegmentIsAppended(t *testing.T) {
	for _, gone := range []string{"one", "two"} {
		t.Run(gone, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				a := r.start()
				ids := map[string]siltstone.TopicID{"one": a.create("one", 16), "two": a.create("two", 16)}
				x, y := sharing(t, ids["one"], ids["two"], 16)
				r.slowAppends(3 * time.Second)
				of := map[siltstone.TopicID]*siltstone.AppendRequest{
					x.Topic: a.send(x, -1, aBatch(t, 2, 1, "x")),
					y.Topic: a.send(y, -1, aBatch(t, 3, 1, "y")),
				}
				time.Sleep(time.Second) // the upload is over, the append is not
				a.drop(gone, ids[gone])
				time.Sleep(10 * time.Second)
				for id, req := range of {
					<-req.Done
					if err := req.Parts[0].Err; id == ids[gone] && !errors.Is(err, siltstone.ErrUnknownPartition) || id != ids[gone] && err != nil {
						t.Errorf("%s was deleted, append to %s: %v", ids[gone], id, err)
					}
				}
				left := y
				if gone == "two" {
					left = x
				}
				if _, err := a.produce(left, -1, aBatch(t, 1, 1, "on")); err != nil {
					t.Fatal(err)
				}
				if got := a.readAll(left, 0); got[len(got)-1] != "on" {
					t.Errorf("read %q", got)
				}
				if err := a.end(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func (a *running) drop(name string, id siltstone.TopicID) {
	a.rig.t.Helper()
	var errs []error
	err := a.Change(context.Background(), func(v *topic.View) (d topic.Decision) {
		d, errs = topic.Delete(v, []siltstone.TopicID{id})
		return d
	})
	if err = errors.Join(append(errs, err)...); err != nil {
		a.rig.t.Fatalf("delete %s: %v", name, err)
	}
}

// TestPartitionsAddedBeforeTheFirstAreOpen: what waits to be opened is a
// topic's first partitions, those of others, and then more of the first.
func TestPartitionsAddedBeforeTheFirstAreOpen(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		busy := a.create("busy", 64)
		r.slowAppends(time.Second)
		for i := range int32(64) { // so that each shard's slot is taken
			a.send(siltstone.TopicPartition{Topic: busy, Partition: i}, -1, aBatch(t, 1, 1, "x"))
		}
		time.Sleep(500 * time.Millisecond)
		done := make(chan error, 3)
		change := func(decide func(*topic.View) (topic.Decision, []error)) {
			go func() {
				var errs []error
				err := a.Change(context.Background(), func(v *topic.View) (d topic.Decision) {
					d, errs = decide(v)
					return d
				})
				done <- errors.Join(append(errs, err)...)
			}()
			synctest.Wait()
		}
		for _, name := range []string{"a", "b"} {
			change(func(v *topic.View) (topic.Decision, []error) {
				return topic.Create(v, []topic.NewTopic{{Name: name, ID: siltstone.TopicID{name[0]}, Partitions: 32, Replication: -1}})
			})
		}
		change(func(v *topic.View) (topic.Decision, []error) {
			return topic.AddPartitions(v, []topic.NewPartitions{{Topic: "a", Total: 64}})
		})
		for range cap(done) {
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("partitions do not open")
			}
		}
	})
}

// TestTopicsWhileAShardIsReadAnew: the ledger was trimmed past what the leader
// had folded, by somebody else; topics come and go while it reads on.
func TestTopicsWhileAShardIsReadAnew(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		old := a.create("old", 16)
		stays, comes := sharing(t, a.create("stays", 16), siltstone.TopicID{1, 'n'}, 16)
		name := shard.Ledger(shard.Of(stays))
		trimmed := false
		r.set(func() {
			r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
				switch {
				case c.Name != name && !strings.Contains(c.Name, name):
				case c.Op == cfaulty.Append && !trimmed:
					trimmed = true
					if err := do(ctx); err != nil {
						return err
					}
					r.checkpointAndTrim(name)
					return coordinator.ErrUnknown
				case c.Op == cfaulty.Get:
					time.Sleep(3 * time.Second) // on the way to the checkpoint
				}
				return do(ctx)
			}
		})
		req := a.send(stays, -1, aBatch(t, 1, 1, "x"))
		time.Sleep(2 * time.Second)
		if _, leads := a.Leads(stays); leads {
			t.Fatal("does not read the shard anew")
		}
		a.drop("old", old)
		made := make(chan struct{})
		go func() { defer close(made); a.create("n", 16) }()
		select {
		case <-made:
		case <-time.After(time.Minute):
			t.Fatal("partitions that came meanwhile do not open")
		}
		<-req.Done
		if err := req.Parts[0].Err; err != nil {
			t.Error(err)
		}
		if _, err := a.produce(comes, -1, aBatch(t, 1, 1, "y")); err != nil {
			t.Error(err)
		}
		wantValues(t, a.readAll(stays, 0), "x")
		time.Sleep(time.Second)
		for p := range r.fold(shard.Of(stays)).Partitions() {
			if p.TP.Topic == old {
				t.Errorf("%s is in the fold, and its topic is deleted", p.TP)
			}
		}
	})
}

// dropNothing appends an entry that is no leader's, and concerns nobody.
func (r *rig) dropNothing(name string) {
	for i := range shard.Count {
		if shard.Ledger(i) == name {
			r.write(i, &shard.Drop{Objects: []segment.ObjectID{{Hour: 1, Incarnation: 0xdead, Number: 1}}})
		}
	}
}

// checkpointAndTrim does what a job may do.
func (r *rig) checkpointAndTrim(name string) {
	r.t.Helper()
	client := ledger.NewClient(ledger.Options{Coordinator: r.coord, Bucket: r.bucket, Rand: rand.Uint64})
	got, err := ledger.LoadFold[*shard.State](context.Background(), client, name, shard.New)
	if err != nil {
		r.t.Fatal(err)
	}
	r.addRows(got)
	if err := client.SaveCheckpoint(context.Background(), ledger.EncodeCheckpoint(name, got.At, got.Fold.Rows)); err != nil {
		r.t.Fatal(err)
	}
	if err := r.coord.Trim(context.Background(), name, got.At.Seq); err != nil {
		r.t.Fatal(err)
	}
}
