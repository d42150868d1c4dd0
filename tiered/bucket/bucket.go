// Package bucket is the port to an object store: whole objects, written once
// under a new key, read by ranges. Adapters are in its sub-packages and all
// pass the suite in buckettest.
package bucket

import (
	"context"
	"errors"
)

// Body is an object's bytes in parts, so that a segment is written from the
// buffers it was gathered in. A bucket reads it and keeps nothing of it after Put returns.
type Body [][]byte

// Len is the size in bytes.
func (b Body) Len() int64 {
	var n int64
	for _, p := range b {
		n += int64(len(p))
	}
	return n
}

// Info is an object's entry in a listing.
type Info struct {
	Key       string
	SizeBytes int64
}

// Bucket stores objects. Keys are slash-separated names of letters, digits,
// '-', '_' and '.', without empty, "." or ".." parts. All calls may be made at once from anywhere.
type Bucket interface {
	// Put writes a new object, whole or not at all, and durably. A key that
	// exists is ErrExists and stays as it is. After any other error the object
	// may exist, or appear later; the same bytes may be put under the same key
	// again, and ErrExists then tells that an object is there (the caller
	// compares it, where another writer could have made it).
	Put(ctx context.Context, key string, body Body) error
	// Get returns the bytes [off, off+n). n < 0 is "to the end"; off < 0 is
	// "the last -off bytes" (all, if there are fewer; n is ignored). A range
	// that ends past the object is cut; one that starts past it is ErrRange.
	// A missing object is ErrNotFound, and nothing else is.
	Get(ctx context.Context, key string, off, n int64) ([]byte, error)
	// Size is the object's length, or ErrNotFound.
	Size(ctx context.Context, key string) (int64, error)
	// List returns objects whose keys have the prefix and come after the given
	// key, in order of keys, at most limit.
	List(ctx context.Context, prefix, after string, limit int) ([]Info, error)
	// Delete removes objects; one that is missing is no error. An error names
	// the first key that stays; the others may be gone. No keys is no call.
	Delete(ctx context.Context, keys []string) error
}

// Outcomes.
var (
	ErrExists   = errors.New("object exists")
	ErrNotFound = errors.New("no such object")
	ErrRange    = errors.New("range starts past the end of the object")
	ErrKey      = errors.New("not an object key")
)
