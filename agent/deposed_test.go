package agent

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// TestAnotherLedMeanwhile: an agent that another deposed gives up what it has
// not flushed, leads again, and serves what the other wrote between what it
// has in memory itself.
func TestAnotherLedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "mine")); err != nil {
			t.Fatal(err)
		}
		r.leadAndWrite(tp, "theirs")
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "lost")); !errors.Is(err, siltstone.ErrNotLeader) {
			t.Fatalf("a deposed leader answered %v", err)
		}
		a.leadsAt(tp, 3)
		if base, err := a.produce(tp, -1, aBatch(t, 1, 1, "mine again")); err != nil || base != 2 {
			t.Fatalf("offset %d, %v", base, err)
		}
		wantValues(t, a.readAll(tp, 0), "mine", "theirs", "mine again")
		wantValues(t, a.readAll(tp, 1), "theirs", "mine again")
	})
}

// leadAndWrite is another agent, which takes a partition's shard and writes one record.
func (r *rig) leadAndWrite(tp siltstone.TopicPartition, value string) {
	r.t.Helper()
	r.leadAndWriteBatch(tp, aBatch(r.t, 1, 1, value))
}

// leadAndWriteBatch is leadAndWrite with a batch of one record.
func (r *rig) leadAndWriteBatch(tp siltstone.TopicPartition, b []byte) {
	r.t.Helper()
	const other = siltstone.Incarnation(0xbeef)
	ctx, id := context.Background(), shard.Of(tp)
	fold := r.fold(id)
	epoch := fold.Epoch() + 1
	known, _ := fold.Partition(tp)

	object := segment.ObjectID{Hour: 1, Incarnation: other, Number: 1}
	b = bytes.Clone(b)
	batch.Stamp(b, known.Next, epoch)
	w := segment.NewWriter(segment.Header{ID: object})
	if err := errors.Join(w.Run(uint16(id), tp, known.Next), w.Batch(b)); err != nil {
		r.t.Fatal(err)
	}
	body, _, err := w.Finish()
	if err = errors.Join(err, r.bucket.Put(ctx, object.Key(), body)); err != nil {
		r.t.Fatal(err)
	}
	part := shard.Part{
		Extent: shard.Extent{Number: known.Number, Partition: tp.Partition, Offsets: 1, LengthBytes: int64(len(b)), MaxTimestamp: 1},
		Epoch:  epoch,
	}
	r.write(id,
		&shard.Lead{Epoch: epoch, Leader: other, ISR: []siltstone.Incarnation{other}},
		&shard.Segment{Epoch: epoch, Writer: other, Objects: []shard.SegmentObject{{ID: object, Parts: []shard.Part{part}}}},
	)
}

// write appends entries to a shard's ledger, as anybody may.
func (r *rig) write(id int, bodies ...shard.Body) {
	r.t.Helper()
	ctx := context.Background()
	client := ledger.NewClient(ledger.Options{Coordinator: r.coord, Bucket: r.bucket, Rand: rand.Uint64})
	got, err := ledger.LoadFold[*shard.State](ctx, client, shard.Ledger(id), shard.New)
	if err != nil {
		r.t.Fatal(err)
	}
	log := ledger.New(shard.Ledger(id), got.Fold)
	log.Replace(got.Fold, got.At)
	for i, entry := range bodies {
		p, err := log.Propose(entry.Kind(), entry.Encode(), time.Now().UnixMilli(), coordinator.Nonce{0xbe, byte(got.At.Seq), byte(i)})
		if err != nil {
			r.t.Fatal(err)
		}
		out, err := client.Append(ctx, p)
		if err != nil || !out.Won {
			r.t.Fatalf("%+v, %v", out, err)
		}
		changes, err := log.Settle(out)
		if err != nil || changes[0].Effect.Void != "" {
			r.t.Fatalf("%+v, %v", changes, err)
		}
	}
}
