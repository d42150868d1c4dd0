package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/kafka/batch"
	bfaulty "github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

// A sender is an idempotent producer, of one partition.
type sender struct {
	id    int64
	epoch int16
	next  int32 // sequence
	ms    int64 // of its records
}

// batch is the sender's next batch.
func (s *sender) batch(t testing.TB, values ...string) []byte {
	t.Helper()
	b := batch.NewBuilder(batch.None, 0)
	b.Header.ProducerID, b.Header.ProducerEpoch, b.Header.BaseSequence = s.id, s.epoch, s.next
	for _, v := range values {
		b.Append(batch.Record{Timestamp: s.ms, Value: []byte(v)})
	}
	s.next = int32((int64(s.next) + int64(len(values))) & 0x7fffffff)
	raw, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// answered says whether an append has its answer, once all that can happen now has.
func answered(r *siltstone.AppendRequest) bool {
	synctest.Wait()
	select {
	case <-r.Done:
		return true
	default:
		return false
	}
}

func (a *running) mustProduce(tp siltstone.TopicPartition, want siltstone.Offset, b []byte) {
	a.rig.t.Helper()
	if base, err := a.produce(tp, -1, b); err != nil || base != want {
		a.rig.t.Fatalf("offset %d, %v; want %d", base, err, want)
	}
}

func (a *running) mustRefuse(tp siltstone.TopicPartition, want error, b []byte) {
	a.rig.t.Helper()
	if base, err := a.produce(tp, -1, b); !errors.Is(err, want) || base != -1 {
		a.rig.t.Fatalf("offset %d, %v; want %v", base, err, want)
	}
}

// one is an agent with a topic of one partition.
func (r *rig) one() (*running, siltstone.TopicPartition) {
	a := r.start()
	return a, siltstone.TopicPartition{Topic: a.create("t", 1)}
}

func TestDuplicates(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.one()
		s := &sender{id: 7, ms: 1234}
		var sent [][]byte
		for i := range 7 {
			sent = append(sent, s.batch(t, fmt.Sprint(i), "x"))
			a.mustProduce(tp, siltstone.Offset(2*i), sent[i])
		}
		for i, b := range sent {
			if i < 2 {
				a.mustRefuse(tp, siltstone.ErrOutOfOrderSequence, b) // older than five batches
				continue
			}
			for _, acks := range []int16{-1, 0, 1} {
				req := a.send(tp, acks, b)
				if !answered(req) {
					t.Fatalf("batch %d, acks %d: its original is flushed, and it waits", i, acks)
				}
				if p := req.Parts[0]; p.Err != nil || p.Base != siltstone.Offset(2*i) || p.LogStart != 0 || p.RepeatedMS != 1234 {
					t.Errorf("batch %d, acks %d: %+v", i, acks, p)
				}
			}
		}
		s.next += 2
		a.mustRefuse(tp, siltstone.ErrOutOfOrderSequence, s.batch(t, "a gap"))
		s.next = 14
		a.mustProduce(tp, 14, s.batch(t, "on"))
		if n := len(a.readAll(tp, 0)); n != 15 {
			t.Errorf("%d records", n)
		}
	})
}

// TestDuplicateWaitsForItsOriginal: until that is safe, as far as acks ask for it.
func TestDuplicateWaitsForItsOriginal(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.one()
		s := &sender{id: 7}
		before := s.batch(t, "before")
		a.mustProduce(tp, 0, before)
		r.set(func() { r.fate = noStore })
		b := s.batch(t, "x")
		original := a.send(tp, 1, b)
		if !answered(original) || original.Parts[0].RepeatedMS != -1 {
			t.Fatalf("%+v", original.Parts[0])
		}
		if flushed := a.send(tp, -1, before); !answered(flushed) || flushed.Parts[0].Base != 0 || flushed.Parts[0].Err != nil {
			t.Fatalf("flushed before: %+v", flushed.Parts[0])
		}
		waits, hasty := a.send(tp, -1, b), a.send(tp, 1, b)
		if answered(waits) || !answered(hasty) || hasty.Parts[0].Base != 1 || hasty.Parts[0].Err != nil {
			t.Fatalf("answered %v, %v: %+v", answered(waits), answered(hasty), hasty.Parts[0])
		}
		time.Sleep(10 * time.Second)
		if answered(waits) {
			t.Fatalf("the original is not safe: %+v", waits.Parts[0])
		}
		r.set(func() { r.fate = nil })
		if <-waits.Done; waits.Parts[0].Err != nil || waits.Parts[0].Base != 1 {
			t.Fatalf("%+v", waits.Parts[0])
		}
		wantValues(t, a.readAll(tp, 0), "before", "x")
	})
}

