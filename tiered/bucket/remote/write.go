package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	return b.settle(ctx, key, err)
}

// settle looks for the object where the connection broke before the answer to
// what makes it. A store that refuses early closes the connection, and who
// still sends may see that and not the refusal, time after time; and to find
// out by sending all parts once more is dear.
func (b *Bucket) settle(ctx context.Context, key string, err error) error {
	var answer *Answer
	if err == nil || errors.As(err, &answer) || errors.Is(err, ErrGarbled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
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
