package tiered

import (
	"context"
	"errors"
	"fmt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// indexesAhead is how many indexes a shard's AddRows has under way. Agents add
// those of all shards at once when they start, and the shards share objects.
const indexesAhead = 32

// AddRows reads the indexes of the objects that the tail of a shard's ledger
// added after its checkpoint, and gives the fold the rows in them. It may be
// called again after an error, and goes on where it was.
//
// An object that is missing (bucket.ErrNotFound) or damaged
// (siltstone.ErrCorrupt) is given to lost; if that returns nil, it goes on
// without the object's rows.
func (r *Reader) AddRows(ctx context.Context, fold *shard.State, tail []ledger.Change[shard.Change], lost func(segment.ObjectID, error) error) error {
	objects, started := fold.Unindexed(tail), 0
	for i := range objects {
		for ; started < min(i+indexesAhead, len(objects)); started++ {
			r.startIndex(objects[started].Object)
		}
		x, err := r.Index(ctx, objects[i].Object)
		if err == nil {
			err = objects[i].AddIndex(x)
		}
		if errors.Is(err, bucket.ErrNotFound) || errors.Is(err, siltstone.ErrCorrupt) {
			if err = lost(objects[i].Object, err); err == nil {
				err = objects[i].Skip()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Index returns an object's index, without reading the object. It does not
// count as a use of what is cached, so that many who start together, and read
// the same indexes, leave the cache the same whoever is first.
func (r *Reader) Index(ctx context.Context, id segment.ObjectID) (*segment.Index, error) {
	r.mu.Lock()
	b, f, err := r.wantIndex(id)
	r.mu.Unlock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("index of %s: %w", id, err)
	case b != nil:
		r.metrics.hits.Inc()
		return b.index, nil
	}
	r.metrics.misses.Inc()
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, fmt.Errorf("index of %s: %w", id, f.err)
	}
	return f.block.index, nil
}

// startIndex starts to load an index that is neither cached nor under way.
func (r *Reader) startIndex(id segment.ObjectID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _, _ = r.wantIndex(id) // Index meets the error
}

// wantIndex returns the index if it is cached, or the flight that brings it,
// which does not queue for a slot: indexesAhead bounds these. The mutex is held.
func (r *Reader) wantIndex(id segment.ObjectID) (*block, *flight, error) {
	key := footerKey(id)
	for _, key := range []blockKey{key, objectKey(id)} {
		if b := r.cache.look(key); b != nil {
			return b, nil, nil
		}
	}
	f := r.flights[key]
	switch {
	case f != nil:
	case r.closed:
		return nil, nil, errClosed
	default:
		f = &flight{wanted: true, done: make(chan struct{})}
		r.flights[key] = f
		r.loads.Go(func() { r.land(f, key, r.loadFooter) })
	}
	return nil, f, nil
}
