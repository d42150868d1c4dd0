package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// sendTrim asks for new log starts, and returns once the loop has the request.
func (a *running) sendTrim(wait time.Duration, parts ...siltstone.TrimPart) (r *siltstone.TrimRequest, done <-chan error) {
	r = &siltstone.TrimRequest{Deadline: time.Now().Add(wait), Parts: parts}
	ended := make(chan error, 1)
	go func() { ended <- a.Trim(context.Background(), r) }()
	synctest.Wait()
	return r, ended
}

func (a *running) trim(tp siltstone.TopicPartition, start siltstone.Offset) (siltstone.Offset, error) {
	a.rig.t.Helper()
	r := &siltstone.TrimRequest{Deadline: time.Now().Add(time.Minute), Parts: []siltstone.TrimPart{{Partition: tp, Start: start}}}
	if err := a.Trim(context.Background(), r); err != nil {
		return -1, err
	}
	return r.Parts[0].LogStart, r.Parts[0].Err
}

func (a *running) earliest(tp siltstone.TopicPartition) siltstone.Offset {
	a.rig.t.Helper()
	found, err := a.OffsetForTime(context.Background(), tp, siltstone.TimeEarliest, -1, siltstone.ReadUncommitted)
	if err != nil {
		a.rig.t.Fatal(err)
	}
	return found.Offset
}

// noAlarms fails the test where an agent logs an error: a void entry, above all.
func noAlarms(t *testing.T, o *Options) {
	o.Log = slog.New(slog.NewTextHandler(alarm{t}, &slog.HandlerOptions{Level: slog.LevelError}))
}

type alarm struct{ t *testing.T }

func (a alarm) Write(b []byte) (int, error) {
	a.t.Errorf("logged: %s", b)
	return len(b), nil
}

func TestTrim(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { noAlarms(t, o) }
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		for i := range 3 {
			if _, err := a.produce(tp, -1, aBatch(t, 2, int64(i), fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		check := func(a *running, start siltstone.Offset, ranges int, values ...string) {
			t.Helper()
			if got := a.earliest(tp); got != start {
				t.Errorf("the log starts at %d, want %d", got, start)
			}
			if part := a.fetch(tp, start-1, 1000, 0); !errors.Is(part.Err, siltstone.ErrOffsetOutOfRange) || part.Start != start {
				t.Errorf("a fetch below the log start %d: %v, %d", start, part.Err, part.Start)
			}
			wantValues(t, a.readAll(tp, start), values...)
			fold := r.fold(shard.Of(tp))
			if known, _ := fold.Partition(tp); known.Len() != ranges || known.LogStart != start {
				t.Errorf("the fold has %d ranges from %d on, want %d from %d", known.Len(), known.LogStart, ranges, start)
			}
		}
		want := func(start, is siltstone.Offset, target error) {
			t.Helper()
			if got, err := a.trim(tp, start); got != is || !errors.Is(err, target) {
				t.Errorf("trim to %d: %d, %v; want %d, %v", start, got, err, is, target)
			}
		}
		want(0, 0, nil)
		want(3, 3, nil)
		check(a, 3, 2, "1", "2", "2")
		want(2, 3, nil)
		want(3, 3, nil)
		want(7, -1, siltstone.ErrOffsetOutOfRange)
		want(-2, -1, siltstone.ErrOffsetOutOfRange)
		check(a, 3, 2, "1", "2", "2")
		if found, err := a.OffsetForTime(t.Context(), tp, 0, -1, 0); err != nil || found.Offset != 3 {
			t.Errorf("the first record of all: %+v, %v", found, err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		a = r.start()
		check(a, 3, 2, "1", "2", "2")
		// What is buffered is above the high watermark, and stays.
		if base, err := a.produce(tp, 1, aBatch(t, 1, 9, "buffered")); err != nil || base != 6 {
			t.Fatalf("offset %d, %v", base, err)
		}
		want(siltstone.TrimAll, 6, nil)
		if _, err := a.produce(tp, -1, aBatch(t, 1, 9, "on")); err != nil {
			t.Fatal(err)
		}
		check(a, 6, 1, "buffered", "on")
		want(siltstone.TrimAll, 8, nil)
		check(a, 8, 0)
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		check(r.start(), 8, 0)
	})
}

// TestTrimParts: each partition of a request is decided by itself.
func TestTrimParts(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		id := a.create("t", 3)
		at := func(n int32, start siltstone.Offset) siltstone.TrimPart {
			return siltstone.TrimPart{Partition: siltstone.TopicPartition{Topic: id, Partition: n}, Start: start}
		}
		for n := range int32(3) {
			if _, err := a.produce(at(n, 0).Partition, -1, aBatch(t, 4, 1, "x")); err != nil {
				t.Fatal(err)
			}
		}
		req, done := a.sendTrim(time.Minute, at(0, 1), at(1, 9), at(7, 0), at(0, 3), at(2, siltstone.TrimAll))
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			start siltstone.Offset
			err   error
		}{{3, nil}, {-1, siltstone.ErrOffsetOutOfRange}, {-1, siltstone.ErrUnknownPartition}, {3, nil}, {4, nil}} {
			if got := req.Parts[i]; got.LogStart != want.start || !errors.Is(got.Err, want.err) {
				t.Errorf("part %d: %+v, want %+v", i, got, want)
			}
		}
		if _, done := a.sendTrim(time.Minute); <-done != nil {
			t.Error("a request of no parts has an error")
		}
	})
}