func TestPlantedDuplicateBeforeSafe(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.Plant = planted.ForTest(t, planted.DuplicateBeforeSafe) }
		a, tp := r.one()
		s := &sender{id: 7}
		r.set(func() { r.fate = noStore })
		b := s.batch(t, "x")
		if first, again := a.send(tp, -1, b), a.send(tp, -1, b); answered(first) || !answered(again) {
			t.Error("the bug is not there")
		}
		r.set(func() { r.fate = nil })
	})
}

// TestDuplicatesWaitInOrder: five batches in flight are flushed one after the
// other; each duplicate is answered with its own.
func TestDuplicatesWaitInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.Flush.Bytes = 50 } // each batch is an object
		a, tp := r.one()
		r.set(func() {
			r.fate = func(op bfaulty.Op, key string) bfaulty.Fate {
				number, err := strconv.Atoi(key[strings.LastIndex(key, "/")+1:])
				if op != bfaulty.Put || err != nil {
					return bfaulty.Fate{}
				}
				return bfaulty.Fate{Delay: time.Duration(number) * time.Second}
			}
		})
		s := &sender{id: 7}
		var sent [][]byte
		var waiting [2][]*siltstone.AppendRequest
		for i := range 5 {
			sent = append(sent, s.batch(t, fmt.Sprint(i)))
			waiting[0] = append(waiting[0], a.send(tp, -1, sent[i]))
		}
		synctest.Wait()
		for _, b := range slices.Backward(sent) {
			waiting[1] = slices.Insert(waiting[1], 0, a.send(tp, -1, b))
		}
		time.Sleep(500 * time.Millisecond)
		for flushed := range 6 {
			for _, all := range waiting {
				for i, req := range all {
					if answered(req) != (i < flushed) {
						t.Errorf("%d batches are flushed; answered to batch %d: %v", flushed, i, answered(req))
					}
				}
			}
			time.Sleep(time.Second)
		}
		for _, all := range waiting {
			for i, req := range all {
				if p := req.Parts[0]; p.Err != nil || p.Base != siltstone.Offset(i) {
					t.Errorf("batch %d: %+v", i, p)
				}
			}
		}
		wantValues(t, a.readAll(tp, 0), "0", "1", "2", "3", "4")
	})
}

// TestManyProducersOfAPartition: each has its own sequence; one without an id has none.
func TestManyProducersOfAPartition(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.one()
		senders := []*sender{{id: 1}, {id: 2, next: 500}, {id: 3, epoch: 9}}
		var sent [][]byte
		var want []string
		for round := range 3 {
			for i, s := range senders {
				want = append(want, fmt.Sprint(round, i))
				sent = append(sent, s.batch(t, want[len(want)-1]))
			}
			want = append(want, "plain")
			sent = append(sent, aBatch(t, 1, 1, "plain"))
		}
		var all []*siltstone.AppendRequest
		for _, b := range sent {
			all = append(all, a.send(tp, -1, b))
		}
		for i, req := range all {
			if <-req.Done; req.Parts[0].Err != nil || req.Parts[0].Base != siltstone.Offset(i) {
				t.Fatalf("batch %d: %+v", i, req.Parts[0])
			}
		}
		for i, b := range sent {
			if i%4 < 3 {
				a.mustProduce(tp, siltstone.Offset(i), b)
			}
		}
		wantValues(t, a.readAll(tp, 0), want...)
	})
}

// TestPartsOfOneRequest: two batches of a producer for one partition come in
// one request, in two parts; what comes twice is there once.
func TestPartsOfOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.one()
		s := &sender{id: 7}
		one, two := s.batch(t, "one"), s.batch(t, "two")
		req := &siltstone.AppendRequest{Acks: -1, Deadline: time.Now().Add(time.Minute), Done: make(chan struct{})}
		for _, b := range [][]byte{one, two, one} {
			req.Parts = append(req.Parts, siltstone.AppendPart{Partition: tp, Batches: b})
		}
		if err := a.Append(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		<-req.Done
		for i, want := range []siltstone.Offset{0, 1, 0} {
			if p := req.Parts[i]; p.Err != nil || p.Base != want {
				t.Errorf("part %d: %+v, want offset %d", i, p, want)
			}
		}
		three := s.batch(t, "three")
		if base, err := a.produce(tp, -1, three, s.batch(t, "four")); !errors.Is(err, siltstone.ErrOutOfOrderSequence) {
			t.Errorf("two batches of a producer in one part: offset %d, %v", base, err)
		}
		a.mustProduce(tp, 2, three)
		wantValues(t, a.readAll(tp, 0), "one", "two", "three")
	})
}

