package agent

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	cmemory "github.com/siltstone-io/siltstone/coordinator/memory"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/kafka/batch"
	bmemory "github.com/siltstone-io/siltstone/tiered/bucket/memory"
)

// benchCore is a loop that leads one open partition, without its goroutine.
func benchCore(b *testing.B) (*core, *partition) {
	b.Helper()
	a, err := New(Options{
		Alone:       true,
		Coordinator: cmemory.New(), Bucket: bmemory.New(), Incarnation: 1, Rand: func() uint64 { return 1 },
	})
	if err != nil {
		b.Fatal(err)
	}
	c := newCore(a)
	tp := siltstone.TopicPartition{Topic: siltstone.TopicID{1}}
	c.addPartition(tp, nil)
	p := c.parts[tp]
	c.setState(p.shard, serving)
	c.applyAll(b, p.shard,
		&shard.Lead{Epoch: 1, Leader: 1, ISR: []siltstone.Incarnation{1}},
		&shard.Open{Epoch: 1, Writer: 1, Topics: []shard.OpenTopic{{Topic: tp.Topic, Number: 1, Partitions: []int32{0}}}},
	)
	return c, p
}

// applyAll folds bodies as if this agent had proposed them.
func (c *core) applyAll(b *testing.B, s *ledShard, bodies ...shard.Body) {
	b.Helper()
	for _, body := range bodies {
		p, err := s.log.Propose(body.Kind(), body.Encode(), 1, coordinator.Nonce{1})
		if err != nil {
			b.Fatal(err)
		}
		objects := 0
		if body.Kind() == shard.KindSegment {
			objects = len(s.objects)
		}
		s.inFlight = append(s.inFlight, objects)
		c.settle(s, ledger.Outcome{Nonce: p.Nonce, Won: true, Entries: []coordinator.Entry{{Seq: p.Slot(), Nonce: p.Nonce, Data: p.Data}}})
	}
	if c.failed != nil {
		b.Fatal(c.failed)
	}
}

// BenchmarkAppend takes small batches and folds their flush: what the loop does
// for each, without what it hands to others. Flushed one by one, a producer is
// looked up in the fold each time.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name       string
		idempotent bool
		each       int // batches of a flush
	}{{"plain", false, 100}, {"idempotent", true, 100}, {"plain, one by one", false, 1}, {"idempotent, one by one", true, 1}} {
		b.Run(c.name, func(b *testing.B) { benchmarkAppend(b, c.idempotent, c.each) })
	}
}

func benchmarkAppend(b *testing.B, idempotent bool, each int) {
	one := batch.NewBuilder(batch.None, 0)
	one.Append(batch.Record{Timestamp: time.Now().UnixMilli(), Value: make([]byte, 100)})
	if idempotent {
		one.Header.ProducerID, one.Header.ProducerEpoch, one.Header.BaseSequence = 7, 0, 0
	}
	raw, err := one.Build()
	if err != nil {
		b.Fatal(err)
	}
	c, p := benchCore(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		op := &appendOp{left: 1, req: &siltstone.AppendRequest{
			Acks: -1, Parts: []siltstone.AppendPart{{Partition: p.tp, Batches: raw}}, Done: make(chan struct{}),
		}}
		if idempotent {
			binary.BigEndian.PutUint32(raw[53:], uint32(i))
		}
		_ = c.memory.TryAcquire(int64(len(raw)))
		op.take(c)
		if i%each == each-1 {
			c.flushNow(b, p)
		}
	}
	if next := p.next; int(next) != b.N {
		b.Fatalf("%d batches were taken of %d", next, b.N)
	}
}

// flushNow cuts what is buffered and folds its Segment, as if it were uploaded.
func (c *core) flushNow(b *testing.B, p *partition) {
	b.Helper()
	s := p.shard
	for c.uncutBytes > 0 {
		o := c.cut()
		o.uploaded = true
		s.objects = append(s.objects, o)
	}
	body, _ := c.segmentBody(s, 0)
	c.applyAll(b, s, body)
	c.slabs.evict()
	c.releaseFlushed()
}
