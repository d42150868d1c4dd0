package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errTruncated = errors.New("truncated")

// checkLZ4 refuses what the decoder would take and Kafka's Java clients do not
// read: blocks that refer back to others, and anything but a single frame. It
// returns the size of a block.
func checkLZ4(b []byte) (int, error) {
	const (
		magic       = 0x184d2204
		independent = 1 << 5
		blockSums   = 1 << 4
		contentSize = 1 << 3
		contentSum  = 1 << 2
		stored      = 1 << 31 // in a block's length: it is not compressed
	)
	if len(b) < 7 || binary.LittleEndian.Uint32(b) != magic {
		return 0, errors.New("no frame")
	}
	flags, size := b[4], b[5]>>4&7
	if flags&independent == 0 {
		return 0, errors.New("blocks that depend on each other")
	}
	if size < 4 {
		return 0, errors.New("unknown block size")
	}
	at, sum := 7, 0 // past magic, flags, block size, header checksum
	if flags&contentSize != 0 {
		at += 8
	}
	if flags&blockSums != 0 {
		sum = 4
	}
	for {
		if at > len(b)-4 {
			return 0, errTruncated
		}
		length := binary.LittleEndian.Uint32(b[at:])
		at += 4
		if length == 0 {
			break
		}
		if uint64(length&^stored) > uint64(len(b)-at) {
			return 0, errTruncated
		}
		at += int(length&^stored) + sum
	}
	if flags&contentSum != 0 {
		at += 4
	}
	if at != len(b) {
		return 0, fmt.Errorf("a frame of %d bytes in %d", at, len(b))
	}
	return 1 << (8 + 2*int(size)), nil
}
