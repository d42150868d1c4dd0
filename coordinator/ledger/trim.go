package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/siltstone-io/siltstone/coordinator"
)

const (
	// MinAge is how long every entry stays: a table can be restored, and its
	// history read, to any moment of that time.
	MinAge = 24 * time.Hour
	// trimReads bounds what one Trim looks at.
	trimReads = 16
)

// Trim deletes the entries that the newest checkpoint covers and that are, by
// nowMS, older than MinAge, never the newest entry. It returns the floor.
// One call takes a bounded number: while the floor rises, there may be more.
func (c *Client) Trim(ctx context.Context, ledger string, nowMS int64) (coordinator.Seq, error) {
	cp, found, err := c.Newest(ctx, ledger)
	if err != nil {
		return 0, err
	}
	floor, err := c.floor(ctx, ledger)
	if err != nil || !found {
		return floor, err
	}
	through, err := c.trimTarget(ctx, cp, floor, nowMS)
	if err != nil || through <= floor {
		return floor, err
	}
	// What a checkpoint covers is lost with it: it is read once more, whole.
	if err := c.Restore(ctx, cp, func(_, _ []byte) error { return nil }); err != nil {
		return floor, fmt.Errorf("trim %s: %w", ledger, err)
	}
	if err := c.o.Coordinator.Trim(ctx, ledger, through); err != nil {
		return floor, fmt.Errorf("trim %s through %d: %w", ledger, through, err)
	}
	return through, nil
}

// trimTarget is the last entry that may go.
func (c *Client) trimTarget(ctx context.Context, cp Checkpoint, floor coordinator.Seq, nowMS int64) (coordinator.Seq, error) {
	through, last := floor, floor
	for range trimReads {
		o, err := c.Read(ctx, cp.Ledger, last, coordinator.MaxReadEntries)
		if err != nil {
			return 0, err
		}
		if len(o.Entries) == 0 { // the end, or somebody else trims
			break
		}
		for _, e := range o.Entries {
			f, err := DecodeFrame(e.Data)
			if err != nil {
				return 0, fmt.Errorf("ledger %s, entry %d: %w", cp.Ledger, e.Seq, err)
			}
			last = e.Seq
			switch age := time.Duration(nowMS-f.TimeMS) * time.Millisecond; {
			case e.Seq > cp.At.Seq || age >= -MinAge && age <= MinAge:
				return min(through, last-1), nil
			case age > MinAge:
				through = e.Seq
			}
			// One from further ahead than any clock should be is as old as the
			// next: a wrong clock, once, must not keep a ledger for ever.
		}
	}
	return min(through, last-1), nil
}
