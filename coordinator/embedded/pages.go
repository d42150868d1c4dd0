package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/siltstone-io/siltstone"
)

// bbolt walks through all pages when it opens a file for writing, to find the
// free ones, and trusts what it reads: a damaged page ends the process. So the
// tree of pages is checked first, with reads of its own.
//
// A page begins with its number (8 bytes), flags (2), a count of elements (2)
// and of the pages after it that belong to it (4). Elements of 16 bytes follow:
// in a leaf flags, place of the key counted from the element, length of key and
// of value (4 each); in a branch place and length of the key (4 each) and the
// number of a page. A value flagged as a bucket is the number of its root and a
// sequence (8 each); root 0 is a page inside the value. All in the machine's
// order of bytes.
const (
	pageHeaderBytes  = 16
	elementBytes     = 16
	branchPage       = 1
	leafPage         = 2
	bucketElement    = 1
	bucketValueBytes = 16
)

// pageCheck is one walk through a file.
type pageCheck struct {
	file      io.ReaderAt
	pageBytes int64
	end       uint64 // the first page that is not in use
	seen      map[uint64]bool
	in        []string // the buckets that it is in
}

// checkPages walks through all that a transaction sees.
func checkPages(tx *bbolt.Tx, file io.ReaderAt, sizeBytes int64) error {
	c := pageCheck{file: file, pageBytes: int64(tx.DB().Info().PageSize), seen: map[uint64]bool{}}
	c.end = uint64(tx.Size() / c.pageBytes)
	if tx.Size() > sizeBytes {
		return fmt.Errorf("file of %d bytes, should have %d: %w", sizeBytes, tx.Size(), siltstone.ErrCorrupt)
	}
	return c.page(uint64(tx.Cursor().Bucket().RootPage()), nil, nil, 0)
}

// page checks a page and all below it. Its keys lie from least on, and before
// limit if there is one. depth is that of the bucket: ours are two deep.
func (c *pageCheck) page(number uint64, least, limit []byte, depth int) error {
	bad := func(what string) error {
		return fmt.Errorf("page %d%s, %s: %w", number, c.place(), what, siltstone.ErrCorrupt)
	}
	if number < 2 || number >= c.end || depth > 2 {
		return bad("not in the file")
	}
	data := make([]byte, c.pageBytes)
	if _, err := c.file.ReadAt(data, int64(number)*c.pageBytes); err != nil {
		return fmt.Errorf("page %d: %w", number, err)
	}
	more := uint64(binary.NativeEndian.Uint32(data[12:]))
	if binary.NativeEndian.Uint64(data) != number || more >= c.end-number {
		return bad("header")
	}
	for n := number; n <= number+more; n++ {
		if c.seen[n] {
			return bad("used twice")
		}
		c.seen[n] = true
	}
	if more > 0 {
		data = make([]byte, int64(more+1)*c.pageBytes)
		if _, err := c.file.ReadAt(data, int64(number)*c.pageBytes); err != nil {
			return fmt.Errorf("page %d: %w", number, err)
		}
	}
	if binary.NativeEndian.Uint16(data[8:]) == branchPage {
		return c.branch(data, limit, depth, bad)
	}
	return c.leaf(data, least, limit, depth, bad)
}

func (c *pageCheck) branch(data, limit []byte, depth int, bad func(string) error) error {
	count := int(binary.NativeEndian.Uint16(data[10:]))
	key := func(i int) ([]byte, bool) {
		at := pageHeaderBytes + i*elementBytes
		if at+elementBytes > len(data) {
			return nil, false
		}
		return cut(data[at:], binary.NativeEndian.Uint32(data[at:]), binary.NativeEndian.Uint32(data[at+4:]))
	}
	if count == 0 {
		return bad("a branch of nothing")
	}
	for i := range count {
		least, ok := key(i)
		until, ok2 := limit, true
		if i+1 < count {
			until, ok2 = key(i + 1)
		}
		if !ok || !ok2 || until != nil && bytes.Compare(least, until) >= 0 {
			return bad("keys")
		}
		child := binary.NativeEndian.Uint64(data[pageHeaderBytes+i*elementBytes+8:])
		if err := c.page(child, least, until, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *pageCheck) leaf(data, least, limit []byte, depth int, bad func(string) error) error {
	if binary.NativeEndian.Uint16(data[8:]) != leafPage {
		return bad("flags")
	}
	var last []byte
	for i := range int(binary.NativeEndian.Uint16(data[10:])) {
		at := pageHeaderBytes + i*elementBytes
		if at+elementBytes > len(data) {
			return bad("count")
		}
		place, keyBytes := binary.NativeEndian.Uint32(data[at+4:]), binary.NativeEndian.Uint32(data[at+8:])
		key, ok := cut(data[at:], place, keyBytes)
		value, ok2 := cut(data[at:], place+keyBytes, binary.NativeEndian.Uint32(data[at+12:]))
		switch {
		case !ok || !ok2 || keyBytes > place+keyBytes:
			return bad("element")
		case i > 0 && bytes.Compare(last, key) >= 0, bytes.Compare(key, least) < 0, limit != nil && bytes.Compare(key, limit) >= 0:
			return bad("keys")
		}
		last = key
		if binary.NativeEndian.Uint32(data[at:])&bucketElement != 0 {
			c.in = append(c.in, fmt.Sprintf("%.64q", key))
			if err := c.bucket(value, depth+1, bad); err != nil {
				return err
			}
			c.in = c.in[:len(c.in)-1]
		}
	}
	return nil
}

// place says in which bucket the walk is.
func (c *pageCheck) place() string {
	if len(c.in) == 0 {
		return ""
	}
	return " of " + strings.Join(c.in, ", ")
}

func (c *pageCheck) bucket(value []byte, depth int, bad func(string) error) error {
	if len(value) < bucketValueBytes {
		return bad("bucket")
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return c.page(root, nil, nil, depth)
	}
	if value = value[bucketValueBytes:]; len(value) < pageHeaderBytes || depth > 2 {
		return bad("bucket")
	}
	// It has no number, nor pages after it: bbolt would give them to others.
	if binary.NativeEndian.Uint64(value) != 0 || binary.NativeEndian.Uint32(value[12:]) != 0 {
		return bad("header of a bucket")
	}
	return c.leaf(value, nil, nil, depth, bad)
}

// cut is a part of some bytes, if they hold it.
func cut(b []byte, at, size uint32) ([]byte, bool) {
	if uint64(at)+uint64(size) > uint64(len(b)) {
		return nil, false
	}
	return b[at:][:size], true
}
