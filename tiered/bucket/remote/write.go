package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Put implements bucket.Bucket.
func (b *Bucket) Put(ctx context.Context, key string, body bucket.Body) error {
	if err := bucket.CheckKey(key); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	put := b.putWhole
	if body.Len() > b.o.PartBytes {
		put = b.putParts
	}
	if err := put(ctx, b.o.Prefix+key, body); err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}

func (b *Bucket) putWhole(ctx context.Context, key string, body bucket.Body) error {
	p := newPayload(body)
	defer p.detach()
	err := b.request(ctx, func(ctx context.Context) error { return b.o.Objects.Put(ctx, key, p) })
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	// A store that refuses before it has read all closes the connection, and
	// who still sends may see that and not the refusal, time after time.
	there := b.request(ctx, func(ctx context.Context) error {
		_, err := b.o.Objects.Head(ctx, key)
		return err
	})
	if there == nil {
		return bucket.ErrExists
	}
	return err
}

// Delete implements bucket.Bucket. A key that stays does not keep others.
func (b *Bucket) Delete(ctx context.Context, keys []string) error {
	whole := make([]string, len(keys))
	for i, key := range keys {
		if err := bucket.CheckKey(key); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		whole[i] = b.o.Prefix + key
	}
	slices.Sort(whole) // a key that is named twice is deleted once
	var kept error
	for page := range slices.Chunk(slices.Compact(whole), PageKeys) {
		err := b.request(ctx, func(ctx context.Context) error { return b.o.Objects.Delete(ctx, page) })
		if err != nil && !errors.Is(err, ErrKept) {
			return fmt.Errorf("delete %s and others: %w", page[0][len(b.o.Prefix):], err)
		}
		if kept == nil {
			kept = err
		}
	}
	if kept != nil {
		return fmt.Errorf("delete: %w", kept)
	}
	return nil
}
