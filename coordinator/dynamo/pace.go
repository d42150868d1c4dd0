package dynamo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
)

const (
	// paceAfter is how many requests have to fail in a row for the store to
	// count as down.
	paceAfter = 8
	// paceEvery is the time between requests to a store that is down, by all
	// callers together: however many ledgers there are, they must not add to
	// its trouble, or to the bill.
	paceEvery = 100 * time.Millisecond
)

// pace makes callers of a store that is down take turns. The zero pace is of
// one that is up.
type pace struct {
	mu     sync.Mutex
	failed int           // requests in a row
	up     chan struct{} // closed when the store is up again; nil while it is
	next   time.Time     // the next turn
}

// turn waits for the caller's turn, or for the store to be up.
func (p *pace) turn(ctx context.Context, closing <-chan struct{}) error {
	for {
		pause, up := p.take()
		if pause <= 0 {
			return nil
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-up:
		case <-ctx.Done():
			return fmt.Errorf("the store is down: %w", ctx.Err())
		case <-closing:
			return fmt.Errorf("the store is down: %w", siltstone.ErrUnavailable)
		}
		t.Stop()
	}
}

// take takes the next turn if it has come, and says how long it is until then if not.
func (p *pace) take() (time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.up == nil {
		return 0, nil
	}
	now := time.Now()
	if pause := p.next.Sub(now); pause > 0 {
		return pause, p.up
	}
	p.next = now.Add(paceEvery)
	return 0, nil
}

// settle hears how a request went.
func (p *pace) settle(answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !answered:
		if p.failed++; p.failed >= paceAfter && p.up == nil {
			p.up, p.next = make(chan struct{}), time.Now().Add(paceEvery)
		}
	case p.up != nil:
		close(p.up)
		p.up = nil
		fallthrough
	default:
		p.failed = 0
	}
}
