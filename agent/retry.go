package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Pauses between tries, and the time for one.
const (
	retryFirst = 20 * time.Millisecond
	retryMost  = 2 * time.Second
	tryTimeout = 30 * time.Second
	// lateAfter is when one that has not been answered is trouble.
	lateAfter = 10 * time.Second
	// slowest is how many bytes a second a body moves at the least: a try has
	// more time by that.
	slowest = 256 << 10
)

var errLate = errors.New("no answer yet")

// watched calls f, and notes if it takes long.
func (a *Agent) watched(late time.Duration, what string, f func() error) error {
	var mu sync.Mutex
	done := false
	timer := time.AfterFunc(late, func() {
		mu.Lock()
		defer mu.Unlock()
		if !done {
			a.troubled(what, errLate)
		}
	})
	err := f()
	timer.Stop()
	mu.Lock()
	done = true
	mu.Unlock()
	return err
}

// jitter is random enough for pauses and for names that are the agent's own.
// It follows from the time alone, whatever the order in which workers ask, so
// that a simulated agent repeats itself.
func (a *Agent) jitter() uint64 {
	return rand.NewPCG(uint64(a.opts.Incarnation), uint64(time.Now().UnixNano())).Uint64()
}

// retry calls f until it succeeds, ctx ends, or it fails with one of the
// errors that trying again cannot mend. Whoever waits for the outcome has a
// deadline of its own.
func (a *Agent) retry(ctx context.Context, what string, f func(context.Context) error, final ...error) error {
	return a.retryBody(ctx, 0, what, f, final...)
}

// retryBody is retry for so many bytes.
func (a *Agent) retryBody(ctx context.Context, bytes int64, what string, f func(context.Context) error, final ...error) error {
	timeout := tryTimeout + time.Duration(bytes/slowest)*time.Second
	for try := 0; ; try++ {
		once, cancel := context.WithTimeout(ctx, timeout)
		err := a.watched(lateAfter+timeout-tryTimeout, what, func() error { return f(once) })
		cancel()
		if err == nil {
			a.troubled(what, nil)
			return nil
		}
		for _, e := range final {
			if errors.Is(err, e) {
				a.troubled(what, nil)
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.troubled(what, err)
		pause := min(retryFirst<<min(try, 10), retryMost)
		select {
		case <-time.After(pause/2 + time.Duration(a.jitter()%uint64(pause))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
