package ledger

import (
	"context"
	"errors"
	"fmt"

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
func LoadFold[F Fold[C], C any](ctx context.Context, c *Client, ledger string, empty func() F) (Loaded[F, C], error) {
	var none Loaded[F, C]
	var tried Checkpoint
	for again := error(nil); ; {
		cp, _, err := c.Newest(ctx, ledger)
		if err != nil {
			return none, err
		}
		if again != nil && cp == tried {
			return none, fmt.Errorf("load %s: no newer checkpoint than %d: %w: %w", ledger, cp.At.Seq, again, siltstone.ErrCorrupt)
		}
		loaded, err := loadFrom(ctx, c, cp, ledger, empty())
		if !errors.Is(err, ErrTrimmed) && !errors.Is(err, bucket.ErrNotFound) {
			return loaded, err
		}
		tried, again = cp, err
	}
}

func loadFrom[F Fold[C], C any](ctx context.Context, c *Client, cp Checkpoint, ledger string, fold F) (Loaded[F, C], error) {
	var none Loaded[F, C]
	if cp.Key != "" {
		if err := c.Restore(ctx, cp, fold.Restore); err != nil {
			return none, err
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