// TestProducerEpochs: a new one starts at 0 and fences the old one, in memory
// and once it is flushed.
func TestProducerEpochs(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.one()
		old := &sender{id: 7, epoch: 3, next: 0x7fffffff}
		last := old.batch(t, "a", "b") // over the largest sequence
		a.mustProduce(tp, 0, last)
		if old.next != 1 {
			t.Fatalf("next is %d", old.next)
		}
		a.mustProduce(tp, 2, old.batch(t, "c"))
		bumped := &sender{id: 7, epoch: 4, next: 2}
		a.mustRefuse(tp, siltstone.ErrOutOfOrderSequence, bumped.batch(t, "not from 0"))
		bumped.next = 0
		first := bumped.batch(t, "d")
		if base, err := a.produce(tp, 1, first); err != nil || base != 3 {
			t.Fatalf("offset %d, %v", base, err)
		}
		for range 2 {
			a.mustRefuse(tp, siltstone.ErrProducerEpoch, old.batch(t, "e"))
			a.mustRefuse(tp, siltstone.ErrProducerEpoch, last)
			a.mustProduce(tp, 3, first) // and it is flushed
		}
		wantValues(t, a.readAll(tp, 0), "a", "b", "c", "d")
	})
}

// TestDuplicateOfATimedOutAppend: the records stay, and the retry waits for them.
func TestDuplicateOfATimedOutAppend(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.one()
		s := &sender{id: 7}
		r.set(func() { r.fate = noStore })
		one, two := s.batch(t, "one"), s.batch(t, "two")
		a.send(tp, 1, one)
		a.mustRefuse(tp, siltstone.ErrTimedOut, two)
		a.mustRefuse(tp, siltstone.ErrTimedOut, two)
		again := a.send(tp, -1, two)
		time.Sleep(10 * time.Second)
		r.set(func() { r.fate = nil })
		if <-again.Done; again.Parts[0].Err != nil || again.Parts[0].Base != 1 {
			t.Fatalf("%+v", again.Parts[0])
		}
		a.mustProduce(tp, 2, s.batch(t, "three"))
		wantValues(t, a.readAll(tp, 0), "one", "two", "three")
	})
}

// TestDuplicateOfAParkedPart: neither has an offset yet. One that timed out
// while it was parked is not written, and what follows it is out of order until
// it comes again.
func TestDuplicateOfAParkedPart(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.Flush.Bytes = 64 << 20 }
		a, tp := r.one()
		r.set(func() { r.fate = noStore })
		if _, err := a.produce(tp, 1, aBatch(t, siltstone.UncleanJump, 1, "")); err != nil {
			t.Fatal(err)
		}
		s := &sender{id: 7}
		lost := s.batch(t, "lost")
		a.mustRefuse(tp, siltstone.ErrTimedOut, lost)
		early := s.batch(t, "two")
		s.next = 0
		one := s.batch(t, "one")
		other := &sender{id: 8}
		behind := other.batch(t, "other")
		var all []*siltstone.AppendRequest
		for _, b := range [][]byte{one, one, early, early, behind} {
			all = append(all, a.send(tp, -1, b))
		}
		r.set(func() { r.fate = nil })
		for i, want := range []siltstone.Offset{0, 0, 1, 1, 2} {
			if <-all[i].Done; all[i].Parts[0].Err != nil || all[i].Parts[0].Base != siltstone.UncleanJump+want {
				t.Errorf("batch %d: %+v", i, all[i].Parts[0])
			}
		}
		wantValues(t, a.readAll(tp, siltstone.UncleanJump), "one", "two", "other")
		if free := a.memory.TryAcquire(int64(a.opts.Memory.Unflushed)); !free {
			t.Error("memory was not given back")
		}
	})
}

