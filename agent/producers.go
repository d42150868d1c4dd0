package agent

import (
	"cmp"
	"context"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// What a leader knows of a producer is what the fold has, which is of the
// flushed batches, and what it has in memory: it goes with the tail, so that a
// batch that is given up may be sent again.

// A liveProducer is a producer with batches that are not flushed: what the
// fold had of it when the first of them came, and they.
type liveProducer struct {
	shard.Producer
	unflushed int // batches in no folded Segment
}

// inSequence says whether the batch of an idempotent producer may be buffered
// now, and notes it. Otherwise the part is answered, or waits for the batch
// that it repeats.
func (c *core) inSequence(p *partition, op *appendOp, part int) bool {
	req := &op.req.Parts[part]
	h, _ := batch.ParseHeader(req.Batches) // appendPart has parsed it
	records := h.LastOffsetDelta + 1
	live := p.live[h.ProducerID]
	known := p.producer(h.ProducerID, live)
	if known != nil {
		original, repeated, err := known.Check(h.ProducerEpoch, h.BaseSequence, records)
		if repeated {
			c.answerRepeat(p, op, part, original)
			return false
		}
		// One that was idle for long counts as unknown: anything may follow.
		if err != nil && (live != nil || !known.Idle(c.wallMS(), c.producerExpiration())) {
			c.release(len(req.Batches))
			op.decide(c, part, err)
			return false
		}
	}
	if known == nil && c.refusedBefore(req.Partition, h) {
		c.release(len(req.Batches))
		op.decide(c, part, siltstone.ErrNotLeader)
		return false
	}
	c.noteProducer(p, h, p.next)
	return true
}

// noteProducer notes a producer's batch that is not flushed.
func (c *core) noteProducer(p *partition, h batch.Header, base siltstone.Offset) {
	live := p.live[h.ProducerID]
	if live == nil {
		live = &liveProducer{Producer: shard.NewProducer(h.ProducerID, h.ProducerEpoch)}
		if known := p.producer(h.ProducerID, nil); known != nil {
			live.Producer = *known
		}
		if p.live == nil {
			p.live = map[int64]*liveProducer{}
		}
		p.live[h.ProducerID] = live
	}
	live.Add(h.ProducerEpoch, shard.ProducerBatch{
		Base: base, Timestamp: h.MaxTimestamp, Offsets: h.LastOffsetDelta + 1, FirstSequence: h.BaseSequence,
	})
	live.LastTimestamp = c.wallMS()
	live.unflushed++
}

// producer is what is known of a producer, live or in the fold; or nil.
func (p *partition) producer(id int64, live *liveProducer) *shard.Producer {
	if live != nil {
		return &live.Producer
	}
	known, ok := p.shard.fold().Partition(p.tp)
	if !ok {
		return nil
	}
	return known.Producers[id]
}

// answerRepeat answers a batch that was sent again with its original, once
// that is as safe as this request asks for.
func (c *core) answerRepeat(p *partition, op *appendOp, part int, original shard.ProducerBatch) {
	req := &op.req.Parts[part]
	req.Base, req.LogStart, req.RepeatedMS = original.Base, p.start, original.Timestamp
	c.release(len(req.Batches))
	c.metrics.repeated()
	end := original.Base + siltstone.Offset(original.Offsets)
	if op.req.Acks != -1 || end <= p.high() || c.opts.Plant.Is(planted.DuplicateBeforeSafe) {
		op.decide(c, part, nil)
		return
	}
	p.await(appendWait{op: op, part: part, end: end})
	if c.awaitsFlush(p) {
		c.somebodyWaits()
	}
}

// rowsOf are the index rows of a run's batches that have producers, good until
// it is called again.
func (c *core) rowsOf(p *partition, base siltstone.Offset, batches []batchRef) []segment.Row {
	c.rows = c.rows[:0]
	if p.shard.inOffice() && len(p.live) == 0 {
		return nil
	}
	for i := range batches {
		b := batches[i].bytes()
		if batch.ProducerID(b) < 0 {
			continue
		}
		h, _ := batch.ParseHeader(b) // it was parsed when it came
		row := segment.RowOf(h)
		row.OffsetDelta = int64(batches[i].base - base)
		c.rows = append(c.rows, row)
	}
	return c.rows
}

// flushedProducers forgets producers of which nothing is left to be flushed:
// the fold has them.
func (p *partition) flushedProducers(batches []batchRef) {
	if len(p.live) == 0 {
		return
	}
	for i := range batches {
		id := batch.ProducerID(batches[i].bytes())
		live := p.live[id]
		if live == nil {
			continue // it has no producer
		}
		if live.unflushed--; live.unflushed == 0 {
			delete(p.live, id)
		}
	}
}

func (c *core) producerExpiration() int64 { return c.Topics().Cluster().ProducerIDExpirationMS }

// encodeShard encodes a shard's fold, without the producers that are forgotten by now.
func (c *core) encodeShard(s *ledShard) ledger.EncodedCheckpoint {
	limit := c.producerExpiration()
	if c.opts.Plant.Is(planted.SequencesNotCheckpointed) {
		limit = 0
	}
	s.fold().ForgetIdle(c.wallMS(), limit)
	return s.log.Checkpoint()
}

// Producers is what this agent, which leads the partition, remembers of its
// idempotent producers, by their ids.
func (a *Agent) Producers(ctx context.Context, tp siltstone.TopicPartition) ([]siltstone.ProducerState, error) {
	op := &producersOp{tp: tp, done: make(chan struct{})}
	if err := a.do(ctx, op, op.done); err != nil {
		return nil, err
	}
	return op.found, op.err
}

// A producersOp asks the loop for a partition's producers.
type producersOp struct {
	tp    siltstone.TopicPartition
	done  chan struct{}
	found []siltstone.ProducerState
	err   error
}

func (op *producersOp) handle(c *core) {
	defer close(op.done)
	p, err := c.leading(op.tp)
	if err != nil {
		op.err = err
		return
	}
	for _, live := range p.live {
		op.add(&live.Producer)
	}
	known, _ := p.shard.fold().Partition(p.tp)
	for id, pr := range known.Producers {
		if p.live[id] == nil && !pr.Idle(c.wallMS(), c.producerExpiration()) {
			op.add(pr)
		}
	}
	slices.SortFunc(op.found, func(a, b siltstone.ProducerState) int { return cmp.Compare(a.ID, b.ID) })
}

func (op *producersOp) add(pr *shard.Producer) {
	op.found = append(op.found, siltstone.ProducerState{
		ID: pr.ID, Epoch: pr.Epoch, LastSequence: pr.LastSequence(), LastTimestamp: pr.LastTimestamp,
		CoordinatorEpoch: pr.CoordinatorEpoch, TxnStart: pr.TxnStart,
	})
}
