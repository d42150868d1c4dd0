package check

import (
	"context"
	"slices"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	coordmemory "github.com/siltstone-io/siltstone/coordinator/memory"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/memory"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

const (
	leader = siltstone.Incarnation(7)
	epoch  = siltstone.Epoch(3)
	// producer writes all records; the sequence numbers are their offsets.
	producer = 900
	// flushMS is when entries are made, by the leader's clock.
	flushMS  = 1_800_000_000_000
	recordMS = 1_700_000_000_000
)

// cluster is a small cluster in memory: one topic, one partition of it with records.
type cluster struct {
	t       *testing.T
	coord   *coordmemory.Coordinator
	bucket  *memory.Bucket
	ledgers *ledger.Client
	id      siltstone.ClusterID
	tp      siltstone.TopicPartition
	shard   *ledger.Log[*shard.State, shard.Change]
	nonces  uint64
	clockMS int64 // since flushMS
	objects uint64
}

// newCluster has three objects of two batches of three records each, and a
// checkpoint after the second.
func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, coord: coordmemory.New(), bucket: memory.New(), tp: siltstone.TopicPartition{Topic: siltstone.TopicID{1}}}
	c.ledgers = ledger.NewClient(ledger.Options{Coordinator: c.coord, Bucket: c.bucket, Rand: func() uint64 { c.nonces++; return c.nonces }})
	var err error
	if c.id, err = c.ledgers.EnsureClusterID(t.Context(), siltstone.ClusterID{9}); err != nil {
		t.Fatal(err)
	}
	topics := ledger.New(topic.Ledger, topic.New())
	d, errs := topic.Create(topics.Fold().View(), []topic.NewTopic{{Name: "t", ID: c.tp.Topic, Partitions: 1, Replication: -1}})
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	propose(c, topics, d.Kind, d.Body)
	made, _ := topics.Fold().View().TopicByID(c.tp.Topic)

	c.shard = ledger.New(shard.Ledger(shard.Of(c.tp)), shard.New())
	c.append(&shard.Lead{Epoch: epoch, Leader: leader, ISR: []siltstone.Incarnation{leader}})
	c.append(&shard.Open{Epoch: epoch, Writer: leader, Topics: []shard.OpenTopic{{Topic: c.tp.Topic, Number: made.Number, Partitions: []int32{0}}}})
	c.flush()
	c.flush()
	if err := c.ledgers.SaveCheckpoint(t.Context(), c.shard.Checkpoint()); err != nil {
		t.Fatal(err)
	}
	c.flush()
	return c
}

func propose[F ledger.Fold[C], C any](c *cluster, l *ledger.Log[F, C], kind byte, body []byte) C {
	c.t.Helper()
	c.nonces++
	p, err := l.Propose(kind, body, flushMS+c.clockMS, coordinator.Nonce{byte(c.nonces), byte(c.nonces >> 8), 1})
	if err != nil {
		c.t.Fatal(err)
	}
	o, err := c.ledgers.Append(context.Background(), p)
	if err != nil {
		c.t.Fatal(err)
	}
	changes, err := l.Settle(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return changes[0].Effect
}

func (c *cluster) append(b shard.Body) shard.Change {
	c.t.Helper()
	return propose(c, c.shard, b.Kind(), b.Encode())
}

func (c *cluster) partition() *shard.Partition {
	p, ok := c.shard.Fold().Partition(c.tp)
	if !ok {
		c.t.Fatal("no partition")
	}
	return p
}

// upload stores an object with two batches from the partition's next offset on.
func (c *cluster) upload() (segment.ObjectID, *segment.Index) {
	c.t.Helper()
	c.objects++
	id := segment.ObjectID{Hour: 490_000, Incarnation: leader, Number: c.objects}
	w := segment.NewWriter(segment.Header{Cluster: c.id, ID: id})
	base := c.partition().Next
	if err := w.Run(uint16(shard.Of(c.tp)), c.tp, base); err != nil {
		c.t.Fatal(err)
	}
	for i := range siltstone.Offset(2) {
		b := threeRecords(c.t, base+3*i)
		batch.Stamp(b, base+3*i, epoch)
		if err := w.Batch(b); err != nil {
			c.t.Fatal(err)
		}
	}
	parts, x, err := w.Finish()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.bucket.Put(c.t.Context(), id.Key(), parts); err != nil {
		c.t.Fatal(err)
	}
	return id, x
}

func threeRecords(t *testing.T, at siltstone.Offset) []byte {
	b := batch.NewBuilder(batch.None, 0)
	b.Header.ProducerID, b.Header.ProducerEpoch, b.Header.BaseSequence = producer, 1, int32(at)
	for _, v := range []string{"a", "b", "c"} {
		b.Append(batch.Record{Timestamp: recordMS, Value: []byte(v)})
	}
	out, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// flush uploads an object and commits it.
func (c *cluster) flush() {
	c.t.Helper()
	id, x := c.upload()
	change := c.append(c.segment(id, &x.Runs[0]))
	if change.Void != "" {
		c.t.Fatal(change.Void)
	}
	if err := c.partition().AddRows(change.Assigned[0], flushMS+c.clockMS, x.Runs[0].Rows); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) segment(id segment.ObjectID, r *segment.Run) *shard.Segment {
	return &shard.Segment{Epoch: epoch, Writer: leader, Objects: []shard.SegmentObject{{ID: id, Parts: []shard.Part{{
		Extent: shard.Extent{Number: c.partition().Number, Offsets: r.Offsets, LengthBytes: r.LengthBytes, MaxTimestamp: r.MaxTimestamp()},
		Epoch:  epoch,
	}}}}}
}

// object is the key and the bytes of the partition's i-th object.
func (c *cluster) object(i int) (string, []byte) {
	c.t.Helper()
	key := c.partition().Range(i).Object.Key()
	b, err := c.bucket.Get(c.t.Context(), key, 0, -1)
	if err != nil {
		c.t.Fatal(err)
	}
	return key, slices.Clone(b)
}

// overwrite puts other bytes in the place of an object.
func (c *cluster) overwrite(key string, b []byte) {
	c.t.Helper()
	if err := c.bucket.Delete(c.t.Context(), []string{key}); err != nil {
		c.t.Fatal(err)
	}
	if err := c.bucket.Put(c.t.Context(), key, bucket.Body{b}); err != nil {
		c.t.Fatal(err)
	}
}
