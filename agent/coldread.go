package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// coldTime is how long a fetch that has some records goes on reading objects
// for more: a reader far behind over many small ones gets what there is.
const coldTime = 500 * time.Millisecond

// planAgain is how often a fetch that met a missing object is planned again.
const planAgain = 3

// A coldRead fills in what the plan of a fetch leaves to be read from objects.
// Its parts take turns, an object at a time: those that are read together were
// mostly written together, into the same objects, and so each object is read
// once for all of them, and kept once.
type coldRead struct {
	*Agent
	op    *fetchOp
	lease *readLease

	budget int // bytes that the response has room for
	some   bool
	until  time.Time
	kept   map[tiered.Kept]struct{}
	whole  map[segment.ObjectID]struct{} // objects that are kept whole
}

// coldPart is what is still to be read of one partition.
type coldPart struct {
	req    *siltstone.FetchPart
	out    *siltstone.FetchedPart
	ranges []shard.Range
	from   siltstone.Offset
	size   int // of what was read
}

// readCold reads as long as the response has room. The first batch of the
// first part that has any is given whole; the plan did not know how large that
// is, so what comes from memory after it may have to wait. An object that is
// missing was perhaps replaced and collected since the plan was made: then the
// answer is not complete, and planned again; but the last time it is an error
// of its part.
func (a *Agent) readCold(ctx context.Context, op *fetchOp, lease *readLease, last bool) (complete bool) {
	if op.cold == nil {
		return true
	}
	defer lease.keep(0) // of what is reserved
	r := &coldRead{
		Agent: a, op: op, lease: lease,
		budget: op.req.MaxBytes, until: time.Now().Add(coldTime), kept: map[tiered.Kept]struct{}{}, whole: map[segment.ObjectID]struct{}{},
	}
	var parts []*coldPart
	for i, ranges := range op.cold {
		if ranges == nil {
			r.takeWarm(&op.result.Parts[i])
			continue
		}
		req := &op.req.Parts[i]
		p := &coldPart{req: req, out: &op.result.Parts[i], ranges: ranges, from: req.Offset}
		more, complete := r.turn(ctx, p, last)
		if !complete {
			return false
		}
		if more {
			parts = append(parts, p)
		}
	}
	for complete = true; complete && len(parts) > 0; {
		parts = slices.DeleteFunc(parts, func(p *coldPart) bool {
			if !complete {
				return true
			}
			var more bool
			more, complete = r.turn(ctx, p, last)
			return !more
		})
	}
	return complete
}

// takeWarm counts what the plan took from memory, or leaves it for the next fetch.
func (r *coldRead) takeWarm(part *siltstone.FetchedPart) {
	size := 0
	for _, b := range part.Records {
		size += len(b)
	}
	if r.some && size > r.budget {
		part.Records, size = nil, 0
	}
	r.budget -= size
	r.some = r.some || size > 0
}

// turn reads a part on, and says whether there may be more of it for this
// response, and whether that is still one.
func (r *coldRead) turn(ctx context.Context, p *coldPart, last bool) (more, complete bool) {
	more, err := r.next(ctx, p)
	missing := errors.Is(err, bucket.ErrNotFound)
	switch {
	case err == nil:
		return more, true
	case missing && !last || ctx.Err() != nil:
		return false, false
	case missing:
		p.out.Records, err = nil, fmt.Errorf("%w: %w", siltstone.ErrCorrupt, err)
	case p.size > 0:
		return false, true // the next fetch meets the error
	}
	p.out.Err = err
	return false, true
}

// next reads what a part has in its next object that has any of it.
func (r *coldRead) next(ctx context.Context, p *coldPart) (more bool, err error) {
	limit := min(r.budget, p.req.MaxBytes-p.size)
	if r.some && (limit <= 0 || !time.Now().Before(r.until)) {
		return false, nil
	}
	for len(p.ranges) > 0 {
		rng := p.ranges[0]
		if !r.room(p, rng.Object) {
			return false, nil
		}
		r.opts.Turn(ctx, r.op.number)
		r.reader.ReadAhead(p.ranges[1:min(1+readAhead, len(p.ranges))]...)
		got, err := r.reader.Read(ctx, tiered.Request{Partition: p.req.Partition, Range: rng, From: p.from, MaxBytes: limit})
		if err != nil {
			return false, err
		}
		if r.some && got.SizeBytes > limit {
			return false, nil // the first batch that Read gives, whatever the limit
		}
		r.keep(rng.Object, got.Kept)
		p.out.Records = append(p.out.Records, got.Batches...)
		p.size += got.SizeBytes
		r.budget -= got.SizeBytes
		r.some = r.some || got.SizeBytes > 0
		if p.from = got.Next; p.from < rng.End() {
			return false, nil
		}
		p.ranges = p.ranges[1:]
		if got.SizeBytes > 0 {
			return true, nil
		}
	}
	return false, nil
}

// room says whether there is memory for what is read next. What is kept for
// another part needs no more: so those that stand at the same object stay together.
func (r *coldRead) room(p *coldPart, next segment.ObjectID) bool {
	if _, kept := r.whole[next]; kept {
		return true
	}
	return (p.size == 0 || r.lease.held < r.op.pins.room) && r.lease.reserve(r.opts.Memory.Whole)
}

// keep counts the memory that batches keep, once for all that are in it.
func (r *coldRead) keep(object segment.ObjectID, all []tiered.Kept) {
	bytes := 0
	for _, k := range all {
		if _, counted := r.kept[k]; !counted {
			r.kept[k] = struct{}{}
			bytes += k.SizeBytes()
		}
		if k.Whole() {
			r.whole[object] = struct{}{}
		}
	}
	r.lease.keep(bytes)
}
