package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/klauspost/compress/snappy"
)

// Kafka's snappy is not one format. Java wraps blocks in snappy-java's
// framing: a magic, two versions, then blocks, each after its length. librdkafka
// and others send one raw block. Every client reads the first, so that is what
// is written.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const (
	xerialHeaderBytes = 16
	xerialBlockBytes  = 32 << 10 // as Java writes them
)

func isXerial(b []byte) bool {
	return len(b) >= xerialHeaderBytes && bytes.HasPrefix(b, xerialMagic)
}

// xerialBlocks are the blocks of a framed section.
func xerialBlocks(b []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for b := b[xerialHeaderBytes:]; len(b) > 0; {
			if len(b) < 4 {
				yield(nil, errTruncated)
				return
			}
			n := binary.BigEndian.Uint32(b)
			b = b[4:]
			if uint64(n) > uint64(len(b)) {
				yield(nil, errTruncated)
				return
			}
			if !yield(b[:n], nil) {
				return
			}
			b = b[n:]
		}
	}
}

// snappyBytes is what a block says that it decompresses to.
func snappyBytes(block []byte) (int, error) {
	const maxRatio = 22 // three bytes make 64 at most
	n, err := snappy.DecodedLen(block)
	if err == nil && n > maxRatio*len(block) {
		err = fmt.Errorf("%d bytes cannot become %d", len(block), n)
	}
	return n, err
}

// snappy decodes a section. The decoder is the strict one: the fast one takes
// an extension that other clients' do not.
func (d *decompressor) snappy(section []byte, limit int, keep bool) ([]byte, error) {
	if !isXerial(section) {
		n, err := snappyBytes(section)
		if err != nil {
			return nil, err
		}
		if n > limit {
			return nil, tooLarge(uint64(n))
		}
		return snappy.DecodeStrict(d.room(n, keep), section)
	}
	if binary.BigEndian.Uint32(section[12:]) == 0 {
		return nil, errors.New("framing of an unknown version")
	}
	total := 0
	for block, err := range xerialBlocks(section) {
		if err != nil {
			return nil, err
		}
		n, err := snappyBytes(block)
		if err != nil {
			return nil, err
		}
		if total += n; total > limit {
			return nil, tooLarge(uint64(total))
		}
	}
	out := d.room(total, keep)
	rest := out
	for block, err := range xerialBlocks(section) {
		if err != nil {
			return nil, err
		}
		n, err := snappyBytes(block)
		if err != nil {
			return nil, err
		}
		if _, err := snappy.DecodeStrict(rest[:n:n], block); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return out, nil
}

// appendSnappy appends records to dst, compressed and framed.
func appendSnappy(dst, records []byte) []byte {
	dst = append(dst, xerialMagic...)
	dst = append(dst, 0, 0, 0, 1, 0, 0, 0, 1) // this version, and the oldest that reads it
	for some := range slices.Chunk(records, xerialBlockBytes) {
		dst = slices.Grow(dst, 4+snappy.MaxEncodedLen(len(some)))
		block := snappy.Encode(dst[len(dst)+4:cap(dst)], some) // in place, for it has the room
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(block)))
		dst = dst[:len(dst)+len(block)]
	}
	return dst
}
