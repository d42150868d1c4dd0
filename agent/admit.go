package agent

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/siltstone-io/siltstone"
)

// An admission is an append's place in the queue for memory. The loop takes
// those that wait in the order in which they came, as many at once as fit, so
// that what a flush holds does not depend on which goroutine runs first.
type admission struct {
	bytes   int64
	decided atomic.Bool   // taken by the loop, or given up by who waits
	taken   chan struct{} // closed once the loop has the append
}

// appendInTurn queues an append until there is memory for it.
func (a *Agent) appendInTurn(ctx context.Context, op *appendOp, bytes int64) error {
	wait := &admission{bytes: bytes, taken: make(chan struct{})}
	op.wait = wait
	a.queued.Add(1)
	if err := a.post(ctx, op); err != nil {
		a.queued.Add(-1)
		return err
	}
	err := errStopped
	select {
	case <-wait.taken:
		return nil
	case <-ctx.Done():
		err = fmt.Errorf("append: %w: memory for unflushed records is short", siltstone.ErrUnavailable)
	case <-a.ended:
	}
	if wait.decided.CompareAndSwap(false, true) {
		return err
	}
	return nil // it was taken just now
}

// admit takes the appends that wait, as far as there is memory.
func (c *core) admit() {
	for len(c.queue) > 0 {
		op := c.queue[0]
		wait := op.wait
		if !wait.decided.Load() {
			if !c.memory.TryAcquire(wait.bytes) {
				return
			}
			if wait.decided.CompareAndSwap(false, true) {
				op.take(c)
				close(wait.taken)
			} else {
				c.memory.Release(wait.bytes)
			}
		}
		c.queue[0] = nil
		c.queue = c.queue[1:]
		c.queued.Add(-1)
	}
	c.queue = nil
}
