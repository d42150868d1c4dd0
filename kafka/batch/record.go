package batch

import (
	"iter"

	"github.com/siltstone-io/siltstone"
)

// Record is one record of a batch. A nil key or value is null, which is not
// the same as an empty one.
type Record struct {
	Attributes int8 // no bit is used so far
	Offset     siltstone.Offset
	Timestamp  int64
	Key, Value []byte
	Headers    []RecordHeader
}

// RecordHeader is one header. Names may repeat, and keep their order; a nil
// value is null.
type RecordHeader struct{ Key, Value []byte }

// Records reads the records of a whole batch, one at a time; where they are
// compressed, decompressing at most maxDecompressed bytes (0 is
// DefaultMaxDecompressedBytes) and holding as much while the loop runs. The
// bytes of a record are good until the next one is asked for. An error ends
// it. A batch that Validate has walked gives none; the CRC is not checked
// here, nor what only a client must keep to: a compacted batch has holes
// between its offsets.
func Records(b []byte, maxDecompressed int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		h, err := parseWhole(b)
		if err != nil {
			yield(Record{}, err)
			return
		}
		var s reader
		defer s.close()
		if err := s.open(h.Attributes.Codec(), b[HeaderBytes:], bound(maxDecompressed), true); err != nil {
			yield(Record{}, err)
			return
		}
		var rec Record
		for last, i := int32(-1), int32(0); i < h.Records; i++ {
			sh := s.next(&rec)
			if last, err = s.follows(h, i, sh, last); err != nil {
				yield(Record{}, err)
				return
			}
			rec.Offset = h.BaseOffset + siltstone.Offset(sh.offsetDelta)
			rec.Timestamp = h.timestamp(sh)
			if !yield(rec, nil) {
				return
			}
		}
		if err := s.finish(); err != nil {
			yield(Record{}, err)
		}
	}
}

// Find is the first record of a whole batch at or after a time, with the
// batch's leader epoch; its offset is -1 where there is none. The first record
// that carries the batch's max timestamp is that at Header.MaxTimestamp. The
// limit is as for Records.
func Find(b []byte, ms int64, maxDecompressed int) (siltstone.TimedOffset, error) {
	none := siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}
	h, err := parseWhole(b)
	if err != nil || h.MaxTimestamp < ms {
		return none, err
	}
	var s reader
	defer s.close()
	if err := s.open(h.Attributes.Codec(), b[HeaderBytes:], bound(maxDecompressed), false); err != nil {
		return none, err
	}
	for last, i := int32(-1), int32(0); i < h.Records; i++ {
		sh := s.next(nil)
		if last, err = s.follows(h, i, sh, last); err != nil {
			return none, err
		}
		if t := h.timestamp(sh); t >= ms {
			return siltstone.TimedOffset{Offset: h.BaseOffset + siltstone.Offset(sh.offsetDelta), Timestamp: t, Epoch: h.Epoch}, nil
		}
	}
	return none, nil
}

// follows checks that record i was read, and that its offset comes after the
// last one's and within the batch. It returns its offset delta.
func (s *reader) follows(h Header, i int32, sh shape, last int32) (int32, error) {
	if s.err == nil && (sh.offsetDelta <= last || sh.offsetDelta > h.LastOffsetDelta) {
		s.fail("offset delta %d after %d, in a batch that ends at %d", sh.offsetDelta, last, h.LastOffsetDelta)
	}
	if s.err != nil {
		return last, &RecordError{Index: i, Err: s.err}
	}
	return sh.offsetDelta, nil
}

// timestamp is that of one record. A sum that overflows wraps, as in Java.
func (h Header) timestamp(sh shape) int64 {
	if h.Attributes.LogAppendTime() {
		return h.MaxTimestamp
	}
	return h.BaseTimestamp + sh.timestampDelta
}
