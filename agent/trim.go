package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// Trim moves log starts, and returns once each part is decided, at r.Deadline
// at the latest. Readers see a log start once a Trim entry with it is folded,
// and so does whoever leads next. An error says that there is no outcome; the
// request stays the agent's then.
func (a *Agent) Trim(ctx context.Context, r *siltstone.TrimRequest) error {
	op := &trimOp{req: r, left: len(r.Parts), done: make(chan struct{})}
	if err := a.post(ctx, op); err != nil {
		return err
	}
	err := a.wait(ctx, op.done)
	if err != nil {
		_ = a.post(context.WithoutCancel(ctx), &trimGone{op, err})
	}
	return err
}

// A trimOp is a Trim that the loop has not answered.
type trimOp struct {
	req     *siltstone.TrimRequest
	left    int // parts undecided
	waiting bool
	index   int
	done    chan struct{}
}

// A trimWait is a part of a trimOp that is answered once the log starts at
// start or above.
type trimWait struct {
	op    *trimOp
	part  int
	start siltstone.Offset
}

func (op *trimOp) deadline() time.Time { return op.req.Deadline }
func (op *trimOp) place() *int         { return &op.index }

// expire answers what is undecided. It may be on its way all the same.
func (op *trimOp) expire(c *core) {
	op.waiting = false
	op.giveUp(c, siltstone.ErrTimedOut)
}

// giveUp decides all that is undecided.
func (op *trimOp) giveUp(c *core, err error) {
	for i := range op.req.Parts {
		part := &op.req.Parts[i]
		if !errors.Is(part.Err, errUndecided) {
			continue
		}
		if p := c.parts[part.Partition]; p != nil {
			p.trims = slices.DeleteFunc(p.trims, func(w trimWait) bool { return w.op == op })
		}
		op.decide(c, i, -1, err)
	}
}

// trimGone is that nobody waits for a Trim any more.
type trimGone struct {
	op  *trimOp
	err error
}

func (e *trimGone) handle(c *core) { e.op.giveUp(c, e.err) }

func (op *trimOp) handle(c *core) {
	for i := range op.req.Parts {
		op.req.Parts[i].Err = errUndecided
	}
	if op.left == 0 {
		close(op.done)
		return
	}
	op.waiting = true
	c.deadlines.add(op)
	for i := range op.req.Parts {
		c.trimPart(op, i)
	}
}

func (op *trimOp) decide(c *core, part int, start siltstone.Offset, err error) {
	p := &op.req.Parts[part]
	p.LogStart, p.Err = start, err
	if op.left--; op.left > 0 {
		return
	}
	if op.waiting {
		op.waiting = false
		c.deadlines.remove(op)
	}
	close(op.done)
}

// trimPart decides on one part, or has it wait for an entry.
func (c *core) trimPart(op *trimOp, part int) {
	req := &op.req.Parts[part]
	p, err := c.leading(req.Partition)
	if err != nil {
		op.decide(c, part, -1, err)
		return
	}
	start := req.Start
	if start == siltstone.TrimAll {
		start = p.high()
	}
	switch {
	case start < 0 || start > p.high():
		op.decide(c, part, -1, fmt.Errorf("%w: %d, where the high watermark is %d", siltstone.ErrOffsetOutOfRange, start, p.high()))
	case start <= p.start:
		op.decide(c, part, p.start, nil)
	default:
		if !p.toTrim {
			p.toTrim = true
			p.shard.toTrim = append(p.shard.toTrim, p)
		}
		p.trims = append(p.trims, trimWait{op, part, start})
		if start > p.flushed {
			c.somebodyWaits()
		}
	}
}

// trimTo is where a partition's log is to start, as far as it is flushed.
func (p *partition) trimTo() (start siltstone.Offset) {
	for _, w := range p.trims {
		if w.start <= p.flushed {
			start = max(start, w.start)
		}
	}
	return start
}

// canTrim says whether a log start can be moved: what goes must be flushed.
func (c *core) canTrim(s *ledShard) bool {
	return slices.ContainsFunc(s.toTrim, func(p *partition) bool { return p.trimTo() > p.start })
}

// trimBody moves the log starts that somebody waits for.
func (c *core) trimBody(s *ledShard) shard.Body {
	trim := &shard.Trim{}
	for _, p := range s.toTrim {
		start := p.trimTo()
		if start <= p.start || len(trim.Parts) >= maxEntryParts {
			continue
		}
		known, _ := s.fold().Partition(p.tp)
		trim.Parts = append(trim.Parts, shard.TrimPart{Number: known.Number, Partition: p.tp.Partition, Start: start})
	}
	return trim
}

// startAt moves a partition's log start up to where the fold has it, and
// answers whom that answers.
func (p *partition) startAt(c *core, start siltstone.Offset) {
	p.start = max(p.start, start)
	p.trims = slices.DeleteFunc(p.trims, func(w trimWait) bool {
		done := w.start <= p.start
		if done {
			w.op.decide(c, w.part, p.start, nil)
		}
		return done
	})
}

// failTrims answers all who wait for a log start.
func (p *partition) failTrims(c *core, err error) {
	for _, w := range p.trims {
		w.op.decide(c, w.part, -1, err)
	}
	p.trims = nil
}
