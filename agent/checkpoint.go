package agent

import (
	"context"
	"time"
)

// countEntry notes an entry that no checkpoint covers.
func (c *core) countEntry(s *ledShard) {
	if s.entries == 0 {
		s.firstEntry = c.now
	}
	s.entries++
}

// checkpointDue is when a shard's fold is to be stored; zero if never.
func (c *core) checkpointDue(s *ledShard) time.Time {
	switch {
	case s.entries == 0 || s.checkpointing || !s.leads() || c.draining:
		return time.Time{}
	case s.entries >= c.opts.CheckpointEntries:
		return c.now
	}
	return s.firstEntry.Add(c.opts.CheckpointAge)
}

// checkpointIfDue stores a shard's fold after so many entries or so long, and
// trims what it covers and is old.
func (c *core) checkpointIfDue(s *ledShard) {
	if due := c.checkpointDue(s); due.IsZero() || due.After(c.now) {
		return
	}
	s.checkpointing = true
	s.entries = 0
	stored := s.log.Checkpoint()
	c.work(func(ctx context.Context) event {
		err := c.retry(ctx, "checkpoint "+s.log.Name(), func(ctx context.Context) error {
			return c.ledgers.SaveCheckpoint(ctx, stored)
		})
		if err == nil {
			err = c.trim(ctx, s.log.Name())
		}
		return &checkpointed{s: s, err: err}
	})
}

// trim deletes old entries below the newest checkpoint. What fails now is tried at the next one.
func (c *core) trim(ctx context.Context, name string) error {
	for last := int64(-1); ; {
		floor, err := c.ledgers.Trim(ctx, name, time.Now().UnixMilli())
		if err != nil || int64(floor) <= last {
			return err
		}
		last = int64(floor)
	}
}

type checkpointed struct {
	s   *ledShard
	err error
}

func (e *checkpointed) handle(c *core) {
	e.s.checkpointing = false
	if e.err != nil && c.workCtx.Err() == nil {
		c.opts.Log.Warn("checkpoint or trim failed; the next one tries again", "ledger", e.s.log.Name(), "err", e.err)
	}
}
