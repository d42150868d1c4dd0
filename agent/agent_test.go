package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	bfaulty "github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

func TestRecordsSurviveRestarts(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		id := a.create("t", 3)
		tp := siltstone.TopicPartition{Topic: id, Partition: 1}
		for i := range 3 {
			base, err := a.produce(tp, -1, aBatch(t, 2, 1, fmt.Sprint(i)))
			if err != nil || base != siltstone.Offset(2*i) {
				t.Fatalf("batch %d: offset %d, %v", i, base, err)
			}
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		b := r.start()
		wantValues(t, b.readAll(tp, 0), "0", "0", "1", "1", "2", "2")
		if base, err := b.produce(tp, -1, aBatch(t, 1, 1, "x")); err != nil || base != 6 {
			t.Fatalf("after a restart: offset %d, %v", base, err)
		}
		wantValues(t, b.readAll(tp, 5), "2", "x")
	})
}

// TestKilledAgentLosesOnlyWhatIsNotFlushed: what is buffered is lost with the agent, and its offsets are used again.
func TestKilledAgentLosesOnlyWhatIsNotFlushed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.DrainTime = -1 }
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "safe")); err != nil {
			t.Fatal(err)
		}
		if base, err := a.produce(tp, 1, aBatch(t, 1, 1, "buffered")); err != nil || base != 1 {
			t.Fatalf("acks=1: offset %d, %v", base, err)
		}
		if part := a.fetch(tp, 1, 1000, 0); part.HighWatermark != 1 || len(part.Records) > 0 {
			t.Fatalf("a reader sees what is not safe: %+v", part)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		b := r.start()
		wantValues(t, b.readAll(tp, 0), "safe")
		end, err := b.EpochEnd(context.Background(), tp, 1, -1)
		if err != nil || end != (siltstone.EpochEnd{Epoch: 1, End: 1}) {
			t.Fatalf("epoch 1 ends at %+v, %v", end, err)
		}
	})
}

func TestDrainFlushesAndSeals(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		if _, err := a.produce(tp, 1, aBatch(t, 1, 1, "buffered")); err != nil {
			t.Fatal(err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		entries, err := r.coord.Read(context.Background(), shard.Ledger(shard.Of(tp)), 0, 100)
		if err != nil || len(entries) != 4 { // Lead, Open, Segment, the seal
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		wantValues(t, r.start().readAll(tp, 0), "buffered")
	})
}

func TestFlushWaitsForOthersWhenSomebodyWaits(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var puts atomic.Int64
		r.fate = func(op bfaulty.Op, _ string) bfaulty.Fate {
			if op == bfaulty.Put {
				puts.Add(1)
			}
			return bfaulty.Fate{}
		}
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		took := func(f func()) time.Duration {
			start := time.Now()
			f()
			return time.Since(start)
		}
		if d := took(func() {
			one := a.send(tp, -1, aBatch(t, 1, 1, "a"))
			two := a.send(tp, -1, aBatch(t, 1, 1, "b"))
			<-one.Done
			<-two.Done
		}); d != 250*time.Millisecond || puts.Load() != 1 {
			t.Fatalf("two acks=all took %s and %d uploads", d, puts.Load())
		}
		// Nobody waits: the batch is flushed once it is old.
		if _, err := a.produce(tp, 1, aBatch(t, 1, 1, "c")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4999 * time.Millisecond)
		if puts.Load() != 1 {
			t.Fatal("flushed although nobody waits")
		}
		time.Sleep(2 * time.Millisecond)
		if puts.Load() != 2 {
			t.Fatal("not flushed after the interval")
		}
		// A reader at the end waits for it.
		if _, err := a.produce(tp, 1, aBatch(t, 1, 1, "d")); err != nil {
			t.Fatal(err)
		}
		if d := took(func() {
			if part := a.fetch(tp, 3, 1000, time.Minute); len(part.Records) != 1 {
				t.Fatalf("%+v", part)
			}
		}); d != 250*time.Millisecond {
			t.Fatalf("a reader waited for %s", d)
		}
		// Much is flushed at once.
		if d := took(func() {
			if _, err := a.produce(tp, -1, aBatch(t, 9, 1, strings.Repeat("x", 1<<20))); err != nil {
				t.Fatal(err)
			}
		}); d != 0 {
			t.Fatalf("9 MiB waited for %s", d)
		}
	})
}

