package main

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// watchBucket shows how much of a bucket's bytes is read, where w is a
// terminal. The returned func ends it.
func watchBucket(ctx context.Context, b bucket.Bucket, w io.Writer) (bucket.Bucket, func(), error) {
	if !isTerminal(w) {
		return b, func() {}, nil
	}
	var total int64
	for after := ""; ; {
		page, err := b.List(ctx, "", after, 1000)
		if err != nil {
			return nil, nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, o := range page {
			total += o.SizeBytes
		}
		after = page[len(page)-1].Key
	}
	counted := &countedBucket{Bucket: b}
	return counted, showProgress(w, progressBytes, total, counted.read.Load), nil
}

// countedBucket counts the bytes that are read.
type countedBucket struct {
	bucket.Bucket
	read atomic.Int64
}

// Get counts what the bucket returns.
func (c *countedBucket) Get(ctx context.Context, key string, off, n int64) ([]byte, error) {
	b, err := c.Bucket.Get(ctx, key, off, n)
	c.read.Add(int64(len(b)))
	return b, err
}
