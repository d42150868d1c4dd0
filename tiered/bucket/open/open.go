// Package open opens the bucket that a URL names:
//
//	s3://bucket/prefix?region=…&endpoint=…&path-style=true|false&part-bytes=…
//	minio://host:port/bucket/prefix?tls=true|false&region=…&part-bytes=…
//	file:///folder
//
// It puts adapter, counters, retries and hedges together, for all who start a
// process; docs/buckets.md is its page for users.
package open

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/local"
	"github.com/siltstone-io/siltstone/tiered/bucket/minio"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
	"github.com/siltstone-io/siltstone/tiered/bucket/retry"
	"github.com/siltstone-io/siltstone/tiered/bucket/s3"
)

// Options are what a URL does not say.
type Options struct {
	// Rand is for jitter.
	Rand func() uint64
	// Metrics, if not nil, registers counters of requests, which are the bill.
	Metrics prometheus.Registerer
}

// Bucket is an open bucket.
type Bucket struct {
	bucket.Bucket
	reap  func(context.Context, time.Time) (int, error)
	make  func(context.Context) error
	close func() error
}

// Reap gives up uploads of parts that were begun before a time and never
// completed, whose parts are stored and paid for, and returns how many.
func (b *Bucket) Reap(ctx context.Context, before time.Time) (int, error) {
	if b.reap == nil {
		return 0, nil
	}
	return b.reap(ctx, before)
}

// Make makes the bucket in its store where it is missing; a folder was made as it was opened.
func (b *Bucket) Make(ctx context.Context) error {
	if b.make == nil {
		return nil
	}
	return b.make(ctx)
}

// Close gives up what is open. No call may be under way.
func (b *Bucket) Close() error { return b.close() }

// URL opens a bucket. No request is sent yet, but credentials may be looked for.
func URL(ctx context.Context, raw string, o Options) (*Bucket, error) {
	l, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	b, err := l.open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", raw, err)
	}
	return b, nil
}

func (l *Location) open(ctx context.Context, o Options) (*Bucket, error) {
	if l.Scheme == schemeFile {
		b, err := local.Open(l.Folder)
		if err != nil {
			return nil, err
		}
		return &Bucket{Bucket: b, close: b.Close}, nil
	}
	transport := remote.NewTransport(o.Metrics)
	var store *remote.Bucket
	var err error
	if l.Scheme == schemeS3 {
		store, err = s3.Open(ctx, s3.Options{
			Bucket: l.Bucket, Prefix: l.Prefix, Region: l.Region, Endpoint: l.Endpoint, PathStyle: l.PathStyle,
			PartBytes: l.PartBytes, Transport: transport,
		})
	} else {
		store, err = minio.Open(minio.Options{
			Addr: l.Addr, TLS: l.TLS, Bucket: l.Bucket, Prefix: l.Prefix, Region: l.Region,
			PartBytes: l.PartBytes, Transport: transport,
		})
	}
	if err != nil {
		return nil, err
	}
	again, err := retry.Wrap(store, retry.Options{Rand: o.Rand, Metrics: o.Metrics})
	if err != nil {
		return nil, err
	}
	return &Bucket{Bucket: again, reap: store.Reap, make: store.Make, close: func() error {
		transport.CloseIdleConnections()
		return nil
	}}, nil
}
