package dynamo

import (
	"context"
	"math/rand/v2"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Which requests are made again, after a pause that grows:
//
//   - one that was throttled did not land: until its caller's context ends;
//   - one that may have landed, or that the store could not be reached for: a
//     few times, if it may be made twice (reads, and writes that come to the
//     same);
//   - a conditional write that may have landed: never. It is
//     coordinator.ErrUnknown, and coordinator/ledger knows what to do.
//
// The SDK's own retries are off, as they know no difference.
const (
	tries      = 3
	pauseFirst = 50 * time.Millisecond
	pauseMost  = time.Second
)

// request is one kind of request.
type request struct {
	kind  string             // DynamoDB's name for it
	once  bool               // not to be made again once it may have landed
	write bool               // it changes something
	units prometheus.Counter // of what it takes; none if nil
	// do makes it, and returns the units that it takes if the store does it, or
	// finds that its condition fails.
	do func(context.Context) (float64, error)
}

// send makes a request until it is answered, or is not to be made again. A
// condition that fails is an answer: *types.ConditionalCheckFailedException.
func (c *Coordinator) send(ctx context.Context, r request) error {
	pause := pauseFirst
	for try := 1; ; try++ {
		result, err := c.sendOnce(ctx, r)
		switch {
		case result == answered:
			return err
		case result == throttled:
		case result == refused, result == lost && r.once, try >= tries:
			return c.failure(r, result, err)
		}
		if !c.wait(ctx, jittered(pause)) {
			return c.failure(r, result, err)
		}
		pause = min(2*pause, pauseMost)
	}
}

// sendOnce makes a request, when it is its turn.
func (c *Coordinator) sendOnce(ctx context.Context, r request) (result, error) {
	pace := &c.reads
	if r.write {
		pace = &c.writes
	}
	if err := pace.turn(ctx, c.closing); err != nil {
		return unreached, err
	}
	// Nothing is written before there is a connection to write to: without one,
	// for want of credentials or of a route, the request cannot have landed.
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	once, cancel := context.WithTimeout(httptrace.WithClientTrace(ctx, trace), c.timeout)
	defer cancel()
	units, err := r.do(once)
	result := classify(err, sent.Load())
	if result == answered || ctx.Err() == nil { // that a caller goes says nothing of the store
		pace.settle(result == answered)
	}
	if result == unauthorized {
		c.renewCredentials(err)
	}
	if sent.Load() {
		c.metrics.requests.WithLabelValues(r.kind).Inc()
	}
	if r.units != nil && (result == answered || result == lost) {
		r.units.Add(units)
	}
	if result != answered {
		c.metrics.failures.WithLabelValues(string(result)).Inc()
	}
	return result, err
}

// jittered takes up to half from a pause, so that callers in step fall out of it.
func jittered(pause time.Duration) time.Duration { return pause/2 + rand.N(pause/2) }

// wait pauses, and says whether to go on.
func (c *Coordinator) wait(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-c.closing:
		return false
	case <-t.C:
		return true
	}
}