func TestLongPoll(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		id := a.create("t", 2)
		tp := siltstone.TopicPartition{Topic: id}
		start := time.Now()
		if part := a.fetch(tp, 0, 1000, 500*time.Millisecond); len(part.Records) > 0 || part.Err != nil || time.Since(start) != 500*time.Millisecond {
			t.Fatalf("an empty partition answered %+v after %s", part, time.Since(start))
		}
		// Two records over two partitions are as many bytes as are asked for.
		one := aBatch(t, 1, 1, "x")
		req := &siltstone.FetchRequest{
			Deadline: time.Now().Add(time.Minute), MinBytes: 2 * len(one), MaxBytes: 1000,
			Parts: []siltstone.FetchPart{
				{Partition: siltstone.TopicPartition{Topic: id}, MaxBytes: 1000, Epoch: -1, LastEpoch: -1},
				{Partition: siltstone.TopicPartition{Topic: id, Partition: 1}, MaxBytes: 1000, Epoch: -1, LastEpoch: -1},
			},
		}
		got := make(chan *siltstone.FetchResult, 1)
		go func() {
			res, _ := a.Fetch(context.Background(), req)
			got <- res
		}()
		for p := range int32(2) {
			synctest.Wait()
			select {
			case res := <-got:
				t.Fatalf("answered with less than it asked for: %+v", res)
			default:
			}
			if _, err := a.produce(siltstone.TopicPartition{Topic: id, Partition: p}, -1, one); err != nil {
				t.Fatal(err)
			}
		}
		res := <-got
		if len(res.Parts[0].Records) != 1 || len(res.Parts[1].Records) != 1 {
			t.Fatalf("%+v", res)
		}
	})
}

func TestFetchLimits(t *testing.T) {
	for _, where := range []string{"tail", "bucket"} {
		t.Run(where, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				a := r.start()
				tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
				big, small := aBatch(t, 1, 1, strings.Repeat("b", 900<<10)), aBatch(t, 1, 1, "s")
				for _, b := range [][]byte{big, small, small} {
					if _, err := a.produce(tp, -1, b); err != nil {
						t.Fatal(err)
					}
				}
				if where == "bucket" {
					if err := a.end(); err != nil {
						t.Fatal(err)
					}
					a = r.start()
				}
				for _, limit := range []int{0, 1, 1000, 900 << 10} {
					if part := a.fetch(tp, 0, limit, 0); size(part) != len(big) {
						t.Fatalf("limit %d gave %d bytes, the first batch has %d", limit, size(part), len(big))
					}
				}
				if part := a.fetch(tp, 1, 2*len(small)-1, 0); size(part) != len(small) {
					t.Fatalf("%d bytes", size(part))
				}
				if part := a.fetch(tp, 1, 2*len(small), 0); size(part) != 2*len(small) {
					t.Fatalf("%d bytes", size(part))
				}
				if part := a.fetch(tp, 4, 1000, 0); !errors.Is(part.Err, siltstone.ErrOffsetOutOfRange) {
					t.Fatalf("past the end: %+v", part)
				}
			})
		})
	}
}

func size(p siltstone.FetchedPart) (n int) {
	for _, r := range p.Records {
		n += len(r)
	}
	return n
}

