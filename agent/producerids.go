package agent

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// NextProducerID is a producer id that nobody was ever given, in no agent and
// no run of one: from the block that this agent has taken in the cluster's
// ledger, or from the next. Its epoch is 0.
func (a *Agent) NextProducerID(ctx context.Context) (int64, error) {
	op := &producerIDOp{done: make(chan struct{})}
	if err := a.do(ctx, op, op.done); err != nil {
		op.gone.Store(true)
		return -1, err
	}
	return op.id, op.err
}

// producerIDs is what is left of the agent's block, and who waits for the
// next. What a run has left when it ends is lost.
type producerIDs struct {
	next, end int64
	taking    bool            // a block is being taken
	waiting   []*producerIDOp // in the order in which they came; maxChanges at most
}

// A producerIDOp asks the loop for an id.
type producerIDOp struct {
	gone atomic.Bool // nobody waits for it
	done chan struct{}
	id   int64
	err  error
}

func (op *producerIDOp) handle(c *core) {
	ids := &c.producerIDs
	if len(ids.waiting) >= maxChanges {
		ids.waiting = slices.DeleteFunc(ids.waiting, func(o *producerIDOp) bool { return o.gone.Load() })
	}
	if len(ids.waiting) >= maxChanges {
		op.answer(-1, fmt.Errorf("%w: %d wait for producer ids", siltstone.ErrUnavailable, len(ids.waiting)))
		return
	}
	ids.waiting = append(ids.waiting, op)
	c.giveProducerIDs()
}

func (op *producerIDOp) answer(id int64, err error) {
	op.id, op.err = id, err
	close(op.done)
}

// giveProducerIDs answers those who wait, and takes a block when one is used up.
func (c *core) giveProducerIDs() {
	ids := &c.producerIDs
	for ; len(ids.waiting) > 0 && ids.next < ids.end; ids.next++ {
		ids.waiting[0].answer(ids.next, nil)
		ids.waiting = ids.waiting[1:]
	}
	if len(ids.waiting) == 0 || ids.taking {
		return
	}
	ids.taking = true
	c.work(func(ctx context.Context) event {
		var taken producerIDsTaken
		err := c.Change(ctx, func(v *topic.View) (d topic.Decision) {
			d, taken.first, taken.err = topic.TakeProducerIDs(v)
			return d
		})
		if err != nil { // the block, if the entry is there after all, is lost
			return &producerIDsTaken{err: err}
		}
		return &taken
	})
}

// producerIDsTaken is the end of taking a block.
type producerIDsTaken struct {
	first int64
	err   error
}

func (e *producerIDsTaken) handle(c *core) {
	ids := &c.producerIDs
	ids.taking = false
	if e.err != nil {
		for _, op := range ids.waiting {
			op.answer(-1, fmt.Errorf("take a block of producer ids: %w", e.err))
		}
		ids.waiting = nil
		return
	}
	ids.next, ids.end = e.first, e.first+topic.ProducerIDBlock
	c.giveProducerIDs()
}
