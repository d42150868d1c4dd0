package tiered

import (
	"context"
	"errors"
	"fmt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// flight is a load that is under way, for as many as wait for it.
type flight struct {
	wanted bool // somebody waits, or did; under the Reader's mutex
	ahead  bool // nobody waited when it started
	done   chan struct{}
	// Set before done is closed.
	block *block
	err   error
}

// peek returns a block that is cached, or nil.
func (r *Reader) peek(key blockKey) *block {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cache.get(key)
}

// get returns a block from the cache, or waits until it is loaded.
func (r *Reader) get(ctx context.Context, key blockKey, load loadFunc) (*block, error) {
	r.mu.Lock()
	if b := r.cache.get(key); b != nil {
		r.mu.Unlock()
		r.metrics.hits.Inc()
		return b, nil
	}
	f, err := r.join(key, load)
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r.metrics.misses.Inc()
	select {
	case <-f.done:
		return f.block, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join returns the flight for a key, and starts it if there is none. The mutex is held.
func (r *Reader) join(key blockKey, load loadFunc) (*flight, error) {
	f := r.flights[key]
	if f != nil {
		f.wanted = true
		return f, nil
	}
	if r.closed {
		return nil, errClosed
	}
	f = &flight{wanted: true, done: make(chan struct{})}
	r.flights[key] = f
	r.loads.Go(func() {
		select {
		case r.slots <- struct{}{}:
			r.land(f, key, load)
			<-r.slots
		case <-r.ctx.Done():
			r.settle(f, key, nil, errClosed)
		}
	})
	return f, nil
}

// prefetch starts a flight for a key that nobody waits for yet, if it is not
// there or under way, and within the bounds.
func (r *Reader) prefetch(key blockKey, load loadFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const share = 4 // of the cache may hold what nobody has read
	if r.closed || r.cache.has(key) || r.flights[key] != nil || r.ahead >= r.o.AheadLoads || r.cache.unread > r.o.CacheBytes/share {
		return
	}
	f := &flight{ahead: true, done: make(chan struct{})}
	r.flights[key] = f
	r.ahead++
	r.metrics.ahead.Inc()
	r.loads.Go(func() { r.land(f, key, load) })
}

// land runs a flight's load to its end.
func (r *Reader) land(f *flight, key blockKey, load loadFunc) {
	ctx, cancel := context.WithTimeout(r.ctx, r.o.LoadTimeout)
	defer cancel()
	b, err := again(load)(ctx, key)
	switch {
	case err == nil:
	case r.ctx.Err() != nil:
		err = errClosed
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("not loaded within %v: %w", r.o.LoadTimeout, siltstone.ErrUnavailable)
	case !errors.Is(err, bucket.ErrNotFound) && !errors.Is(err, siltstone.ErrCorrupt) && !errors.Is(err, siltstone.ErrNewerFormat):
		err = fmt.Errorf("%w: %w", siltstone.ErrUnavailable, err) // the bucket's own trouble
	}
	r.settle(f, key, b, err)
}

func (r *Reader) settle(f *flight, key blockKey, b *block, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.flights, key)
	if f.ahead {
		r.ahead-- // before anybody who waits goes on, and wants to read ahead
	}
	if err == nil && len(b.damaged) == 0 { // what is damaged may be mended
		r.metrics.evictions.Add(float64(r.cache.add(key, b, f.wanted)))
	}
	f.block, f.err = b, err
	close(f.done)
}

var errClosed = fmt.Errorf("the reader is closed: %w", siltstone.ErrUnavailable)