// TestLostReplies: appends and uploads of which no reply comes are settled, and nothing is there twice.
func TestLostReplies(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var n atomic.Int64
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Append && n.Add(1)%2 == 0 {
				return cfaulty.LoseReply(ctx, c, do)
			}
			return do(ctx)
		}
		r.fate = func(op bfaulty.Op, _ string) bfaulty.Fate {
			if op == bfaulty.Put && n.Add(1)%2 == 0 {
				return bfaulty.Fate{Err: errors.New("no reply"), Applied: true}
			}
			return bfaulty.Fate{}
		}
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprint(i))
			if base, err := a.produce(tp, -1, aBatch(t, 1, 1, want[i])); err != nil || base != siltstone.Offset(i) {
				t.Fatalf("offset %d, %v", base, err)
			}
		}
		wantValues(t, a.readAll(tp, 0), want...)
	})
}

// TestLateLeadOfADeadAgent: an append of an agent that died lands before the
// next one's; that one folds it and leads at a later epoch.
func TestLateLeadOfADeadAgent(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "x")); err != nil {
			t.Fatal(err)
		}
		name := shard.Ledger(shard.Of(tp))
		var late []func(context.Context) error
		hold := func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op != cfaulty.Append || c.Name != name {
				return do(ctx)
			}
			r.set(func() { late = append(late, do) })
			<-ctx.Done()
			return fmt.Errorf("no reply: %w", coordinator.ErrUnknown)
		}
		r.set(func() { r.hook = hold })
		r.adjust = func(o *Options) { o.DrainTime = -1 }
		if req := a.send(tp, -1, aBatch(t, 1, 1, "late")); req.Done == nil {
			t.Fatal("no request")
		}
		time.Sleep(time.Second)
		a.stop() // it drains in vain
		<-a.done
		b := r.launch()
		time.Sleep(time.Second)
		var held []func(context.Context) error
		r.set(func() { r.hook, held = nil, late })
		if b.Status().Ready || len(held) < 2 {
			t.Fatalf("ready without its Lead; %d appends", len(held))
		}
		_ = held[0](context.Background()) // the old agent's Segment lands
		<-b.Ready()
		if e, _ := b.Leads(tp); e != 2 {
			t.Fatalf("leads in epoch %d", e)
		}
		wantValues(t, b.readAll(tp, 0), "x", "late")
		if base, err := b.produce(tp, -1, aBatch(t, 1, 1, "y")); err != nil || base != 2 {
			t.Fatalf("offset %d, %v", base, err)
		}
	})
}

func TestBackPressure(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) {
			o.Flush.Bytes, o.Memory.Unflushed, o.Flush.Interval = 1<<20, 2<<20, time.Hour
		}
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		b := aBatch(t, 1, 1, strings.Repeat("x", 600<<10))
		for range 20 { // each is taken as soon as those before it are flushed
			if _, err := a.produce(tp, 1, b); err != nil {
				t.Fatal(err)
			}
		}
		r.set(func() { r.fate = noStore })
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		taken := 0
		for ; taken < 20; taken++ {
			req := &siltstone.AppendRequest{Acks: 1, Deadline: time.Now().Add(time.Minute), Done: make(chan struct{}), Parts: []siltstone.AppendPart{{Partition: tp, Batches: b}}}
			if err := a.Append(ctx, req); err != nil {
				if !errors.Is(err, siltstone.ErrUnavailable) {
					t.Fatal(err)
				}
				break
			}
			<-req.Done
		}
		if taken > 3 {
			t.Fatalf("%d appends of 600 KiB were taken into 2 MiB", taken)
		}
		if s := a.Status(); s.Ready || !strings.Contains(s.Why, "no store") {
			t.Fatalf("it says that it is ready: %+v", s)
		}
		r.set(func() { r.fate = nil })
		time.Sleep(10 * time.Second)
		if s := a.Status(); !s.Ready {
			t.Fatalf("%+v", s)
		}
		if _, err := a.produce(tp, -1, b); err != nil {
			t.Fatal(err)
		}
		if req := a.readAll(tp, 0); len(req) != 20+taken+1 {
			t.Fatalf("%d records, %d were taken", len(req), 20+taken+1)
		}
	})
}