// slowly makes every append to a shard's ledger take a while, and counts them.
func (r *rig) slowly(id int, while time.Duration) *atomic.Int64 {
	var appends atomic.Int64
	r.set(func() {
		r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
			if c.Op == cfaulty.Append && c.Name == shard.Ledger(id) {
				appends.Add(1)
				time.Sleep(while)
			}
			return do(ctx)
		}
	})
	return &appends
}

// TestTrimsShareAnEntry: what is asked for while an append is in flight goes
// into one entry, a partition once.
func TestTrimsShareAnEntry(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { noAlarms(t, o) }
		a := r.start()
		x, y := sharing(t, a.create("x", 16), a.create("y", 16), 16)
		for _, tp := range []siltstone.TopicPartition{x, y} {
			if _, err := a.produce(tp, -1, aBatch(t, 50, 1, "v")); err != nil {
				t.Fatal(err)
			}
		}
		appends := r.slowly(shard.Of(x), time.Second)
		var all []<-chan error
		for i := range siltstone.Offset(20) {
			for _, tp := range []siltstone.TopicPartition{x, y} {
				_, done := a.sendTrim(time.Minute, siltstone.TrimPart{Partition: tp, Start: 40 - i}, siltstone.TrimPart{Partition: tp, Start: i})
				all = append(all, done)
			}
		}
		for _, done := range all {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if n := appends.Load(); n != 2 || a.earliest(x) != 40 || a.earliest(y) != 40 {
			t.Errorf("%d entries, log starts %d and %d", n, a.earliest(x), a.earliest(y))
		}
	})
}

// TestTrimsAndSegmentsTakeTurns: neither of what never ends keeps the other waiting.
func TestTrimsAndSegmentsTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) {
			noAlarms(t, o)
			o.Flush.Wait = time.Millisecond
		}
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		if _, err := a.produce(tp, -1, aBatch(t, 500, 1, "v")); err != nil {
			t.Fatal(err)
		}
		r.slowly(shard.Of(tp), 100*time.Millisecond)
		ctx, stop := context.WithCancel(t.Context())
		var next atomic.Int64
		for phase := range 3 { // somebody always trims, further than all before, and somebody always writes
			go func() {
				time.Sleep(time.Duration(phase) * 30 * time.Millisecond)
				for ctx.Err() == nil {
					if _, err := a.trim(tp, siltstone.Offset(next.Add(1))); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			}()
			go func() {
				for ctx.Err() == nil {
					<-a.send(tp, -1, aBatch(t, 1, 1, "w")).Done
				}
			}()
		}
		time.Sleep(time.Second)
		for range 5 {
			began := time.Now()
			if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "mine")); err != nil || time.Since(began) > 600*time.Millisecond {
				t.Errorf("an append among trims took %s, %v", time.Since(began), err)
			}
			began = time.Now()
			if _, err := a.trim(tp, siltstone.Offset(next.Add(1))); err != nil || time.Since(began) > 600*time.Millisecond {
				t.Errorf("a trim among appends took %s, %v", time.Since(began), err)
			}
		}
		stop()
		time.Sleep(time.Minute)
	})
}

func TestTrimTimesOutAndMovesOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		id := a.create("t", 2)
		tp, done := siltstone.TopicPartition{Topic: id}, siltstone.TopicPartition{Topic: id, Partition: 1}
		for _, tp := range []siltstone.TopicPartition{tp, done} {
			if _, err := a.produce(tp, -1, aBatch(t, 4, 1, "v")); err != nil {
				t.Fatal(err)
			}
		}
		r.slowly(shard.Of(tp), 3*time.Second)
		req, ended := a.sendTrim(time.Second, siltstone.TrimPart{Partition: tp, Start: 2}, siltstone.TrimPart{Partition: done, Start: 0})
		began := time.Now()
		if err := <-ended; err != nil || time.Since(began) != time.Second {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
		if !errors.Is(req.Parts[0].Err, siltstone.ErrTimedOut) || req.Parts[0].LogStart != -1 || req.Parts[1].Err != nil || req.Parts[1].LogStart != 0 {
			t.Errorf("%+v", req.Parts)
		}
		if got := a.earliest(tp); got != 0 {
			t.Errorf("the log starts at %d before the entry is there", got)
		}
		time.Sleep(time.Minute)
		if got := a.earliest(tp); got != 2 {
			t.Errorf("the log starts at %d after it is", got)
		}
		// Who goes leaves nothing behind.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Trim(ctx, &siltstone.TrimRequest{Deadline: time.Now().Add(time.Hour), Parts: []siltstone.TrimPart{{Partition: tp, Start: 3}}}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTrimOfADeletedTopic: its partition goes while the entry is on its way.
func TestTrimOfADeletedTopic(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { noAlarms(t, o) }
		a := r.start()
		ids := map[string]siltstone.TopicID{"gone": a.create("gone", 16), "kept": a.create("kept", 16)}
		gone, kept := sharing(t, ids["gone"], ids["kept"], 16)
		for _, tp := range []siltstone.TopicPartition{gone, kept} {
			if _, err := a.produce(tp, -1, aBatch(t, 9, 1, "v")); err != nil {
				t.Fatal(err)
			}
		}
		r.slowly(shard.Of(gone), time.Second)
		// One in the entry that is in flight, one in none yet.
		first, firstDone := a.sendTrim(time.Minute, siltstone.TrimPart{Partition: gone, Start: 2}, siltstone.TrimPart{Partition: kept, Start: 2})
		second, secondDone := a.sendTrim(time.Minute, siltstone.TrimPart{Partition: gone, Start: 3}, siltstone.TrimPart{Partition: kept, Start: 3})
		a.drop("gone", ids["gone"])
		if err := errors.Join(<-firstDone, <-secondDone); err != nil {
			t.Fatal(err)
		}
		for i, req := range []*siltstone.TrimRequest{first, second} {
			if p := req.Parts[0]; !errors.Is(p.Err, siltstone.ErrUnknownPartition) || p.LogStart != -1 {
				t.Errorf("trim %d of what is deleted: %+v", i, p)
			}
			if p := req.Parts[1]; p.Err != nil || p.LogStart < siltstone.Offset(2+i) {
				t.Errorf("trim %d of what is kept: %+v", i, p)
			}
		}
		if _, err := a.trim(gone, 1); !errors.Is(err, siltstone.ErrUnknownPartition) {
			t.Error(err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTrimOfADeposedLeader: another has taken the shard; nothing is answered
// on its behalf.
func TestTrimOfADeposedLeader(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		if _, err := a.produce(tp, -1, aBatch(t, 4, 1, "v")); err != nil {
			t.Fatal(err)
		}
		r.leadAndWrite(tp, "theirs")
		if _, err := a.trim(tp, 2); !errors.Is(err, siltstone.ErrNotLeader) {
			t.Errorf("a deposed leader answered %v", err)
		}
		a.leadsAt(tp, 3)
		if got, err := a.trim(tp, siltstone.TrimAll); err != nil || got != 5 {
			t.Errorf("leading again: %d, %v", got, err)
		}
	})
}

// appendTrim is a job that moves a log start, or ends the partition.
func (r *rig) appendTrim(tp siltstone.TopicPartition, start siltstone.Offset, gone bool) {
	r.t.Helper()
	id := shard.Of(tp)
	client := ledger.NewClient(ledger.Options{Coordinator: r.coord, Bucket: r.bucket, Rand: rand.Uint64})
	got, err := ledger.LoadFold[*shard.State](context.Background(), client, shard.Ledger(id), shard.New)
	if err != nil {
		r.t.Fatal(err)
	}
	log := ledger.New(shard.Ledger(id), got.Fold)
	log.Replace(got.Fold, got.At)
	known, _ := got.Fold.Partition(tp)
	body := &shard.Trim{Parts: []shard.TrimPart{{Number: known.Number, Partition: tp.Partition, Start: start, Gone: gone}}}
	p, err := log.Propose(body.Kind(), body.Encode(), time.Now().UnixMilli(), coordinator.Nonce{byte(start)})
	if err != nil {
		r.t.Fatal(err)
	}
	if out, err := client.Append(context.Background(), p); err != nil || !out.Won {
		r.t.Fatalf("%+v, %v", out, err)
	}
}

// TestTrimBesideAJob: what a job's entry has done already is not asked for again.
func TestTrimBesideAJob(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { noAlarms(t, o) }
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		if _, err := a.produce(tp, -1, aBatch(t, 9, 1, "v")); err != nil {
			t.Fatal(err)
		}
		r.appendTrim(tp, 5, false)
		if got, err := a.trim(tp, 3); err != nil || got != 5 {
			t.Errorf("below the job's: %d, %v", got, err)
		}
		r.appendTrim(tp, 6, false)
		if got, err := a.trim(tp, 8); err != nil || got != 8 {
			t.Errorf("above the job's: %d, %v", got, err)
		}
		// The ledger itself is trimmed past what the agent has folded.
		r.appendTrim(tp, 9, false)
		r.checkpointAndTrim(shard.Ledger(shard.Of(tp)))
		if got, err := a.trim(tp, siltstone.TrimAll); err != nil || got != 9 || a.earliest(tp) != 9 {
			t.Errorf("after a checkpoint: %d, %v, the log starts at %d", got, err, a.earliest(tp))
		}
	})
}

