package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Options of a Client.
type Options struct {
	Coordinator coordinator.Coordinator
	Bucket      bucket.Bucket // of checkpoints
	// Rand makes the jitter of pauses, and nonces of registers and checkpoint
	// keys: two processes must not share its sequence. It is called from many
	// goroutines at once.
	Rand func() uint64
	// BackoffMin and BackoffMax bound the pause before a try again, which
	// doubles: 10 ms and 1 s if zero.
	BackoffMin, BackoffMax time.Duration
	// TryTimeout bounds each call to the coordinator: 5 s if zero.
	TryTimeout time.Duration
	Logger     *slog.Logger // none if nil
	// Stalled, if set, hears of each try of an Append that is to be made
	// again, and with no error once the Append is settled.
	Stalled func(ledger string, err error)
	Bug     planted.Bug // tests only
}

// Client does the I/O of ledgers and their checkpoints. All its methods may be
// called at once from anywhere.
type Client struct{ o Options }

// NewClient fills in what the options leave open.
func NewClient(o Options) *Client {
	if o.BackoffMin == 0 {
		o.BackoffMin = 10 * time.Millisecond
	}
	if o.BackoffMax == 0 {
		o.BackoffMax = time.Second
	}
	if o.TryTimeout == 0 {
		o.TryTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Stalled == nil {
		o.Stalled = func(string, error) {}
	}
	return &Client{o: o}
}

// Append sends a proposal to its slot until it is settled: until the slot
// turns out to be filled, by it or by another's entry, and the floor, read
// after that, to lie below the slot; or the floor to lie above. An unknown
// outcome is followed by the same entry in the same slot, for an empty slot
// read back would prove nothing. It goes on through every error but
// siltstone.ErrCorrupt, until ctx ends. Then the proposal is as unsettled as before, and may be given to
// Append again; the error wraps coordinator.ErrUnknown if this call may have
// landed it.
func (c *Client) Append(ctx context.Context, p Proposal) (Outcome, error) {
	e := coordinator.Entry{Seq: p.Slot(), Nonce: p.Nonce, Data: p.Data}
	unknown := false // a try may have landed, or may yet
	for pause := c.backoff(); ; {
		err := c.try(ctx, func(ctx context.Context) error {
			return c.o.Coordinator.Append(ctx, p.Ledger, e)
		})
		var conflict *coordinator.Conflict
		switch {
		case err == nil:
			return c.settle(ctx, p, true)
		case errors.As(err, &conflict):
			return c.settle(ctx, p, conflict.Occupant.Nonce == p.Nonce)
		case errors.Is(err, coordinator.ErrUnknown):
			if c.o.Bug.Is(planted.TimedOutIsFailed) {
				return Outcome{Nonce: p.Nonce}, nil
			}
			unknown = true
		case unknown:
			err = fmt.Errorf("%w, after an %w", err, coordinator.ErrUnknown)
		}
		c.o.Stalled(p.Ledger, err)
		if errors.Is(err, siltstone.ErrCorrupt) || !pause(ctx) {
			return Outcome{}, fmt.Errorf("append to %s at %d: %w", p.Ledger, e.Seq, err)
		}
		c.o.Logger.Debug("appending again", "ledger", p.Ledger, "seq", e.Seq, "err", err)
	}
}

// settle is for a proposal whose slot has been found filled. That counts only
// if it was not trimmed before: the floor is read, until it has been. Of a slot
// that was lost, what is in it and as much as there is after it is read too, so
// that whoever was away for long catches up in few steps.
func (c *Client) settle(ctx context.Context, p Proposal, won bool) (Outcome, error) {
	for pause := c.backoff(); ; {
		o := Outcome{Won: true, Entries: []coordinator.Entry{{Seq: p.Slot(), Nonce: p.Nonce, Data: p.Data}}}
		var err error
		if won {
			err = c.checkFloor(ctx, p.Ledger, p.Slot(), &o)
		} else {
			o, err = c.Read(ctx, p.Ledger, p.At.Seq, coordinator.MaxReadEntries)
		}
		if err == nil {
			o.Nonce = p.Nonce
			c.o.Stalled(p.Ledger, nil)
			return o, nil
		}
		c.o.Stalled(p.Ledger, err)
		if errors.Is(err, siltstone.ErrCorrupt) || !pause(ctx) {
			return Outcome{}, fmt.Errorf("append to %s at %d: %w, after an %w", p.Ledger, p.Slot(), err, coordinator.ErrUnknown)
		}
		c.o.Logger.Debug("reading again what an append has met", "ledger", p.Ledger, "seq", p.Slot(), "err", err)
	}
}

// Read returns the entries after a seq, at most limit; none when it is the
// last. The floor is read after them, so what it returns may be folded.
func (c *Client) Read(ctx context.Context, ledger string, after coordinator.Seq, limit int) (Outcome, error) {
	var o Outcome
	gap := c.retry(ctx, func(ctx context.Context) (err error) {
		o.Entries, err = c.o.Coordinator.Read(ctx, ledger, after, limit)
		return err
	})
	if gap != nil && !errors.Is(gap, coordinator.ErrGap) {
		return Outcome{}, fmt.Errorf("read %s after %d: %w", ledger, after, gap)
	}
	if err := c.checkFloor(ctx, ledger, after+1, &o); err != nil {
		return Outcome{}, fmt.Errorf("read %s after %d: %w", ledger, after, err)
	}
	if gap != nil && !o.Trimmed {
		return Outcome{}, fmt.Errorf("read %s after %d, floor %d: %w: %w", ledger, after, o.Floor, gap, siltstone.ErrCorrupt)
	}
	return o, nil
}

// checkFloor reads the floor after all else that is in an outcome, which
// counts only if the floor lies below its first slot.
func (c *Client) checkFloor(ctx context.Context, ledger string, first coordinator.Seq, o *Outcome) error {
	floor, err := c.floor(ctx, ledger)
	if o.Floor = floor; floor >= first {
		o.Won, o.Trimmed, o.Entries = false, true, nil
	}
	return err
}

func (c *Client) floor(ctx context.Context, ledger string) (floor coordinator.Seq, err error) {
	err = c.retry(ctx, func(ctx context.Context) error {
		floor, err = c.o.Coordinator.Floor(ctx, ledger)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("floor of %s: %w", ledger, err)
	}
	return floor, nil
}

// try gives one call to the coordinator its deadline.
func (c *Client) try(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.TryTimeout)
	defer cancel()
	return call(ctx)
}

// retry is try for a read, which may be made again, a few times.
func (c *Client) retry(ctx context.Context, call func(context.Context) error) error {
	const tries = 4
	pause := c.backoff()
	for n := 1; ; n++ {
		err := c.try(ctx, call)
		if err == nil || n == tries || errors.Is(err, coordinator.ErrGap) || !pause(ctx) {
			return err
		}
	}
}

// backoff returns a function that pauses, longer each time, and says whether
// the context is still good.
func (c *Client) backoff() func(context.Context) bool {
	pause := c.o.BackoffMin
	return func(ctx context.Context) bool {
		// Half of the pause is jitter, so that writers in step fall out of it.
		t := time.NewTimer(pause/2 + time.Duration(c.o.Rand()%uint64(pause/2+1)))
		defer t.Stop()
		pause = min(2*pause, c.o.BackoffMax)
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
			return ctx.Err() == nil
		}
	}
}
