// Package memory is a bucket in memory, for tests and simulation. It starts
// nothing and waits for nothing.
package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Bucket is a bucket.Bucket. The zero value is empty and ready.
type Bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
}

var _ bucket.Bucket = (*Bucket)(nil)

// New returns an empty bucket.
func New() *Bucket { return &Bucket{} }

// Put implements bucket.Bucket.
func (b *Bucket) Put(ctx context.Context, key string, body bucket.Body) error {
	if err := check(ctx, key); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	data := slices.Concat(body...)
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.objects[key]; ok {
		return fmt.Errorf("put %s: %w", key, bucket.ErrExists)
	}
	if b.objects == nil {
		b.objects = make(map[string][]byte)
	}
	b.objects[key] = data
	return nil
}

// Get implements bucket.Bucket.
func (b *Bucket) Get(ctx context.Context, key string, off, n int64) ([]byte, error) {
	data, err := b.find(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	from, to, err := bucket.Span(int64(len(data)), off, n)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return append([]byte{}, data[from:to]...), nil
}

// Size implements bucket.Bucket.
func (b *Bucket) Size(ctx context.Context, key string) (int64, error) {
	data, err := b.find(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("size: %w", err)
	}
	return int64(len(data)), nil
}

// List implements bucket.Bucket.
func (b *Bucket) List(ctx context.Context, prefix, after string, limit int) ([]bucket.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []bucket.Info
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if len(found) >= limit {
			break
		}
		if key > after && strings.HasPrefix(key, prefix) {
			found = append(found, bucket.Info{Key: key, SizeBytes: int64(len(b.objects[key]))})
		}
	}
	return found, nil
}

// Delete implements bucket.Bucket.
func (b *Bucket) Delete(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if err := check(ctx, key); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		b.mu.Lock()
		delete(b.objects, key)
		b.mu.Unlock()
	}
	return nil
}

// find returns the stored bytes themselves, which nobody ever changes.
func (b *Bucket) find(ctx context.Context, key string) ([]byte, error) {
	if err := check(ctx, key); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	data, ok := b.objects[key]
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, bucket.ErrNotFound)
	}
	return data, nil
}

func check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return bucket.CheckKey(key)
}
