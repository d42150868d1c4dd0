// Package retry wraps a bucket with all that is done again: a bounded number of
// tries with pauses between them, each with a deadline; a gate for each kind of
// request, so that a store that refuses everything is asked seldom; and a second
// request for a read that is slower than nearly all. Callers above it need to
// do nothing twice, but may. Its goroutines are reads, and end with their call's context.
package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Options of a Bucket. What is 0 is set.
type Options struct {
	// Tries of one call. 4.
	Tries int
	// Timeout of one try, without the time that a body takes. 10 seconds.
	Timeout time.Duration
	// Patience is how long a call waits while the store refuses everything,
	// before it fails with the reason. 2 seconds.
	Patience time.Duration
	// Rand is for jitter, and is called from anywhere.
	Rand func() uint64
	// Metrics, if not nil, registers counters.
	Metrics prometheus.Registerer
}

func (o *Options) validate() error {
	if o.Tries == 0 {
		o.Tries = 4
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 2 * time.Second
	}
	if o.Rand == nil || o.Tries < 0 || o.Timeout < 0 || o.Patience < 0 {
		return errors.New("retry: no source of randomness, or a negative option")
	}
	return nil
}

// slowest is the rate, in bytes a second, at which a body has to move.
const slowest = 1 << 20

// Pauses between the tries of one call: doubling, and random within half to
// three halves.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = time.Second
)

// Bucket is a bucket.Bucket.
type Bucket struct {
	inner                 bucket.Bucket
	o                     Options
	puts, reads, removals *gate
	hedges                hedges
	metrics               *metrics
}

var _ bucket.Bucket = (*Bucket)(nil)

// Wrap returns inner with retries.
func Wrap(inner bucket.Bucket, o Options) (*Bucket, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	b := &Bucket{inner: inner, o: o}
	b.puts, b.reads, b.removals = newGate(&b.o, "put"), newGate(&b.o, "read"), newGate(&b.o, "delete")
	b.hedges.reset()
	b.metrics = newMetrics(o.Metrics, b.puts, b.reads, b.removals)
	return b, nil
}

// Put implements bucket.Bucket. ErrExists may be of an earlier try of its own,
// whose answer was lost; as the port says, the caller compares.
func (b *Bucket) Put(ctx context.Context, key string, body bucket.Body) error {
	return b.try(ctx, b.puts, body.Len(), func(ctx context.Context) error { return b.inner.Put(ctx, key, body) })
}

// Get implements bucket.Bucket.
func (b *Bucket) Get(ctx context.Context, key string, off, n int64) (data []byte, err error) {
	err = b.try(ctx, b.reads, wanted(off, n), func(ctx context.Context) error {
		data, err = b.hedged(ctx, key, off, n)
		return err
	})
	return data, err
}

// unknownBytes stands for the size of what is read to the end.
const unknownBytes = 256 << 20

// wanted is how much a Get can return.
func wanted(off, n int64) int64 {
	switch {
	case off < 0:
		return min(-max(off, -unknownBytes), unknownBytes)
	case n < 0:
		return unknownBytes
	}
	return min(n, unknownBytes)
}

// Size implements bucket.Bucket.
func (b *Bucket) Size(ctx context.Context, key string) (size int64, err error) {
	err = b.try(ctx, b.reads, 0, func(ctx context.Context) error {
		size, err = b.inner.Size(ctx, key)
		return err
	})
	return size, err
}

// List implements bucket.Bucket.
func (b *Bucket) List(ctx context.Context, prefix, after string, limit int) (found []bucket.Info, err error) {
	err = b.try(ctx, b.reads, 0, func(ctx context.Context) error {
		found, err = b.inner.List(ctx, prefix, after, limit)
		return err
	})
	return found, err
}

// Delete implements bucket.Bucket.
func (b *Bucket) Delete(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	return b.try(ctx, b.removals, 0, func(ctx context.Context) error { return b.inner.Delete(ctx, keys) })
}

// try calls f until it has an answer.
func (b *Bucket) try(ctx context.Context, g *gate, sizeBytes int64, f func(context.Context) error) error {
	timeout := b.o.Timeout + time.Duration(float64(sizeBytes)/slowest*float64(time.Second))
	pause := firstPause
	for try := 1; ; try++ {
		pass, err := g.enter(ctx)
		if err != nil {
			return err
		}
		err = once(ctx, timeout, f)
		pass.leave(ctx, err)
		if err == nil || isAnswer(err) || errors.Is(err, bucket.ErrRefused) || ctx.Err() != nil || try == b.o.Tries {
			return err
		}
		b.metrics.retries.WithLabelValues(g.kind).Inc()
		if err := sleep(ctx, jitter(b.o.Rand, pause)); err != nil {
			return err
		}
		pause = min(2*pause, mostPause)
	}
}

// once is one try.
func once(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	trying, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := f(trying)
	if err != nil && trying.Err() != nil && ctx.Err() == nil && !isAnswer(err) {
		return fmt.Errorf("no answer within %v: %w: %w", timeout, siltstone.ErrUnavailable, err)
	}
	return err
}

// isAnswer says whether the store did what it was asked, and this came of it.
func isAnswer(err error) bool {
	return errors.Is(err, bucket.ErrExists) || errors.Is(err, bucket.ErrNotFound) ||
		errors.Is(err, bucket.ErrRange) || errors.Is(err, bucket.ErrKey)
}

// jitter is between half of d and three halves.
func jitter(rand func() uint64, d time.Duration) time.Duration {
	return d/2 + time.Duration(rand()%uint64(d))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
