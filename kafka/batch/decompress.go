package batch

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/pierrec/lz4/v4"
)

const (
	streamBytes = 32 << 10 // a reader's buffer, where the codec streams
	keptBytes   = 1 << 20  // a larger buffer does not go back to the pool
	mostBytes   = 1 << 30  // of a bound, so that sums of sizes stay ints
)

// decompressor is what it takes to read one compressed batch. gzip and lz4
// stream. A snappy block refers back to anywhere in itself, and a zstd frame
// of the upper levels to a window of up to 128 MiB, so these two are decoded
// whole, into a buffer that grows with their output and stays in the bound.
type decompressor struct {
	in    bytes.Reader
	gzip  *gzip.Reader
	lz4   *lz4.Reader
	buf   []byte
	large bool // holds a place in largeDecodes
}

var decompressors = sync.Pool{New: func() any { return new(decompressor) }}

// largeDecodes has a place for each walk that holds more than keptBytes, so
// that what they hold together is bounded however many clients send bombs at
// once. A place is held while a CPU works, never while a caller's code runs.
var largeDecodes = make(chan struct{}, runtime.GOMAXPROCS(0))

// open readies s to read the records in section, which may come to limit
// bytes. keep says that records are handed to a caller, and not only walked.
func (s *reader) open(codec Codec, section []byte, limit int, keep bool) error {
	s.codec, s.left = codec, limit
	if codec == None {
		s.buf, s.w = section, len(section)
		return nil
	}
	if !codec.known() {
		s.err = fmt.Errorf("%w: %d", ErrCodec, codec)
		return s.err
	}
	d, _ := decompressors.Get().(*decompressor)
	s.d = d
	var err error
	switch codec {
	case Gzip:
		err = d.openGzip(section)
		s.src, s.buf = d.gzip, d.room(streamBytes, keep)
	case LZ4:
		err = d.openLZ4(section, keep)
		s.src, s.buf = d.lz4, d.room(streamBytes, keep)
	case Snappy:
		s.buf, err = d.snappy(section, limit, keep)
		s.w = len(s.buf)
	case Zstd:
		s.buf, err = d.zstd(section, limit, keep)
		s.w = len(s.buf)
	}
	if err != nil && !errors.Is(err, ErrTooLarge) {
		err = undecodable(codec, err)
	}
	s.err = err
	return err
}

// close gives back what open took, the bytes of a Record with it.
func (s *reader) close() {
	d := s.d
	if d == nil {
		return
	}
	s.d = nil
	if s.src != nil {
		d.buf = s.buf // it may have grown
	}
	if cap(d.buf) > keptBytes {
		d.buf = nil
	}
	d.in.Reset(nil)
	if d.lz4 != nil {
		d.lz4.Reset(nil) // gives back its blocks
	}
	if d.large {
		d.large = false
		<-largeDecodes
	}
	decompressors.Put(d)
}

// room is a buffer of n bytes.
func (d *decompressor) room(n int, keep bool) []byte {
	if cap(d.buf) < n {
		d.claim(n, keep)
		d.buf = make([]byte, n)
	}
	return d.buf[:n]
}

// claim waits for a place in largeDecodes, where n bytes take one. Who keeps
// records does not wait: a caller's code runs meanwhile, and may need another.
func (d *decompressor) claim(n int, keep bool) {
	if n > keptBytes && !keep && !d.large {
		largeDecodes <- struct{}{}
		d.large = true
	}
}

func (d *decompressor) openGzip(section []byte) error {
	d.in.Reset(section)
	if d.gzip == nil {
		d.gzip = new(gzip.Reader)
	}
	return d.gzip.Reset(&d.in)
}

func (d *decompressor) openLZ4(section []byte, keep bool) error {
	block, err := checkLZ4(section)
	if err != nil {
		return err
	}
	d.claim(2*block, keep) // it holds one compressed and one not
	d.in.Reset(section)
	if d.lz4 == nil {
		d.lz4 = lz4.NewReader(nil)
	}
	d.lz4.Reset(&d.in)
	return nil
}

// undecodable is for bytes that are no output of the codec. Their CRC was
// right, so this is what was sent.
func undecodable(codec Codec, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrInvalid, codec, err)
}

func tooLarge(n uint64) error {
	return fmt.Errorf("%w: %d bytes when decompressed", ErrTooLarge, n)
}
