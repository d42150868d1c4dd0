package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/internal/planted"
	bfaulty "github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

// kill ends an agent without a flush, and starts the next.
func (a *running) kill() *running {
	a.rig.t.Helper()
	a.stop()
	<-a.done
	return a.rig.start()
}

// A retrier sends batches, three at a time, and again in their order until
// each is acknowledged, as clients do.
type retrier struct {
	sender
	a       *running
	tp      siltstone.TopicPartition
	crash   chan struct{} // closed when the agent is to be killed
	crashes int
	made    int
	open    []*pending
}

type pending struct {
	bytes []byte
	req   *siltstone.AppendRequest
}

// send sends until so many batches are acknowledged.
func (r *retrier) send(t *testing.T, batches int) {
	t.Helper()
	for r.made < batches || len(r.open) > 0 {
		for len(r.open) < 3 && r.made < batches {
			p := &pending{bytes: r.batch(t, fmt.Sprint(r.made))}
			r.made++
			p.req = r.a.send(r.tp, -1, p.bytes)
			r.open = append(r.open, p)
		}
		select {
		case <-r.open[0].req.Done:
			switch err := r.open[0].req.Parts[0].Err; {
			case errors.Is(err, siltstone.ErrOutOfOrderSequence), errors.Is(err, siltstone.ErrTimedOut):
				t.Fatal(err)
			case err != nil:
				r.again()
			default:
				r.open = r.open[1:]
			}
		case <-r.crash:
			r.crashes++
			r.crash = make(chan struct{})
			r.a = r.a.kill()
			r.again()
		}
	}
}

// again sends what is not acknowledged once more.
func (r *retrier) again() {
	for _, p := range r.open {
		if p.req.Done != nil {
			<-p.req.Done
		}
		if p.req.Parts[0].Err != nil {
			p.req = r.a.send(r.tp, -1, p.bytes)
		}
	}
}

// TestCrashAtEveryStep: an agent is killed at a step of the write path, before
// it or after it without a reply, and what it left lands at once, never, or
// when the next one is about to lead. All batches are there once, in order.
func TestCrashAtEveryStep(t *testing.T) {
	steps := []struct {
		name string
		at   func(c cfaulty.Call, ledger string) bool // a call of the coordinator, or
		key  string                                   // a PUT whose key starts so
		nth  int                                      // it happens so often
	}{
		{"upload", nil, "", 3},
		{"segment", func(c cfaulty.Call, ledger string) bool { return c.Op == cfaulty.Append && c.Name == ledger }, "", 3},
		{"checkpoint", nil, "checkpoint/", 3},
		{"checkpoint pointer", func(c cfaulty.Call, ledger string) bool {
			return c.Op == cfaulty.Put && strings.Contains(c.Name, ledger)
		}, "", 3},
		{"trim", func(c cfaulty.Call, ledger string) bool { return c.Op == cfaulty.Trim && c.Name == ledger }, "", 1},
	}
	for _, step := range steps {
		for _, fate := range []string{"not made", "made, no reply", "lands late"} {
			for nth := range step.nth {
				t.Run(fmt.Sprint(step.name, "/", fate, "/", nth), func(t *testing.T) {
					bubble(t, func(t *testing.T, r *rig) {
						r.adjust = func(o *Options) { o.DrainTime, o.CheckpointEntries = -1, 3 }
						a, tp := r.one()
						p := &retrier{sender: sender{id: 7}, a: a, tp: tp, crash: make(chan struct{})}
						r.crashAt(p, nth, fate, step.at, step.key)
						p.send(t, 10)
						time.Sleep(25 * time.Hour) // so that a checkpoint trims; the producer is idle for longer than it is remembered
						p.send(t, 20)
						if p.crashes != 1 {
							t.Fatalf("%d crashes", p.crashes)
						}
						p.a = p.a.kill()
						var want []string
						for i := range 20 {
							want = append(want, fmt.Sprint(i))
						}
						time.Sleep(time.Minute) // until all has landed
						wantValues(t, p.a.readAll(tp, 0), want...)
					})
				})
			}
		}
	}
}

// crashAt lets the nth such call have a fate, and the agent be killed then.
func (r *rig) crashAt(p *retrier, nth int, fate string, at func(cfaulty.Call, string) bool, key string) {
	ledger := shard.Ledger(shard.Of(p.tp))
	var seen atomic.Int64
	var late atomic.Pointer[func()]
	now := func() bool { return seen.Add(1) == int64(nth)+1 }
	land := func() {
		if f := late.Swap(nil); f != nil {
			(*f)()
		}
	}
	r.set(func() {
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Append && c.Name == ledger {
				land() // before the next agent's Lead
			}
			if at == nil || !at(c, ledger) || !now() {
				return do(ctx)
			}
			switch fate {
			case "made, no reply":
				_ = do(ctx)
			case "lands late":
				f := func() { _ = do(context.Background()) }
				late.Store(&f)
			}
			close(p.crash)
			<-ctx.Done()
			return cfaulty.Unanswered(c)
		}
		r.fate = func(op bfaulty.Op, k string) bfaulty.Fate {
			if at != nil || op != bfaulty.Put || strings.HasPrefix(k, "checkpoint/") != (key != "") || key != "" && !strings.Contains(k, ledger) || !now() {
				return bfaulty.Fate{}
			}
			f := bfaulty.Fate{Err: errors.New("no reply"), Applied: fate == "made, no reply"}
			if fate == "lands late" {
				f.Late = time.Second
			}
			close(p.crash)
			return f
		}
	})
}