// TestTrimOfWhatAJobHasEnded: the job knows of the topic's deletion before this agent does.
func TestTrimOfWhatAJobHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		if _, err := a.produce(tp, -1, aBatch(t, 9, 1, "v")); err != nil {
			t.Fatal(err)
		}
		r.appendTrim(tp, 0, true)
		if _, err := a.trim(tp, 3); !errors.Is(err, siltstone.ErrUnknownPartition) {
			t.Error(err)
		}
	})
}

// TestTrimListsAPartitionOnce: also one whose Trim was folded in the turn in
// which the next was asked for.
func TestTrimListsAPartitionOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := newCore(r.start().Agent)
		s := c.shards[0]
		s.state = serving
		p := &partition{shard: s, open: true, flushed: 9, hw: 9}
		c.parts[p.tp] = p
		for start := range siltstone.Offset(3) {
			op := &trimOp{req: &siltstone.TrimRequest{Parts: []siltstone.TrimPart{{Start: start + 1}}}, left: 1, done: make(chan struct{})}
			op.handle(c)
			if len(s.toTrim) != 1 || len(p.trims) != 1 {
				t.Fatalf("%d listed, %d wait", len(s.toTrim), len(p.trims))
			}
			p.startAt(c, start+1)
			if <-op.done; op.req.Parts[0].Err != nil || op.req.Parts[0].LogStart != start+1 {
				t.Fatalf("%+v", op.req.Parts[0])
			}
		}
		if c.forgetDone(s); len(s.toTrim) != 0 || p.toTrim || len(c.deadlines) != 0 {
			t.Errorf("%d listed, %d deadlines", len(s.toTrim), len(c.deadlines))
		}
	})
}

// TestTrimsAmongEverything: whatever comes between, a log start never goes
// back, nothing below it is read, and all above it is.
func TestTrimsAmongEverything(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				rnd := rand.New(rand.NewPCG(seed, 4))
				var calls atomic.Uint64
				r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
					if c.Op == cfaulty.Append && strings.HasPrefix(c.Name, "shard-") {
						n := calls.Add(1)
						time.Sleep(time.Duration(n%7) * 20 * time.Millisecond)
						if n%5 == 0 {
							return cfaulty.LoseReply(ctx, c, do)
						}
					}
					return do(ctx)
				}
				r.adjust = func(o *Options) {
					noAlarms(t, o)
					o.CheckpointEntries = 1 + int(seed)
					if seed%2 == 0 {
						o.DrainTime = -1
					}
				}
				a := r.start()
				tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
				var values []string
				start := siltstone.Offset(0)
				for range 60 {
					switch n := rnd.IntN(10); {
					case n < 5:
						values = append(values, fmt.Sprint(len(values)))
						if base, err := a.produce(tp, -1, aBatch(t, 1, 1, values[len(values)-1])); err != nil || base != siltstone.Offset(len(values)-1) {
							t.Fatalf("offset %d of %d, %v", base, len(values)-1, err)
						}
					case n < 8:
						to := siltstone.Offset(rnd.IntN(len(values) + 1))
						writing := a.send(tp, -1, aBatch(t, 1, 1, fmt.Sprint(len(values))))
						values = append(values, fmt.Sprint(len(values)))
						got, err := a.trim(tp, to)
						if start = max(start, to); err != nil || got != start {
							t.Fatalf("trim to %d: %d, %v; want %d", to, got, err, start)
						}
						if <-writing.Done; writing.Parts[0].Err != nil {
							t.Fatal(writing.Parts[0].Err)
						}
					case n == 8:
						if err := a.end(); err != nil {
							t.Fatal(err)
						}
						a = r.start()
						fallthrough
					default:
						if got := a.earliest(tp); got != start {
							t.Fatalf("the log starts at %d, want %d", got, start)
						}
						wantValues(t, a.readAll(tp, start), values[start:]...)
					}
				}
			})
		})
	}
}
