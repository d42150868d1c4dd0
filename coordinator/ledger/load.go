package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Loaded is a ledger as LoadFold found it. It is what Log.Replace takes.
type Loaded[F Fold[C], C any] struct {
	Fold       F
	At         Position
	Checkpoint Position    // that it started from; zero: none
	Tail       []Change[C] // folded after the checkpoint
}

// LoadFold reads a ledger to its end: the newest checkpoint, then the entries
// after it. Where a trim or a newer checkpoint gets in its way it starts again.
// Where the newest checkpoint is damaged or lost, an older one, or none, and
// the entries after that fold to the same, as long as they are there.
func LoadFold[F Fold[C], C any](ctx context.Context, c *Client, ledger string, empty func() F) (Loaded[F, C], error) {
	var none Loaded[F, C]
	var tried Checkpoint
	for again := error(nil); ; {
		cp, _, err := c.Newest(ctx, ledger)
		if err != nil {
			return none, err
		}
		if again != nil && cp == tried {
			return loadOlder(ctx, c, cp, again, empty)
		}
		loaded, err := loadFrom(ctx, c, cp, ledger, empty())
		if !errors.Is(err, ErrTrimmed) && !isLost(err) {
			return loaded, err
		}
		tried, again = cp, err
	}
}

func loadFrom[F Fold[C], C any](ctx context.Context, c *Client, cp Checkpoint, ledger string, fold F) (Loaded[F, C], error) {
	var none Loaded[F, C]
	if cp.Key != "" {
		if err := c.Restore(ctx, cp, fold.Restore); err != nil {
			return none, &lostCheckpoint{err}
		}
	}
	l := New(ledger, fold)
	l.Replace(fold, cp.At)
	loaded := Loaded[F, C]{Fold: fold, Checkpoint: cp.At}
	for {
		o, err := c.Read(ctx, ledger, l.at.Seq, coordinator.MaxReadEntries)
		if err != nil {
			return none, err
		}
		changes, err := l.Settle(o)
		if err != nil {
			return none, err
		}
		if len(changes) == 0 {
			loaded.At = l.at
			return loaded, nil
		}
		loaded.Tail = append(loaded.Tail, changes...)
	}
}

// lostCheckpoint is that one cannot be restored.
type lostCheckpoint struct{ err error }

func (e *lostCheckpoint) Error() string { return e.err.Error() }
func (e *lostCheckpoint) Unwrap() error { return e.err }

// isLost says that a checkpoint is missing or damaged.
func isLost(err error) bool {
	var lost *lostCheckpoint
	return errors.As(err, &lost) && (errors.Is(err, bucket.ErrNotFound) || errors.Is(err, siltstone.ErrCorrupt))
}

// loadOlder loads a ledger without its newest checkpoint, for which it has why.
func loadOlder[F Fold[C], C any](ctx context.Context, c *Client, newest Checkpoint, why error, empty func() F) (Loaded[F, C], error) {
	var none Loaded[F, C]
	name := newest.Ledger
	lost := fmt.Errorf("load %s: no newer checkpoint than %d: %w: %w", name, newest.At.Seq, why, siltstone.ErrCorrupt)
	if !isLost(why) {
		return none, lost
	}
	floor, err := c.floor(ctx, name)
	if err != nil {
		return none, err
	}
	older, err := c.olderCheckpoints(ctx, newest, floor)
	if err != nil {
		return none, err
	}
	for _, cp := range older {
		loaded, err := loadFrom(ctx, c, cp, name, empty())
		switch {
		case isLost(err):
			continue
		case err != nil:
			return none, err
		case loaded.At.Seq < newest.At.Seq:
			return none, lost
		}
		c.o.Logger.Error("the newest checkpoint is lost; the fold is of an older one, and the entries after it",
			"ledger", name, "newest", newest.Key, "older", cp.Key, "err", why)
		return loaded, nil
	}
	return none, lost
}

// olderCheckpoints are those below one that the entries above the floor go on
// from, the newest first; where all entries are there, none at all is the last.
func (c *Client) olderCheckpoints(ctx context.Context, than Checkpoint, floor coordinator.Seq) ([]Checkpoint, error) {
	var older []Checkpoint
	if floor == 0 {
		older = append(older, Checkpoint{Ledger: than.Ledger})
	}
	const page = 1000
	prefix := checkpointKey(than.Ledger) + "/"
	for after := ""; ; {
		found, err := c.o.Bucket.List(ctx, prefix, after, page)
		if err != nil {
			return nil, fmt.Errorf("list checkpoints of %s: %w", than.Ledger, err)
		}
		for _, info := range found {
			after = info.Key
			object, err := c.o.Bucket.Get(ctx, info.Key, 0, -1)
			if err != nil && !errors.Is(err, bucket.ErrNotFound) {
				return nil, fmt.Errorf("read checkpoint %s: %w", info.Key, err)
			}
			cp, damage := DecodeCheckpoint(object, func(_, _ []byte) error { return nil })
			if cp.Key = info.Key; damage != nil {
				continue
			}
			if cp.Ledger == than.Ledger && cp.At.Seq >= floor && cp.At.Seq < than.At.Seq {
				older = append(older, cp)
			}
		}
		if len(found) < page {
			slices.Reverse(older)
			return older, nil
		}
	}
}
