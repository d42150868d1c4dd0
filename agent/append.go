package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// Append hands batches to the loop. It waits while memory for unflushed data
// is short; the outcome comes through req.Done. An error says that nothing
// was taken.
func (a *Agent) Append(ctx context.Context, req *siltstone.AppendRequest) error {
	size := 0
	for i := range req.Parts {
		size += len(req.Parts[i].Batches)
	}
	if size > a.opts.Memory.Unflushed {
		return fmt.Errorf("append of %d bytes: %w: more than the %d this agent buffers", size, siltstone.ErrTooLarge, a.opts.Memory.Unflushed)
	}
	op := &appendOp{req: req, left: len(req.Parts)}
	if a.queued.Load() > 0 || !a.memory.TryAcquire(int64(size)) {
		return a.appendInTurn(ctx, op, int64(size))
	}
	if err := a.post(ctx, op); err != nil {
		a.memory.Release(int64(size))
		return err
	}
	return nil
}

// An appendOp is an append that the loop has not answered in full.
type appendOp struct {
	req     *siltstone.AppendRequest
	left    int // parts undecided
	index   int
	waiting bool       // stands among the deadlines
	wait    *admission // for memory; nil for one that had it at once
}

func (op *appendOp) deadline() time.Time { return op.req.Deadline }
func (op *appendOp) place() *int         { return &op.index }

// expire answers what is undecided. The records stay, and may be flushed yet.
func (op *appendOp) expire(c *core) {
	op.waiting = false
	for i := range op.req.Parts {
		if p := &op.req.Parts[i]; errors.Is(p.Err, errUndecided) {
			op.decide(c, i, siltstone.ErrTimedOut)
		}
	}
}

// abandon answers an append that the loop never saw. Who waits for memory
// sees the end for itself.
func (op *appendOp) abandon() {
	if op.wait != nil {
		return
	}
	for i := range op.req.Parts {
		p := &op.req.Parts[i]
		p.Err, p.Base, p.LogStart, p.RepeatedMS = errStopped, -1, -1, -1
	}
	close(op.req.Done)
}

// errUndecided stands in parts that wait.
var errUndecided = errors.New("undecided")

func (op *appendOp) handle(c *core) {
	if op.wait != nil {
		c.queue = append(c.queue, op) // admit is soon called
		return
	}
	op.take(c)
}

// take gives the records their places.
func (op *appendOp) take(c *core) {
	for i := range op.req.Parts {
		p := &op.req.Parts[i]
		p.Err, p.Base, p.LogStart, p.RepeatedMS = errUndecided, -1, -1, -1
	}
	for i := range op.req.Parts {
		c.appendPart(op, i)
	}
	if len(op.req.Parts) == 0 {
		close(op.req.Done)
	}
	if op.left > 0 {
		op.waiting = true
		c.deadlines.add(op)
	}
}

// decide settles one part, once.
func (op *appendOp) decide(c *core, part int, err error) {
	p := &op.req.Parts[part]
	if !errors.Is(p.Err, errUndecided) {
		return
	}
	p.Err = err
	if err != nil {
		p.Base, p.LogStart, p.RepeatedMS = -1, -1, -1
	}
	op.left--
	if op.left > 0 {
		return
	}
	if op.waiting {
		op.waiting = false
		c.deadlines.remove(op)
	}
	close(op.req.Done)
}

// appendPart takes one part: all of it, or nothing.
func (c *core) appendPart(op *appendOp, part int) {
	req := &op.req.Parts[part]
	p, err := c.leading(req.Partition)
	offsets := siltstone.Offset(0)
	if err == nil {
		offsets, err = countOffsets(req.Batches)
	}
	switch {
	case err == nil && offsets <= p.room() && len(p.parked) == 0:
		c.bufferPart(p, op, part)
		return
	case err == nil && offsets <= siltstone.UncleanJump:
		p.parked = append(p.parked, parkedPart{op: op, part: part, bytes: len(req.Batches)})
		c.somebodyWaits()
		return
	case err == nil:
		err = fmt.Errorf("%d records at once: %w", offsets, siltstone.ErrTooLarge)
	}
	c.release(len(req.Batches))
	op.refuse(c, part, err)
}

// refuse decides a part that is not taken, or not any more.
func (op *appendOp) refuse(c *core, part int, err error) {
	c.noteRefused(&op.req.Parts[part], err)
	op.decide(c, part, err)
}

