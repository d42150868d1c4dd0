// Package wire reads and writes the compact bodies of ledger entries and
// checkpoint rows: varints (those of encoding/binary), fixed eight bytes where
// a number is random, strings with their length in front. It runs nothing.
package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/siltstone-io/siltstone"
)

// AppendString appends a string with its length in front.
func AppendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// AppendBool appends 1 or 0.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// Reader takes a body apart. The first thing that does not fit ends it: from
// then on every read gives zero, and Err and Close say what was wrong.
type Reader struct {
	rest []byte
	read int
	err  error
}

// NewReader reads b, and keeps no part of it in what it returns but for Bytes.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// Err is the first error; it wraps siltstone.ErrCorrupt.
func (r *Reader) Err() error { return r.err }

// Close ends the reading: what is left over is an error too.
func (r *Reader) Close() error {
	if r.err == nil && len(r.rest) > 0 {
		r.Fail("%d bytes left over", len(r.rest))
	}
	return r.err
}

// Fail records that what was read makes no sense.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("byte %d: %s: %w", r.read, fmt.Sprintf(format, args...), siltstone.ErrCorrupt)
	}
	r.rest = nil
}

// Bytes takes the next n bytes, of the body itself.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.Fail("%d bytes wanted, %d left", n, len(r.rest))
		return nil
	}
	b := r.rest[:n]
	r.rest, r.read = r.rest[n:], r.read+n
	return b
}

// Byte takes one byte.
func (r *Reader) Byte() byte {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Bool takes a byte that is 0 or 1.
func (r *Reader) Bool() bool {
	b := r.Byte()
	if b > 1 {
		r.Fail("%d where 0 or 1 is due", b)
	}
	return b == 1
}

// Uint64 takes eight bytes, the high one first.
func (r *Reader) Uint64() uint64 {
	if b := r.Bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Uvarint takes an unsigned varint of at most limit.
func (r *Reader) Uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.Fail("no varint")
		return 0
	}
	if v > limit {
		r.Fail("%d is over %d", v, limit)
		return 0
	}
	r.rest, r.read = r.rest[n:], r.read+n
	return v
}

// Varint takes a signed (zigzag) varint.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.Fail("no varint")
		return 0
	}
	r.rest, r.read = r.rest[n:], r.read+n
	return v
}

// Count takes the length of a list whose items have at least minBytes each. So
// no list is longer than the bytes that are there, whatever they say.
func (r *Reader) Count(minBytes int) int {
	n := r.Uvarint(1 << 32)
	if n*uint64(minBytes) > uint64(len(r.rest)) {
		r.Fail("a list of %d in %d bytes", n, len(r.rest))
		return 0
	}
	return int(n)
}

// String takes a string with its length in front.
func (r *Reader) String() string { return string(r.Bytes(r.Count(1))) }