// TestProducersOfALateSegment: a Segment of an agent that died lands when the
// next has read the ledger and not led yet: it reads the ledger anew.
func TestProducersOfALateSegment(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.DrainTime = -1 }
		a, tp := r.one()
		s := &sender{id: 7}
		a.mustProduce(tp, 0, s.batch(t, "x"))
		name := shard.Ledger(shard.Of(tp))
		late := make(chan func(context.Context) error, 100)
		r.set(func() {
			r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
				if c.Op != cfaulty.Append || c.Name != name {
					return do(ctx)
				}
				late <- do
				<-ctx.Done()
				return fmt.Errorf("no reply: %w", coordinator.ErrUnknown)
			}
		})
		b := s.batch(t, "late")
		a.send(tp, -1, b)
		time.Sleep(time.Second)
		a.stop()
		<-a.done
		next := r.launch()
		time.Sleep(time.Second)
		r.set(func() { r.hook = nil })
		_ = (<-late)(context.Background()) // the Segment; the Lead that waits is sent again
		<-next.Ready()
		next.leadsAt(tp, 2)
		next.mustProduce(tp, 1, b)
		next.mustProduce(tp, 2, s.batch(t, "y"))
		wantValues(t, next.readAll(tp, 0), "x", "late", "y")
	})
}

// TestSequencesThroughCheckpoints: what is known of producers comes from the
// checkpoint, from the objects of the entries after it, or from both.
func TestSequencesThroughCheckpoints(t *testing.T) {
	for entries := 2; entries <= 8; entries++ {
		t.Run(fmt.Sprint("after ", entries), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.adjust = func(o *Options) { o.DrainTime, o.CheckpointEntries = -1, entries }
				sequencesThroughRestarts(t, r, true)
			})
		})
	}
}

func TestPlantedSequencesNotCheckpointed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) {
			o.DrainTime, o.CheckpointEntries = -1, 3
			o.Plant = planted.ForTest(t, planted.SequencesNotCheckpointed)
		}
		sequencesThroughRestarts(t, r, false)
	})
}

// sequencesThroughRestarts repeats batches of two producers after restarts; if
// all is well the log has them once.
func sequencesThroughRestarts(t *testing.T, r *rig, well bool) {
	a, tp := r.one()
	one, two := &sender{id: 1}, &sender{id: 2, epoch: 3}
	var sent [][]byte
	for i := range 12 {
		s := []*sender{one, two}[i%2]
		sent = append(sent, s.batch(t, fmt.Sprint(i)))
		a.mustProduce(tp, siltstone.Offset(i), sent[i])
		if i%3 == 2 {
			a = a.kill()
		}
	}
	repeated := 0
	for i, b := range sent[2:] { // the last five of each
		if base, err := a.produce(tp, -1, b); err == nil && base == siltstone.Offset(i+2) {
			repeated++
		}
	}
	if n := len(a.readAll(tp, 0)); well && (repeated != 10 || n != 12) || !well && repeated == 10 {
		t.Errorf("%d of 10 batches were known, %d records; well: %v", repeated, n, well)
	}
}

// TestProducersOfManyShards: at a start an object is read once for all shards.
func TestProducersOfManyShards(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.DrainTime = -1 }
		a := r.start()
		id := a.create("t", 32)
		senders := make([]sender, 32)
		sent := make([][]byte, 32)
		for range 20 {
			var all []*siltstone.AppendRequest
			for p := range senders {
				senders[p].id = int64(p)
				sent[p] = senders[p].batch(t, "x")
				all = append(all, a.send(siltstone.TopicPartition{Topic: id, Partition: int32(p)}, -1, sent[p]))
			}
			for _, req := range all {
				if <-req.Done; req.Parts[0].Err != nil {
					t.Fatal(req.Parts[0].Err)
				}
			}
		}
		var gets atomic.Int64
		r.set(func() {
			r.fate = func(op bfaulty.Op, _ string) bfaulty.Fate {
				if op == bfaulty.Get {
					gets.Add(1)
				}
				return bfaulty.Fate{Delay: 10 * time.Millisecond}
			}
		})
		began := time.Now()
		b := a.kill()
		if gets.Load() != 20 || time.Since(began) > 100*time.Millisecond {
			t.Errorf("%d reads of 20 objects, in %v", gets.Load(), time.Since(began))
		}
		for p := range sent {
			b.mustProduce(siltstone.TopicPartition{Topic: id, Partition: int32(p)}, 19, sent[p])
		}
	})
}