// countOffsets is how many offsets the batches of a part take.
func countOffsets(batches []byte) (n siltstone.Offset, err error) {
	for b, err := range batch.All(batches) {
		if err != nil {
			return 0, err
		}
		h, err := batch.ParseHeader(b)
		if err != nil {
			return 0, err
		}
		if h.ProducerID >= 0 && len(b) < len(batches) {
			return 0, fmt.Errorf("a batch of producer %d beside others: %w", h.ProducerID, siltstone.ErrOutOfOrderSequence)
		}
		n += siltstone.Offset(h.LastOffsetDelta) + 1
	}
	return n, nil
}

// bufferPart gives the batches of a part their offsets and buffers them, if
// an idempotent producer may write them now.
func (c *core) bufferPart(p *partition, op *appendOp, part int) {
	req := &op.req.Parts[part]
	if len(req.Batches) > 0 && batch.ProducerID(req.Batches) >= 0 && !c.inSequence(p, op, part) {
		return
	}
	req.Base, req.LogStart = p.next, p.start
	for rest := req.Batches; len(rest) > 0; {
		rest = rest[c.buffer(p, rest):]
	}
	c.metrics.appended(len(req.Batches))
	if op.req.Acks != -1 || c.opts.Plant.Is(planted.AckBeforeFlush) ||
		c.opts.Plant.Is(planted.LoneAcks) && len(p.shard.fold().ISR()) == 1 {
		op.decide(c, part, nil)
	} else {
		p.await(appendWait{op: op, part: part, end: p.next})
	}
	if p.room() < siltstone.UncleanJump/2 || (op.req.Acks == -1 || len(p.fetchers) > 0) && c.awaitsFlush(p) {
		c.somebodyWaits()
	}
}

// A parkedPart waits until offsets may be given out again; its bytes are
// counted already.
type parkedPart struct {
	op          *appendOp
	part, bytes int
}

// unpark takes the parts for which a flush made room, in the order in which they came.
func (c *core) unpark(p *partition) {
	for len(p.parked) > 0 {
		w := p.parked[0]
		req := &w.op.req.Parts[w.part]
		if !errors.Is(req.Err, errUndecided) {
			c.release(w.bytes) // timed out, and no longer ours to read
		} else if offsets, _ := countOffsets(req.Batches); offsets > p.room() {
			c.somebodyWaits()
			return
		} else {
			c.bufferPart(p, w.op, w.part)
		}
		p.parked = p.parked[1:]
	}
	p.parked = nil
}

// buffer copies the first of some batches, stamps it, and makes its partition
// due for a flush. It returns the batch's size.
func (c *core) buffer(p *partition, batches []byte) int {
	h, _ := batch.ParseHeader(batches) // appendPart has parsed it
	b := batches[:h.SizeBytes()]
	in, pos := c.slabs.put(p, b)
	ref := batchRef{
		slab: in, pos: pos, size: uint32(len(b)), at: c.sinceBegin(),
		base: p.next, offsets: h.LastOffsetDelta + 1, epoch: p.shard.epoch, maxTimestamp: h.MaxTimestamp,
	}
	batch.Stamp(ref.bytes(), ref.base, ref.epoch)
	p.tail.push(ref)
	p.next = ref.end()
	if r := &p.shard.replicas; len(r.followers) > 0 && c.zonesFor(p) > 0 {
		r.fresh = append(r.fresh, heldBatch{p, ref})
	}
	p.uncut++
	if !p.dirty {
		p.dirty = true
		c.dirty = append(c.dirty, p)
	}
	if c.uncutBytes == 0 {
		c.oldestUncut = c.now
	}
	c.uncutBytes += len(b)
	return len(b)
}

// uncutNone takes a partition's batches off those that are to be cut.
func (c *core) uncutNone(p *partition) {
	for ; p.uncut > 0; p.uncut-- {
		c.uncutBytes -= int(p.tail.at(p.tail.len() - p.uncut).size)
	}
}

// dropUnflushed forgets a partition's batches that are in no folded Segment.
func (c *core) dropUnflushed(p *partition) {
	c.uncutNone(p)
	n := p.tail.len()
	for n > 0 && p.tail.at(n-1).end() > p.flushed {
		n--
		ref := p.tail.at(n)
		c.flushed(ref)
		*ref = batchRef{}
	}
	p.tail.refs = p.tail.refs[:p.tail.head+n]
	p.next, p.live = p.flushed, nil
}
