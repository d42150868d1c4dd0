// Package faulty wraps a bucket and gives each call the fate that a hook
// decides: slow, failed, applied without a reply, landing late, cut short.
// Its goroutines are the calls that land late; Wait waits for them.
package faulty

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Op is a method of bucket.Bucket.
type Op string

// The methods.
const (
	Put    Op = "put"
	Get    Op = "get"
	Size   Op = "size"
	List   Op = "list"
	Delete Op = "delete"
)

// Fate is what becomes of one call. The zero value lets it through.
type Fate struct {
	// Delay passes before anything else. A context that ends meanwhile ends
	// the call, which then has not been applied.
	Delay time.Duration
	// Err is what the caller gets, whatever the bucket says.
	Err error
	// Applied, with Err, lets the call reach the bucket first: the reply is lost.
	Applied bool
	// Late, with Err, lets a Put or a Delete reach the bucket this long after
	// the caller has had its error, whatever has become of the caller.
	Late time.Duration
	// Reply, if set, changes what a Get that went well returns.
	Reply func([]byte) []byte
}

// Bucket is a bucket.Bucket with faults.
type Bucket struct {
	inner bucket.Bucket
	fate  func(op Op, key string) Fate
	late  sync.WaitGroup
}

var _ bucket.Bucket = (*Bucket)(nil)

// Wrap returns inner with faults. The hook is called once for each call, from
// many goroutines; the key is a List's prefix and a Delete's first.
func Wrap(inner bucket.Bucket, fate func(op Op, key string) Fate) *Bucket {
	return &Bucket{inner: inner, fate: fate}
}

// Wait returns when all late calls have landed. No call may be under way.
func (b *Bucket) Wait() { b.late.Wait() }

// Put implements bucket.Bucket.
func (b *Bucket) Put(ctx context.Context, key string, body bucket.Body) error {
	f := b.fate(Put, key)
	if f.Err != nil && f.Late > 0 {
		whole := bucket.Body{slices.Concat(body...)}
		b.land(f.Delay+f.Late, func(ctx context.Context) { _ = b.inner.Put(ctx, key, whole) })
	}
	return b.call(ctx, Put, key, f, func() error { return b.inner.Put(ctx, key, body) })
}

// Get implements bucket.Bucket.
func (b *Bucket) Get(ctx context.Context, key string, off, n int64) (data []byte, err error) {
	f := b.fate(Get, key)
	err = b.call(ctx, Get, key, f, func() error {
		data, err = b.inner.Get(ctx, key, off, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	if f.Reply != nil {
		data = f.Reply(data)
	}
	return data, nil
}

// Size implements bucket.Bucket.
func (b *Bucket) Size(ctx context.Context, key string) (n int64, err error) {
	err = b.call(ctx, Size, key, b.fate(Size, key), func() error {
		n, err = b.inner.Size(ctx, key)
		return err
	})
	return n, err
}

// List implements bucket.Bucket.
func (b *Bucket) List(ctx context.Context, prefix, after string, limit int) (found []bucket.Info, err error) {
	err = b.call(ctx, List, prefix, b.fate(List, prefix), func() error {
		found, err = b.inner.List(ctx, prefix, after, limit)
		return err
	})
	return found, err
}

// Delete implements bucket.Bucket.
func (b *Bucket) Delete(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return b.inner.Delete(ctx, keys)
	}
	f := b.fate(Delete, keys[0])
	if f.Err != nil && f.Late > 0 {
		keys := slices.Clone(keys)
		b.land(f.Delay+f.Late, func(ctx context.Context) { _ = b.inner.Delete(ctx, keys) })
	}
	return b.call(ctx, Delete, keys[0], f, func() error { return b.inner.Delete(ctx, keys) })
}

// call runs do, or not, as its fate says.
func (b *Bucket) call(ctx context.Context, op Op, key string, f Fate, do func() error) error {
	if f.Delay > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s %s: %w", op, key, ctx.Err())
		case <-time.After(f.Delay):
		}
	}
	if f.Err == nil {
		return do()
	}
	if f.Applied {
		_ = do()
	}
	return fmt.Errorf("%s %s: %w", op, key, f.Err)
}

// land runs do after a while, for a caller that may be gone by then.
func (b *Bucket) land(after time.Duration, do func(context.Context)) {
	b.late.Go(func() {
		time.Sleep(after)
		do(context.Background())
	})
}
