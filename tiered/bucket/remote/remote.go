// Package remote is a bucket.Bucket over a store that speaks S3's protocol: the
// rules of the port, once, for the adapters s3 and minio, which send single
// requests. It starts nothing that outlives a call, and tries nothing twice but
// the parts of a large object.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Objects sends the requests that read and write objects. Each call is one
// request and ends with its context; keys are whole, the prefix included. What
// the store answers that is no success is an *Answer.
type Objects interface {
	// Put writes an object if there is none (If-None-Match: *).
	Put(ctx context.Context, key string, p Payload) error
	// Get reads a range, as its header says it; "" is all.
	Get(ctx context.Context, key, byteRange string) (Content, error)
	Head(ctx context.Context, key string) (sizeBytes int64, err error)
	// List returns at most limit objects, at most a page, in order; more tells
	// whether there are others after them.
	List(ctx context.Context, prefix, after string, limit int) (found []bucket.Info, more bool, err error)
	// Delete removes at most PageKeys objects. What it returns of keys that
	// stay is an error that names the first, and is ErrKept.
	Delete(ctx context.Context, keys []string) error
	// MakeBucket makes the bucket that all of it is in.
	MakeBucket(ctx context.Context) error
}

// Uploads sends the requests of which a large object is made, as Objects does.
type Uploads interface {
	Create(ctx context.Context, key string) (id string, err error)
	Part(ctx context.Context, u Upload, number int, p Payload) (etag string, err error)
	// Complete makes the object of its parts, if there is none (If-None-Match: *).
	Complete(ctx context.Context, u Upload, parts []Part) error
	Abort(ctx context.Context, u Upload) error
	// Pending returns a page of the bucket's uploads that are neither complete
	// nor aborted, those after the given one. (MinIO does not list by prefix.)
	Pending(ctx context.Context, after Upload) (found []Upload, more bool, err error)
}

// Upload is an object under way, in parts.
type Upload struct {
	Key, ID string
	Started time.Time // set by Pending
}

// Part is what Complete says of one.
type Part struct {
	Number       int
	ETag, CRC32C string
}

// Content is what a Get reads, and what the store says of it.
type Content struct {
	Body   io.ReadCloser
	Length int64  // as in Content-Length; negative if it is not known
	Range  string // as in Content-Range
}

// PageKeys is how many keys S3 lists, or deletes, by one request.
const PageKeys = 1000

// ErrKept means that a request to delete went well, but not for all keys.
var ErrKept = errors.New("was not deleted")

// Limits of S3's parts.
const (
	MinPartBytes = 5 << 20
	maxParts     = 10_000
)

// Options of a Bucket.
type Options struct {
	Objects Objects
	Uploads Uploads
	// Prefix, of keys, ends in a slash, or is empty.
	Prefix string
	// PartBytes is the size of parts: what is larger than one is uploaded in parts. 0 is 64 MiB.
	PartBytes int64
	// Timeout bounds each request, whatever its caller does. 0 is 30 seconds.
	Timeout time.Duration
}

func (o *Options) validate() error {
	if o.PartBytes == 0 {
		o.PartBytes = 64 << 20
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.PartBytes < MinPartBytes {
		return fmt.Errorf("parts of %d bytes: a store takes none under %d", o.PartBytes, MinPartBytes)
	}
	return nil
}

// Bucket is a bucket.Bucket.
type Bucket struct{ o Options }

var _ bucket.Bucket = (*Bucket)(nil)

// New returns the bucket; it sends nothing.
func New(o Options) (*Bucket, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Bucket{o: o}, nil
}

// request sends one, within its time. f is over when request returns.
func (b *Bucket) request(ctx context.Context, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	once, cancel := context.WithTimeout(ctx, b.o.Timeout)
	defer cancel()
	err := f(once)
	var answer *Answer
	switch {
	case err == nil || errors.As(err, &answer) || errors.Is(err, ErrKept) || errors.Is(err, ErrGarbled):
		return err
	case ctx.Err() != nil: // the caller's own
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return fmt.Errorf("%w: %w", siltstone.ErrUnavailable, err)
}

// ErrGarbled means that the store does not speak as it should. That may be of the way there.
var ErrGarbled = fmt.Errorf("%w: the answer makes no sense", siltstone.ErrUnavailable)
