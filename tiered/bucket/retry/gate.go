package retry

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
)

// A gate shuts when requests of its kind fail one after the other. Then one
// probes, after growing pauses, until one is answered; the others wait for a
// while, and then fail without having asked. There is one for each kind, for a
// store may take no deletes, and all else. At these figures a store that
// refuses all three kinds gets 15 requests in the first second, beside those
// that were under way, and 3 a second from then on.
const (
	shutAfter  = 3 // failures in a row
	firstProbe = 250 * time.Millisecond
	mostProbe  = time.Second
)

type gate struct {
	o    *Options
	kind string

	mu      sync.Mutex
	failed  int // in a row
	shut    bool
	cause   error // of the last failure
	probing bool
	pause   time.Duration
	next    time.Time     // no probe before
	changed chan struct{} // closed when a waiting call should look again
}

func newGate(o *Options, kind string) *gate {
	return &gate{o: o, kind: kind, changed: make(chan struct{})}
}

// pass lets one request through.
type pass struct {
	gate  *gate
	probe bool
}

// enter waits for a pass. Its error has the reason why the gate is shut.
func (g *gate) enter(ctx context.Context) (pass, error) {
	if err := ctx.Err(); err != nil {
		return pass{}, err
	}
	var patience <-chan time.Time
	for {
		p, ok, changed, wait := g.ask()
		if ok {
			return p, nil
		}
		if patience == nil {
			t := time.NewTimer(g.o.Patience)
			defer t.Stop()
			patience = t.C
		}
		probe := time.NewTimer(wait)
		select {
		case <-changed:
		case <-probe.C:
		case <-patience:
			probe.Stop()
			if p, ok, _, _ := g.ask(); ok {
				return p, nil
			}
			return pass{}, g.refusal()
		case <-ctx.Done():
			probe.Stop()
			return pass{}, fmt.Errorf("%w: %w", ctx.Err(), g.refusal())
		}
		probe.Stop()
	}
}

// ask gives a pass, or says when to ask again: when changed is closed, or after a while.
func (g *gate) ask() (p pass, ok bool, changed <-chan struct{}, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut {
		return pass{gate: g}, true, nil, 0
	}
	if g.probing {
		return pass{}, false, g.changed, g.o.Patience
	}
	if wait = time.Until(g.next); wait > 0 {
		return pass{}, false, g.changed, wait
	}
	g.probing = true
	return pass{gate: g, probe: true}, true, nil, 0
}

func (g *gate) refusal() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fmt.Errorf("%w: the store does not answer as it should; the last time: %w", siltstone.ErrUnavailable, g.cause)
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// leave tells what came of the request.
func (p pass) leave(ctx context.Context, err error) {
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.probe {
		g.probing = false
	}
	switch {
	case err == nil || isAnswer(err):
		g.failed, g.shut = 0, false
	case ctx.Err() != nil: // the caller went; that says nothing of the store
	default:
		g.failed++
		g.cause = err
		g.shutAgain(p.probe)
	}
	if p.probe || !g.shut {
		close(g.changed)
		g.changed = make(chan struct{})
	}
}

// shutAgain shuts the gate if it is time, or lets the next probe wait longer. The mutex is held.
func (g *gate) shutAgain(probe bool) {
	switch {
	case !g.shut && g.failed >= shutAfter:
		g.shut, g.pause = true, firstProbe
	case g.shut && probe:
		g.pause = min(2*g.pause, mostProbe)
	default:
		return
	}
	g.next = time.Now().Add(g.pause)
}
