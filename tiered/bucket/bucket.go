// Package bucket is the port to an object store: whole objects, written once
// under a new key, read by ranges. Adapters are in its sub-packages and all
// pass the suite in buckettest.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// Bucket stores objects by keys (see CheckKey). No key may be a folder of
// another ("a" beside "a/b"): a bucket may refuse the second. All calls may be
// made at once from anywhere.
type Bucket interface {
	// Put writes a new object, whole or not at all, and durably. A key that
	// exists is ErrExists and stays as it is. After any other error the object
	// may exist, or appear later; the same bytes may be put under the same key
	// again, and ErrExists then tells that an object is there (the caller
	// compares it, where another writer could have made it).
	Put(ctx context.Context, key string, body Body) error
	// Get returns the bytes [off, off+n). n < 0 is "to the end"; off < 0 is
	// "the last -off bytes" (all, if there are fewer; n is ignored). A range
	// that ends past the object is cut; one that starts at its end or past it
	// is ErrRange (but 0 is a start in an empty object too). A missing object
	// is ErrNotFound, and nothing else is. The bytes are the caller's own.
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
	ErrRange    = errors.New("range starts past the object")
	ErrKey      = errors.New("not an object key")
	// ErrRefused: the store will not do it until somebody changes permissions,
	// credentials or settings, or makes the bucket. What passes by itself is
	// siltstone.ErrUnavailable.
	ErrRefused = errors.New("the store refuses")
)

// Limits of keys: S3's 1,024 bytes with room for a prefix, and a file name's.
const (
	MaxKeyBytes  = 768
	MaxPartBytes = 255
)

// CheckKey returns ErrKey, wrapped, for what is no key. Keys are slash-separated
// names of letters, digits, '-', '_' and '.', without empty, "." or ".." parts.
func CheckKey(key string) error {
	if len(key) > MaxKeyBytes {
		return fmt.Errorf("%w: %d bytes long, over %d", ErrKey, len(key), MaxKeyBytes)
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part == "." || part == ".." || len(part) > MaxPartBytes || strings.ContainsFunc(part, notInKey) {
			return fmt.Errorf("%w: %q", ErrKey, key)
		}
	}
	return nil
}

func notInKey(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// Span is the part of an object of sizeBytes that Get's off and n name: [from, to).
// Adapters share it, so that they agree.
func Span(sizeBytes, off, n int64) (from, to int64, err error) {
	switch {
	case off < 0:
		return max(0, sizeBytes+off), sizeBytes, nil
	case off > 0 && off >= sizeBytes:
		return 0, 0, fmt.Errorf("%w: %d, of %d bytes", ErrRange, off, sizeBytes)
	case n < 0 || n > sizeBytes-off:
		return off, sizeBytes, nil
	}
	return off, off + n, nil
}