func noStore(bfaulty.Op, string) bfaulty.Fate { return bfaulty.Fate{Err: errors.New("no store")} }

func TestProduceTimesOutAndIsWrittenOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		r.set(func() { r.fate = noStore })
		start := time.Now()
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "a")); !errors.Is(err, siltstone.ErrTimedOut) || time.Since(start) != 30*time.Second {
			t.Fatalf("%v after %s", err, time.Since(start))
		}
		r.set(func() { r.fate = nil })
		time.Sleep(10 * time.Second)
		wantValues(t, a.readAll(tp, 0), "a")
	})
}

func TestDeletedTopic(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		id := a.create("t", 20)
		kept := siltstone.TopicPartition{Topic: a.create("kept", 1)}
		tp := siltstone.TopicPartition{Topic: id, Partition: 3}
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "a")); err != nil {
			t.Fatal(err)
		}
		waiting := a.send(tp, -1, aBatch(t, 1, 1, "b"))
		reader := make(chan siltstone.FetchedPart, 1)
		go func() { reader <- a.fetch(tp, 1, 1000, time.Hour) }()
		synctest.Wait()
		if err := a.Change(context.Background(), func(v *topic.View) topic.Decision {
			d, _ := topic.Delete(v, []siltstone.TopicID{id})
			return d
		}); err != nil {
			t.Fatal(err)
		}
		if <-waiting.Done; !errors.Is(waiting.Parts[0].Err, siltstone.ErrUnknownPartition) {
			t.Fatalf("a producer got %v", waiting.Parts[0].Err)
		}
		if part := <-reader; !errors.Is(part.Err, siltstone.ErrUnknownPartition) {
			t.Fatalf("a reader got %v", part.Err)
		}
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "c")); !errors.Is(err, siltstone.ErrUnknownPartition) {
			t.Fatalf("%v", err)
		}
		if _, err := a.produce(kept, -1, aBatch(t, 1, 1, "k")); err != nil {
			t.Fatal(err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		b := r.start()
		wantValues(t, b.readAll(kept, 0), "k")
		for i := range shard.Count {
			got := r.fold(i)
			for p := range got.Partitions() {
				if p.TP.Topic == id {
					t.Fatalf("shard %d still has %s", i, p.TP)
				}
			}
		}
	})
}

func TestCheckpointsTrimsAndAMonthOff(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.CheckpointEntries = 5 }
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		var want []string
		more := func(a *running, n int, pause time.Duration) {
			for range n {
				want = append(want, fmt.Sprint(len(want)))
				if _, err := a.produce(tp, -1, aBatch(t, 1, 1, want[len(want)-1])); err != nil {
					t.Fatal(err)
				}
				time.Sleep(pause)
			}
		}
		more(a, 20, 6*time.Hour)
		name := shard.Ledger(shard.Of(tp))
		floor, err := r.coord.Floor(context.Background(), name)
		if err != nil || floor == 0 {
			t.Fatalf("nothing was trimmed in five days: floor %d, %v", floor, err)
		}
		for i := range 10 {
			a.create(fmt.Sprint("t", i), 1)
		}
		time.Sleep(2 * 24 * time.Hour)
		for i := range 5 {
			a.create(fmt.Sprint("u", i), 1)
		}
		time.Sleep(time.Minute)
		if floor, err := r.coord.Floor(context.Background(), topic.Ledger); err != nil || floor == 0 {
			t.Fatalf("of the topics nothing was trimmed: floor %d, %v", floor, err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * 24 * time.Hour)
		b := r.start()
		if n := b.Topics().Len(); n != 16 {
			t.Fatalf("%d topics", n)
		}
		wantValues(t, b.readAll(tp, 0), want...)
		more(b, 3, 0)
		wantValues(t, b.readAll(tp, 0), want...)
	})
}
