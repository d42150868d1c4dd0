package agent

import (
	"context"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// Fetch returns records as the request asks, from memory where they are in
// memory, else from the bucket. Where there is no memory for the answer until
// the deadline, it has none.
func (a *Agent) Fetch(ctx context.Context, req *siltstone.FetchRequest) (*siltstone.FetchResult, error) {
	for try := 0; ; {
		op := &fetchOp{req: req, done: make(chan struct{}), pins: pins{room: a.reading.share()}}
		if err := a.post(ctx, op); err != nil {
			return nil, err
		}
		if err := a.wait(ctx, op.done); err != nil {
			_ = a.post(context.WithoutCancel(ctx), &giveUp{op})
			return nil, err
		}
		lease := &readLease{of: a.reading}
		if given := a.admitRead(op, lease); given != nil {
			result := op.take() // it keeps nothing while it waits
			if !a.untilGiven(ctx, given, req.Deadline) {
				return withoutRecords(result), context.Cause(ctx)
			}
			continue
		}
		complete := a.readCold(ctx, op, lease, try == planAgain)
		result := op.take()
		switch {
		case ctx.Err() != nil:
			lease.release()
			return nil, context.Cause(ctx)
		case complete:
			result.Release, result.Wanted = lease.release, lease.wanted
			return &result, nil
		}
		lease.release()
		try++
	}
}

// admitRead takes the memory that a plan needs to begin with, or returns what
// to wait for.
func (a *Agent) admitRead(op *fetchOp, lease *readLease) (given <-chan struct{}) {
	if op.cold == nil {
		return lease.take(op.pins.bytes, 0)
	}
	if given = lease.take(op.pins.bytes+a.opts.Memory.Whole, a.reading.forTail()); given == nil {
		lease.reserved = a.opts.Memory.Whole
	}
	return given
}

// A fetchOp is a fetch that the loop has not answered.
type fetchOp struct {
	req       *siltstone.FetchRequest
	number    uint64 // the loop counts them
	result    siltstone.FetchResult
	cold      [][]shard.Range // what to read, by part; made once something is
	pins      pins            // what the plan keeps
	available int             // bytes visible since the reader asked, as far as MinBytes goes
	urgent    bool            // an error, or enough: answer at once
	finished  bool
	waiting   bool
	index     int
	done      chan struct{}
}

func (op *fetchOp) deadline() time.Time { return op.req.Deadline }
func (op *fetchOp) place() *int         { return &op.index }
func (op *fetchOp) expire(c *core) {
	op.waiting = false
	op.finish(c)
}

func (op *fetchOp) handle(c *core) {
	c.fetches++
	op.number = c.fetches
	op.collect(c)
	if op.urgent || op.available >= op.req.MinBytes || !op.req.Deadline.After(c.given) {
		op.answer()
		return
	}
	op.waiting = true
	c.deadlines.add(op)
	for i := range op.req.Parts {
		p := c.parts[op.req.Parts[i].Partition]
		p.fetchers = append(p.dropFinished(), op)
		if p.uncut > 0 && c.awaitsFlush(p) {
			c.somebodyWaits() // a reader, for what is not flushed
		}
	}
}

// dropFinished keeps the list of readers from growing where nothing is written.
func (p *partition) dropFinished() []*fetchOp {
	kept := p.fetchers[:0]
	for _, op := range p.fetchers {
		if !op.finished {
			kept = append(kept, op)
		}
	}
	clear(p.fetchers[len(kept):])
	return kept
}

// finish answers with what there is now.
func (op *fetchOp) finish(c *core) {
	op.collect(c)
	if op.waiting {
		op.waiting = false
		c.deadlines.remove(op)
	}
	op.answer()
}

func (op *fetchOp) answer() {
	op.finished = true
	close(op.done)
}

// take takes the result out: partitions may have the operation among their
// readers until the next one comes, and it is not to keep records until then.
func (op *fetchOp) take() siltstone.FetchResult {
	result := op.result
	op.result, op.cold = siltstone.FetchResult{}, nil
	return result
}

// giveUp ends a fetch whose reader has gone.
type giveUp struct{ op *fetchOp }

func (e *giveUp) handle(c *core) {
	if !e.op.finished {
		e.op.finish(c)
	}
	e.op.take()
}

// collect plans the answer from the state as it is.
func (op *fetchOp) collect(c *core) {
	op.result = siltstone.FetchResult{Parts: make([]siltstone.FetchedPart, len(op.req.Parts))}
	op.cold, op.available, op.urgent = nil, 0, false
	c.plans++
	op.pins.mark, op.pins.bytes = c.plans, 0
	budget, some, most := op.req.MaxBytes, false, maxPlanRanges
	for i := range op.req.Parts {
		req, res := &op.req.Parts[i], &op.result.Parts[i]
		*res = siltstone.FetchedPart{HighWatermark: -1, LastStable: -1, Start: -1, DivergingEpoch: -1, DivergingEnd: -1}
		p, err := c.readable(req)
		high := siltstone.Offset(-1)
		if p != nil {
			if high = p.high(); c.opts.Plant.Is(planted.FetchAboveHigh) {
				high = p.next
			}
			res.HighWatermark, res.LastStable, res.Start = high, high, p.start
		}
		if err != nil {
			res.Err, op.urgent = err, true
			continue
		}
		if op.diverges(p, req, res) || req.Offset >= high {
			continue
		}
		if (budget <= 0 || most == 0 || op.pins.bytes >= op.pins.room) && some {
			op.urgent = true // there is more than fits
			continue
		}
		limit := min(budget, req.MaxBytes)
		if p.tail.covers(req.Offset) {
			records, size := p.fromTail(req.Offset, high, limit, !some, &op.pins)
			res.Records = records
			op.available += size
			budget -= size
			some = some || size > 0
			continue
		}
		ranges, size := c.coldRanges(p, req.Offset, limit, min(most, maxPartRanges))
		if len(ranges) == 0 {
			hole := p.hole(req.Offset)
			res.Records, size = [][]byte{hole}, len(hole)
		}
		if len(ranges) == min(most, maxPartRanges) {
			op.urgent = true // there may be more
		}
		most -= len(ranges)
		if op.cold == nil {
			op.cold = make([][]shard.Range, len(op.req.Parts))
		}
		op.cold[i] = ranges
		op.available += size
		budget -= size
		some = true
	}
}

// readable finds the partition and checks what the reader believes of it.
func (c *core) readable(req *siltstone.FetchPart) (*partition, error) {
	p := c.parts[req.Partition]
	switch {
	case p == nil:
		return nil, siltstone.ErrUnknownPartition
	case req.Offset < 0 && c.opts.Plant.Is(planted.DeposedAnswers):
		return p, nil
	case !p.open || !p.shard.leads() || !c.members.on:
		return nil, siltstone.ErrNotLeader
	}
	if err := p.shard.checkEpoch(req.Epoch); err != nil {
		return p, err
	}
	if req.Offset < p.start || req.Offset > p.next {
		return p, siltstone.ErrOffsetOutOfRange
	}
	return p, nil
}

// diverges tells a reader whose last batch this log does not have where to truncate to.
func (op *fetchOp) diverges(p *partition, req *siltstone.FetchPart, res *siltstone.FetchedPart) bool {
	if req.LastEpoch < 0 {
		return false
	}
	end := p.endOfEpoch(req.LastEpoch)
	if end.Epoch == req.LastEpoch && end.End >= req.Offset {
		return false
	}
	res.DivergingEpoch, res.DivergingEnd, op.urgent = end.Epoch, end.End, true
	return true
}

// hole is what a reader is given at an offset that names no record, though it is
// below the high watermark, nor does any up to the tail (or to the high
// watermark): an unclean takeover has left them out.
func (p *partition) hole(off siltstone.Offset) []byte {
	end := p.high()
	if p.tail.len() > 0 {
		end = min(end, p.tail.at(0).base)
	}
	return batch.Hole(off, end, p.epochAt(off))
}

// fromTail returns the batches from the one that holds off to the high
// watermark, up to limit bytes and as far as memory goes; the first one whole if
// it must be.
func (p *partition) fromTail(off, high siltstone.Offset, limit int, first bool, keeps *pins) (records [][]byte, size int) {
	var piece *batchRef // the first of the batches in the last piece
	for i := p.tail.from(off); i < p.tail.len(); i++ {
		b := p.tail.at(i)
		must := first && size == 0
		if b.end() > high || size+int(b.size) > limit && !must || !keeps.pin(b.slab, must) {
			break
		}
		size += int(b.size)
		// Batches that lie side by side in a slab go out as one piece.
		if piece != nil && piece.slab == b.slab && int(piece.pos)+len(records[len(records)-1]) == int(b.pos) {
			end := b.pos + b.size
			records[len(records)-1] = b.slab.buf[piece.pos:end:end]
			continue
		}
		piece = b
		records = append(records, b.bytes())
	}
	return records, size
}
