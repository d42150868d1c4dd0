package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/siltstone-io/siltstone"
)

// The first two pages are the roots, written in turn: behind the header of a
// page magic, version, size of a page and flags (4 bytes each), root bucket
// (16), list of free pages, first page not in use, number of the transaction
// (8 each), and FNV-1a (64 bit) of all that.
const (
	rootCheckedBytes = 56
	rootBytes        = rootCheckedBytes + 8
)

// checkRoots checks both. Where one is damaged, bbolt goes on from the other:
// if the damaged one was the newer, what the last transaction acknowledged
// would be lost without a word. A disk writes a sector whole or not at all, and
// a root lies in one, so a crash does not leave such a page.
func checkRoots(file io.ReaderAt, pageBytes int64) error {
	for number := range int64(2) {
		b := make([]byte, rootBytes)
		if _, err := file.ReadAt(b, number*pageBytes+pageHeaderBytes); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("root page %d: %w", number, err)
		}
		sum := fnv.New64a()
		_, _ = sum.Write(b[:rootCheckedBytes])
		if sum.Sum64() != binary.NativeEndian.Uint64(b[rootCheckedBytes:]) {
			return fmt.Errorf("root page %d is %w; if it was the newer of the two, the other lacks the last commit", number, siltstone.ErrCorrupt)
		}
	}
	return nil
}
