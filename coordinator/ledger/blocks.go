package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"

	"github.com/siltstone-io/siltstone"
)

// block is one block of rows, as the index has it.
type block struct {
	firstKey              []byte
	position, lengthBytes uint64
	crc                   uint32
}

// parseIndex takes apart the bytes at p. Blocks lie one after the other and
// end where the index begins.
func parseIndex(b []byte, p place) ([]block, error) {
	bad := func(what string) error {
		return fmt.Errorf("checkpoint index at %d, %s: %w", p.position, what, siltstone.ErrCorrupt)
	}
	if uint64(len(b)) != p.lengthBytes || crc32.Checksum(b, castagnoli) != p.crc {
		return nil, bad("CRC")
	}
	count, n := binary.Uvarint(b)
	const leastBytes = 1 + 1 + 4 // of a block's line
	if n <= 0 || count > uint64(len(b))/leastBytes {
		return nil, bad("number of blocks")
	}
	b = b[n:]
	blocks := make([]block, count)
	total := uint64(0)
	for i := range blocks {
		var ok bool
		if blocks[i].firstKey, b, ok = cutBytes(b); !ok {
			return nil, bad("key")
		}
		length, n := binary.Uvarint(b)
		if n <= 0 || length > p.position-total || len(b) < n+4 {
			return nil, bad("length of a block")
		}
		total += length
		blocks[i].lengthBytes, blocks[i].crc = length, binary.BigEndian.Uint32(b[n:])
		b = b[n+4:]
	}
	if len(b) > 0 {
		return nil, bad("bytes after the last block")
	}
	end := p.position
	for i, b := range slices.Backward(blocks) {
		end -= b.lengthBytes
		blocks[i].position = end
	}
	return blocks, nil
}

// rows takes apart a block's bytes. The last pair may be an error.
func (b block) rows(data []byte) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if uint64(len(data)) != b.lengthBytes || crc32.Checksum(data, castagnoli) != b.crc {
			yield(Row{}, fmt.Errorf("checkpoint block at %d, CRC: %w", b.position, siltstone.ErrCorrupt))
			return
		}
		for first := true; len(data) > 0; first = false {
			var row Row
			var ok, ok2 bool
			row.Key, data, ok = cutBytes(data)
			row.Value, data, ok2 = cutBytes(data)
			if !ok || !ok2 || first && !bytes.Equal(row.Key, b.firstKey) {
				yield(Row{}, fmt.Errorf("checkpoint block at %d, row: %w", b.position, siltstone.ErrCorrupt))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// appendBytes appends a length and the bytes.
func appendBytes(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// cutBytes is the inverse of appendBytes; it returns also what follows.
func cutBytes(b []byte) (data, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size) : n+int(size)], b[n+int(size):], true
}
