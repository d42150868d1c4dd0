package agent

import (
	"context"
	"time"

	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// unstored is what no checkpoint of a ledger covers.
type unstored struct {
	entries       int
	firstEntry    time.Time // when the first of them was folded
	checkpointing bool
}

// add counts entries that have been folded.
func (u *unstored) add(entries int, now time.Time) {
	if u.entries == 0 {
		u.firstEntry = now
	}
	u.entries += entries
}

// restart counts anew, for a fold that has been loaded.
func (u *unstored) restart(at, checkpoint ledger.Position, now time.Time) {
	u.entries = 0
	u.add(int(at.Seq-checkpoint.Seq), now)
}

// checkpointDue is when a fold is to be stored; zero if never.
func (c *core) checkpointDue(u *unstored) time.Time {
	switch {
	case u.entries == 0 || u.checkpointing || c.draining:
		return time.Time{}
	case u.entries >= c.opts.CheckpointEntries:
		return c.now
	}
	return u.firstEntry.Add(c.opts.CheckpointAge)
}

// checkpointIfDue stores a ledger's fold after so many entries or so long, and
// trims what it covers and is old.
func (c *core) checkpointIfDue(u *unstored, name string, encode func() ledger.EncodedCheckpoint) {
	if due := c.checkpointDue(u); due.IsZero() || due.After(c.now) {
		return
	}
	u.checkpointing = true
	u.entries = 0
	stored := encode()
	c.work(func(ctx context.Context) event {
		err := c.retry(ctx, "checkpoint "+name, func(ctx context.Context) error {
			return c.ledgers.SaveCheckpoint(ctx, stored)
		})
		if err == nil {
			c.metrics.checkpointed()
			err = c.trim(ctx, name)
		}
		return &checkpointed{of: u, name: name, err: err}
	})
}

// trim deletes old entries below the newest checkpoint. What fails now is tried at the next one.
func (c *core) trim(ctx context.Context, name string) error {
	for last := int64(-1); ; {
		floor, err := c.ledgers.Trim(ctx, name, c.wallMS())
		if err != nil || int64(floor) <= last {
			return err
		}
		last = int64(floor)
	}
}

type checkpointed struct {
	of   *unstored
	name string
	err  error
}

func (e *checkpointed) handle(c *core) {
	e.of.checkpointing = false
	if e.err != nil && c.workCtx.Err() == nil {
		c.opts.Log.Warn("checkpoint or trim failed; the next one tries again", "ledger", e.name, "err", e.err)
	}
}
