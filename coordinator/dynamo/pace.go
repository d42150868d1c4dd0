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
	// paceEvery is the time between reads, and between writes, to a store that
	// is down, by all callers together: however many ledgers there are, they
	// must not add to its trouble, or to the bill.
	paceEvery = 125 * time.Millisecond
)

// pace makes callers of a store that is down take turns. The zero pace is of
// one that is up.
type pace struct {
	mu     sync.Mutex
	failed int       // requests in a row
	next   time.Time // the next turn, while the store is down
}

// turn waits for the caller's turn, or for the store to be up.
func (p *pace) turn(ctx context.Context, closing <-chan struct{}) error {
	for {
		pause := p.take()
		if pause <= 0 {
			return nil
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("the store is down: %w", ctx.Err())
		case <-closing:
			return fmt.Errorf("the store is down: %w", siltstone.ErrUnavailable)
		}
		t.Stop()
	}
}

// take takes the next turn if it has come, and says how long it is until then if not.
func (p *pace) take() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed < paceAfter {
		return 0
	}
	now := time.Now()
	if pause := p.next.Sub(now); pause > 0 {
		return pause
	}
	p.next = now.Add(paceEvery)
	return 0
}

// settle hears how a request went.
func (p *pace) settle(answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answered {
		p.failed = 0
		return
	}
	if p.failed++; p.failed == paceAfter {
		p.next = time.Now().Add(paceEvery)
	}
}