// TestDeposedLeaderForgetsItsTail: what was not flushed may come again; what
// was is remembered, and so is what another leader wrote.
func TestDeposedLeaderForgetsItsTail(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.one()
		s := &sender{id: 7}
		flushed := s.batch(t, "flushed")
		a.mustProduce(tp, 0, flushed)
		elsewhere := &sender{id: 8}
		theirs := elsewhere.batch(t, "theirs")
		r.leadAndWriteBatch(tp, theirs)
		lost := s.batch(t, "lost")
		waiting := []*siltstone.AppendRequest{a.send(tp, -1, lost), a.send(tp, -1, lost)}
		for _, req := range waiting {
			if <-req.Done; !errors.Is(req.Parts[0].Err, siltstone.ErrNotLeader) {
				t.Fatalf("%+v", req.Parts[0])
			}
		}
		a.leadsAt(tp, 3)
		a.mustProduce(tp, 2, lost)
		a.mustProduce(tp, 0, flushed)
		a.mustProduce(tp, 1, theirs)
		a.mustProduce(tp, 3, elsewhere.batch(t, "on"))
		wantValues(t, a.readAll(tp, 0), "flushed", "theirs", "lost", "on")
	})
}

// leadsAt waits until the agent leads at an epoch.
func (a *running) leadsAt(tp siltstone.TopicPartition, epoch siltstone.Epoch) {
	a.rig.t.Helper()
	for range 60_000 {
		if e, ok := a.Leads(tp); ok && e == epoch {
			return
		}
		time.Sleep(time.Millisecond)
	}
	a.rig.t.Fatalf("does not lead at %d", epoch)
}

// TestProducersAfterATrimUnderTheLeader: it reads its shard anew and goes on in
// its epoch: what was committed and what was not is known once.
func TestProducersAfterATrimUnderTheLeader(t *testing.T) {
	for _, committed := range []bool{true, false} {
		t.Run(fmt.Sprint("committed ", committed), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				a, tp := r.one()
				s := &sender{id: 7}
				first := s.batch(t, "first")
				a.mustProduce(tp, 0, first)
				name := shard.Ledger(shard.Of(tp))
				trimmed := false
				r.set(func() {
					r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
						if c.Op != cfaulty.Append || c.Name != name || trimmed {
							return do(ctx)
						}
						trimmed = true
						if committed {
							if err := do(ctx); err != nil {
								return err
							}
						} else {
							r.dropNothing(name)
						}
						r.checkpointAndTrim(name)
						return cfaulty.Unanswered(c)
					}
				})
				second := s.batch(t, "second")
				original := a.send(tp, -1, second)
				time.Sleep(100 * time.Millisecond)
				third := s.batch(t, "third")
				waiting := []*siltstone.AppendRequest{original, a.send(tp, -1, second), a.send(tp, -1, third), a.send(tp, -1, third)}
				for i, want := range []siltstone.Offset{1, 1, 2, 2} {
					if <-waiting[i].Done; waiting[i].Parts[0].Err != nil || waiting[i].Parts[0].Base != want {
						t.Fatalf("%d: %+v", i, waiting[i].Parts[0])
					}
				}
				if a.leadsAt(tp, 1); !trimmed { // who waited is answered before others are told
					t.Error("nothing was trimmed")
				}
				for i, b := range [][]byte{first, second, third} {
					a.mustProduce(tp, siltstone.Offset(i), b)
				}
				a.mustProduce(tp, 3, s.batch(t, "fourth"))
				wantValues(t, a.readAll(tp, 0), "first", "second", "third", "fourth")
			})
		})
	}
}

func TestProducersOf(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, tp := r.one()
		if got, err := a.Producers(t.Context(), tp); err != nil || len(got) != 0 {
			t.Fatalf("%v, %v", got, err)
		}
		one, two := &sender{id: 9, ms: 5}, &sender{id: 4, epoch: 2, next: 10}
		a.mustProduce(tp, 0, one.batch(t, "a", "b"))
		a.mustProduce(tp, 2, two.batch(t, "c"))
		flushed := time.Now().UnixMilli()
		time.Sleep(time.Minute)
		if _, err := a.produce(tp, 1, one.batch(t, "d")); err != nil { // stays in memory
			t.Fatal(err)
		}
		got, err := a.Producers(t.Context(), tp)
		want := []siltstone.ProducerState{
			{ID: 4, Epoch: 2, LastSequence: 10, LastTimestamp: flushed, CoordinatorEpoch: -1, TxnStart: -1},
			{ID: 9, Epoch: 0, LastSequence: 2, LastTimestamp: flushed + 60_000, CoordinatorEpoch: -1, TxnStart: -1},
		}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%v %s", err, d)
		}
		time.Sleep(24*time.Hour + time.Minute)
		if got, err = a.Producers(t.Context(), tp); err != nil || len(got) != 0 {
			t.Errorf("a day later: %+v, %v", got, err)
		}
		if _, err := a.Producers(t.Context(), siltstone.TopicPartition{}); !errors.Is(err, siltstone.ErrUnknownPartition) {
			t.Errorf("of no partition: %v", err)
		}
	})
}
