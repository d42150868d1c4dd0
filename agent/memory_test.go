package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// TestMemoryWhileOneShardCannotCommit: its batches lie between those of others,
// and what they keep in memory counts.
func TestMemoryWhileOneShardCannotCommit(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) {
			o.Memory = Memory{Unflushed: 8 << 20, Tail: 4 << 20}
			o.Flush = Flush{Bytes: 1 << 20, Interval: 100 * time.Millisecond}
		}
		a := r.start()
		one, two := a.create("one", 16), a.create("two", 16)
		stuck := siltstone.TopicPartition{Topic: one}
		well := siltstone.TopicPartition{Topic: two}
		for shard.Of(well) == shard.Of(stuck) {
			well.Partition++
		}
		r.set(func() {
			r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
				if c.Op == cfaulty.Append && c.Name == shard.Ledger(shard.Of(stuck)) {
					return coordinator.ErrUnknown
				}
				return do(ctx)
			}
		})
		// As long as it lies in a slab of its own it stops nobody.
		value := strings.Repeat("y", 50<<10)
		a.send(stuck, 1, aBatch(t, 1, 1, "x"))
		for range 500 {
			if _, err := a.produce(well, -1, aBatch(t, 1, 1, value)); err != nil {
				t.Fatal(err)
			}
		}
		if n := a.slabBytes(); n > 6<<20 {
			t.Errorf("%d bytes in slabs, for one small batch that is not flushed", n)
		}
		// Now there is one in every slab.
		for i := range 1000 {
			tp, v := well, value
			if i%5 == 0 {
				tp, v = stuck, "x"
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_ = a.Append(ctx, &siltstone.AppendRequest{ // in the end there is no room for it
				Acks: 1, Deadline: time.Now().Add(time.Second), Done: make(chan struct{}),
				Parts: []siltstone.AppendPart{{Partition: tp, Batches: aBatch(t, 1, 1, v)}},
			})
			cancel()
		}
		if n := a.slabBytes(); n > 16<<20 {
			t.Errorf("%d bytes in slabs", n)
		}
		r.set(func() { r.hook = nil })
		time.Sleep(10 * time.Second)
		if _, err := a.produce(stuck, -1, aBatch(t, 1, 1, strings.Repeat("z", 7<<20))); err != nil {
			t.Errorf("once it is over: %v", err)
		}
	})
}

// slabBytes is how much memory slabs take.
func (a *running) slabBytes() int {
	a.rig.t.Helper()
	op := &sizeOp{done: make(chan struct{})}
	if err := a.do(context.Background(), op, op.done); err != nil {
		a.rig.t.Fatal(err)
	}
	return op.slabs
}

// sizeOp asks the loop for the sizes of what it keeps.
type sizeOp struct {
	slabs, deadlines int
	done             chan struct{}
}

func (op *sizeOp) handle(c *core) {
	op.slabs, op.deadlines = c.slabs.bytes, len(c.deadlines)
	close(op.done)
}

// TestOffsetsRunOut: nobody waits for the flush, but offsets without one do.
func TestOffsetsRunOut(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.Flush.Bytes = 64 << 20 }
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		half := aBatch(t, siltstone.UncleanJump/2, 1, "")
		for range 5 {
			if _, err := a.produce(tp, 1, half); err != nil {
				t.Error(err)
			}
		}
		if n := len(a.readAll(tp, 4*siltstone.UncleanJump/2)); n > siltstone.UncleanJump/2 {
			t.Errorf("%d records after the fourth batch", n)
		}
		many := aBatch(t, siltstone.UncleanJump, 1, "")
		if _, err := a.produce(tp, -1, many, half); !errors.Is(err, siltstone.ErrTooLarge) {
			t.Errorf("more offsets than may ever wait: %v", err)
		}
	})
}

// TestPartsThatWaitForOffsets: without a store they time out, and are not written later.
func TestPartsThatWaitForOffsets(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.Flush.Bytes = 64 << 20 }
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		r.set(func() { r.fate = noStore })
		if _, err := a.produce(tp, 1, aBatch(t, siltstone.UncleanJump, 1, "")); err != nil {
			t.Fatal(err)
		}
		if _, err := a.produce(tp, 1, aBatch(t, 1, 1, "late")); !errors.Is(err, siltstone.ErrTimedOut) {
			t.Fatalf("no offset was left, and it got %v", err)
		}
		waits := a.send(tp, 1, aBatch(t, 1, 1, "in time"))
		r.set(func() { r.fate = nil })
		if <-waits.Done; waits.Parts[0].Err != nil || waits.Parts[0].Base != siltstone.UncleanJump {
			t.Fatalf("%+v", waits.Parts[0])
		}
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "last")); err != nil {
			t.Fatal(err)
		}
		wantValues(t, a.readAll(tp, siltstone.UncleanJump), "in time", "last")
	})
}