// TestProducersOfALostObject: it does not keep the shard from being led. Its
// producer learns that records are lost; others do not notice.
func TestProducersOfALostObject(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.DrainTime = -1 }
		a, tp := r.one()
		lost, well := &sender{id: 1}, &sender{id: 2}
		a.mustProduce(tp, 0, lost.batch(t, "a"))
		a.mustProduce(tp, 1, well.batch(t, "b"))
		var put string
		r.set(func() {
			r.fate = func(op bfaulty.Op, key string) bfaulty.Fate {
				if op == bfaulty.Put {
					put = key
				}
				return bfaulty.Fate{}
			}
		})
		a.mustProduce(tp, 2, lost.batch(t, "lost"))
		if err := r.bucket.Delete(t.Context(), []string{put}); err != nil {
			t.Fatal(err)
		}
		a = a.kill()
		a.mustRefuse(tp, siltstone.ErrOutOfOrderSequence, lost.batch(t, "c"))
		a.mustProduce(tp, 3, well.batch(t, "d"))
	})
}

// TestObjectGoneSinceTheCheckpoint: while an agent reads the objects of a
// ledger's tail a newer checkpoint is stored, and an object collected.
func TestObjectGoneSinceTheCheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.DrainTime = -1 }
		a, tp := r.one()
		s := &sender{id: 7}
		var sent [][]byte
		for i := range 4 {
			sent = append(sent, s.batch(t, fmt.Sprint(i)))
			a.mustProduce(tp, siltstone.Offset(i), sent[i])
		}
		name := shard.Ledger(shard.Of(tp))
		var collected atomic.Bool // the first object that is read
		r.set(func() {
			r.fate = func(op bfaulty.Op, key string) bfaulty.Fate {
				if op == bfaulty.Get && !strings.HasPrefix(key, "checkpoint/") && collected.CompareAndSwap(false, true) {
					r.checkpointAndTrim(name)
					if err := r.bucket.Delete(context.Background(), []string{key}); err != nil {
						t.Error(err)
					}
				}
				return bfaulty.Fate{}
			}
		})
		a = a.kill()
		if !collected.Load() {
			t.Fatal("no object was read")
		}
		for i, b := range sent {
			a.mustProduce(tp, siltstone.Offset(i), b)
		}
		a.mustProduce(tp, 4, s.batch(t, "on"))
	})
}

// TestIdleProducersAreForgotten: where a checkpoint is stored, in memory and in it.
func TestIdleProducersAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.DrainTime, o.CheckpointAge = -1, time.Hour }
		a, tp := r.one()
		known := func() (ids []int64) {
			p, _ := r.fold(shard.Of(tp)).Partition(tp)
			return slices.Sorted(maps.Keys(p.Producers))
		}
		for id := range int64(10) {
			s := &sender{id: id}
			a.mustProduce(tp, siltstone.Offset(id), s.batch(t, "x"))
		}
		time.Sleep(23 * time.Hour)
		if got := known(); len(got) != 10 {
			t.Errorf("after less than a day: %v", got)
		}
		s := &sender{id: 99}
		a.mustProduce(tp, 10, s.batch(t, "x"))
		time.Sleep(2 * time.Hour)
		a.mustProduce(tp, 11, s.batch(t, "y"))
		time.Sleep(2 * time.Hour)
		if got := known(); !slices.Equal(got, []int64{99}) {
			t.Errorf("after more than a day, and a checkpoint: %v", got)
		}
		op := &foldOp{tp: tp, done: make(chan struct{})}
		if err := a.do(t.Context(), op, op.done); err != nil || op.producers != 1 {
			t.Errorf("%d are in memory, %v", op.producers, err)
		}
	})
}

// A foldOp asks the loop what its fold has.
type foldOp struct {
	tp        siltstone.TopicPartition
	done      chan struct{}
	producers int
}

func (op *foldOp) handle(c *core) {
	p, _ := c.parts[op.tp].shard.fold().Partition(op.tp)
	op.producers = len(p.Producers)
	close(op.done)
}

func (a *running) setCluster(name, value string) {
	a.rig.t.Helper()
	var err error
	changed := a.Change(context.Background(), func(v *topic.View) (d topic.Decision) {
		d, err = topic.AlterCluster(v, []topic.ConfigOp{{Name: name, Value: &value}})
		return d
	})
	if err = errors.Join(changed, err); err != nil {
		a.rig.t.Fatal(err)
	}
}

// deleteRecords moves a log start.
func (a *running) deleteRecords(tp siltstone.TopicPartition, start siltstone.Offset) {
	a.rig.t.Helper()
	req := &siltstone.TrimRequest{Deadline: time.Now().Add(time.Minute), Parts: []siltstone.TrimPart{{Partition: tp, Start: start}}}
	if err := errors.Join(a.Trim(context.Background(), req), req.Parts[0].Err); err != nil {
		a.rig.t.Fatal(err)
	}
}

// retain moves a log start as a job does, without the leader.
func (r *rig) retain(tp siltstone.TopicPartition, start siltstone.Offset) {
	r.t.Helper()
	known, _ := r.fold(shard.Of(tp)).Partition(tp)
	r.write(shard.Of(tp), &shard.Trim{Parts: []shard.TrimPart{{Number: known.Number, Partition: tp.Partition, Start: start}}})
}
