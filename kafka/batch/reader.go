package batch

import (
	"errors"
	"fmt"
	"io"
)

// reader walks the records of one batch, through a decompressor where they are
// compressed. Its first error sticks, and what it reads after that is zero. It
// is opened, used by one goroutine, and closed.
type reader struct {
	buf  []byte // buf[r:w] is what was read ahead
	r, w int
	off  int // of buf[0] in the section
	err  error

	codec Codec
	src   io.Reader // nil where buf holds all there is
	ended bool      // src has nothing more
	left  int       // how much more src may give
	d     *decompressor
}

// shape is what a walk checks of a record.
type shape struct {
	timestampDelta int64
	offsetDelta    int32
	keyed          bool
	sizeBytes      int // without the length itself
}

// next reads one record. Keys, values and headers are put into a Record, where
// one is given, and are good until the next call; else they are checked and
// skipped, and buf does not grow.
func (s *reader) next(into *Record) shape {
	var sh shape
	size := int(s.varint32())
	sh.sizeBytes = size
	end := s.position() + size
	s.checkSize(size)
	if into != nil {
		s.fill(size)
	}
	attributes := s.byte()
	sh.timestampDelta = s.varint()
	sh.offsetDelta = s.varint32()
	key, keyed := s.field(end, true, into != nil)
	value, _ := s.field(end, true, into != nil)
	sh.keyed = keyed
	if into != nil {
		into.Attributes, into.Key, into.Value = int8(attributes), key, value
		into.Headers = into.Headers[:0]
	}
	count := int(s.varint32())
	if s.err == nil && count < 0 {
		s.fail("%d headers", count)
	}
	for i := 0; i < count && s.err == nil; i++ {
		name, _ := s.field(end, false, into != nil)
		value, _ := s.field(end, true, into != nil)
		if into != nil {
			into.Headers = append(into.Headers, RecordHeader{Key: name, Value: value})
		}
	}
	if s.err == nil && s.position() != end {
		s.fail("its fields end at byte %d, its length at %d", s.position(), end)
	}
	return sh
}

// checkSize checks the length that a record says it has.
func (s *reader) checkSize(size int) {
	ahead := s.w - s.r
	switch {
	case s.err != nil:
	case size < minRecordBytes-1 || s.src == nil && size > ahead:
		s.fail("a length of %d", size)
	case s.src != nil && size > ahead+s.left:
		s.err = tooLarge(uint64(s.position() + size))
	}
}

// field reads a field that has its length before it, of a record that ends at
// end. It is not null where it returns true; it has bytes only if they are kept.
func (s *reader) field(end int, nullable, keep bool) ([]byte, bool) {
	n := int(s.varint32())
	if s.err != nil || n == -1 && nullable {
		return nil, false
	}
	if n < 0 || n > end-s.position() {
		s.fail("a field of %d bytes", n)
		return nil, false
	}
	if !keep {
		s.skip(n)
		return nil, true
	}
	b := s.buf[s.r : s.r+n : s.r+n] // next has filled the whole record
	s.r += n
	return b, true
}

func (s *reader) byte() byte {
	if s.r == s.w && !s.fill(1) {
		return 0
	}
	c := s.buf[s.r]
	s.r++
	return c
}

func (s *reader) varint32() int32 { return int32(s.zigzag(32)) }

func (s *reader) varint() int64 { return s.zigzag(64) }

// zigzag reads a varint of so many bits.
func (s *reader) zigzag(bits uint) int64 {
	var u uint64
	for shift := uint(0); shift < bits; shift += 7 {
		if s.r == s.w && !s.fill(1) {
			return 0
		}
		c := uint64(s.buf[s.r])
		s.r++
		u |= c & 0x7f << shift
		if c < 0x80 {
			if left := bits - shift; left < 7 && c>>left != 0 {
				break
			}
			return int64(u>>1) ^ -int64(u&1)
		}
	}
	s.fail("a varint of more than %d bits", bits)
	return 0
}

// skip passes over n bytes.
func (s *reader) skip(n int) {
	for n > s.w-s.r {
		n -= s.w - s.r
		s.r = s.w
		if !s.fill(1) {
			return
		}
	}
	s.r += n
}

// fill has n unread bytes in buf, or fails.
func (s *reader) fill(n int) bool {
	for s.err == nil && s.w-s.r < n {
		if !s.more() {
			s.fail("it goes on after the end of the records")
		}
	}
	return s.err == nil
}

// more reads further, behind what is unread, and is false at the end of the
// records. buf grows only when it is full of what has come.
func (s *reader) more() bool {
	if s.src == nil || s.err != nil {
		return false
	}
	s.off += s.r
	s.r, s.w = 0, copy(s.buf, s.buf[s.r:s.w])
	if s.w == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for tries := 100; !s.ended; tries-- {
		n, err := s.src.Read(s.buf[s.w:])
		s.w, s.left, s.ended = s.w+n, s.left-n, err != nil
		if tries == 0 {
			err = io.ErrNoProgress
		}
		switch {
		case s.left < 0:
			s.err = fmt.Errorf("%w: more than the bound when decompressed", ErrTooLarge)
			return false
		case err != nil && !errors.Is(err, io.EOF):
			s.err = undecodable(s.codec, err)
			return false
		case n > 0:
			return true
		}
	}
	return false
}

// finish checks that the last record was the end.
func (s *reader) finish() error {
	if s.err == nil && (s.r < s.w || s.more()) {
		s.fail("bytes after the last record")
	}
	return s.err
}

// position is where in the section the walk is.
func (s *reader) position() int { return s.off + s.r }

func (s *reader) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
}
