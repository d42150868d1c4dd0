package batch

import "fmt"

// DefaultMaxDecompressedBytes is the bound where none is given.
const DefaultMaxDecompressedBytes = 64 << 20

// Rules are what a log asks of a batch beyond a right CRC and header.
type Rules struct {
	// MaxDecompressedBytes bounds what compressed records may come to; 0 is
	// DefaultMaxDecompressedBytes. It is not reached by what does not walk.
	MaxDecompressedBytes int
	// Walk checks every record against the header. Without it the records are
	// never looked at, not even decompressed, except for a marker.
	Walk bool
	// KeysRequired refuses null keys, as a compacted topic does. It walks.
	KeysRequired bool
	// MaxRecordBytes bounds each record of a compressed batch, as its own
	// length says it; 0 is no bound. It walks such batches.
	MaxRecordBytes int
	// MinTimestamp and MaxTimestamp, inclusive, are the window for the
	// records' own timestamps; both 0 is none. NoTimestamp is always in it.
	// Without a walk it is held against the header's two.
	MinTimestamp, MaxTimestamp int64
}

// MaxTimestampError says that a batch is right but for its max timestamp. Some
// clients write a wrong one, and Kafka puts it right: StampMaxTimestamp does.
type MaxTimestampError struct{ Header, Records int64 }

func (e *MaxTimestampError) Error() string {
	return fmt.Sprintf("%v: max timestamp is %d in the header and %d in the records", ErrInvalid, e.Header, e.Records)
}

func (e *MaxTimestampError) Unwrap() error { return ErrInvalid }

// Validate checks one whole batch as a producer sends it: magic, length, CRC;
// counts, offsets, producer and control fields of the header; and, where the
// rules ask for it, each record. Base offset and leader epoch may be anything.
// It changes nothing. The header is returned as far as it could be parsed.
//
// The codec, LogAppendTime, transactional and control bits, and a producer id,
// are checked for sense and not for whether the sender may use them.
func Validate(b []byte, r Rules) (Header, error) {
	h, err := parseWhole(b)
	if err != nil {
		return h, err
	}
	if sum := checksum(b); sum != h.CRC {
		return h, fmt.Errorf("%w: CRC is %08x, and %08x in the header", ErrCorrupt, sum, h.CRC)
	}
	if err := h.check(r); err != nil {
		return h, err
	}
	if h.Attributes.Control() {
		_, err := ParseMarker(b)
		return h, err
	}
	if !r.walks(h.Attributes) {
		return h, nil
	}
	return h, walk(h, b[HeaderBytes:], r)
}

// walks says whether the rules need the records of such a batch.
func (r Rules) walks(a Attributes) bool {
	return r.Walk || r.KeysRequired || r.MaxRecordBytes > 0 && a.Codec() != None
}

// check is what can be said without the records.
func (h Header) check(r Rules) error {
	a := h.Attributes
	switch {
	case !a.Codec().known():
		return fmt.Errorf("%w: %d", ErrCodec, a.Codec())
	case h.Records < 1:
		return fmt.Errorf("%w: %d records", ErrInvalid, h.Records)
	case h.Records > MaxRecordsPerBatch:
		return fmt.Errorf("%w: %d records", ErrTooLarge, h.Records)
	case h.LastOffsetDelta != h.Records-1:
		return fmt.Errorf("%w: %d records, and a last offset delta of %d", ErrInvalid, h.Records, h.LastOffsetDelta)
	case h.ProducerID < NoProducerID:
		return fmt.Errorf("%w: producer id %d", ErrInvalid, h.ProducerID)
	case h.ProducerID != NoProducerID && h.ProducerEpoch < 0:
		return fmt.Errorf("%w: producer id %d with epoch %d", ErrInvalid, h.ProducerID, h.ProducerEpoch)
	case h.ProducerID != NoProducerID && h.BaseSequence < 0 && !a.Control():
		return fmt.Errorf("%w: producer id %d with sequence %d", ErrInvalid, h.ProducerID, h.BaseSequence)
	case a.Transactional() && h.ProducerID == NoProducerID:
		return fmt.Errorf("%w: transactional without a producer id", ErrInvalid)
	case a.Control() && !a.Transactional():
		return fmt.Errorf("%w: a marker outside a transaction", ErrInvalid)
	case a.Control() && h.Records != 1:
		return fmt.Errorf("%w: %d markers", ErrInvalid, h.Records)
	case !r.walks(a) && !a.LogAppendTime() && !(r.inWindow(h.BaseTimestamp) && r.inWindow(h.MaxTimestamp)):
		return fmt.Errorf("%w: %d to %d", ErrTimestamp, h.BaseTimestamp, h.MaxTimestamp)
	}
	return nil
}

// walk checks the records in section against their header.
func walk(h Header, section []byte, r Rules) error {
	var s reader
	defer s.close()
	if err := s.open(h.Attributes.Codec(), section, bound(r.MaxDecompressedBytes), false); err != nil {
		return err
	}
	latest := int64(NoTimestamp)
	for i := range h.Records {
		sh := s.next(nil)
		if err := s.err; err != nil {
			return &RecordError{i, err}
		}
		if sh.offsetDelta != i {
			return &RecordError{i, fmt.Errorf("%w: its offset delta is %d", ErrInvalid, sh.offsetDelta)}
		}
		if r.KeysRequired && !sh.keyed {
			return &RecordError{i, fmt.Errorf("%w: no key, on a compacted topic", ErrInvalid)}
		}
		if r.MaxRecordBytes > 0 && h.Attributes.Codec() != None && sh.sizeBytes > r.MaxRecordBytes {
			return &RecordError{i, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrInvalid, sh.sizeBytes, r.MaxRecordBytes)}
		}
		t := h.timestamp(sh)
		if !h.Attributes.LogAppendTime() && !r.inWindow(t) {
			return &RecordError{i, fmt.Errorf("%w: %d", ErrTimestamp, t)}
		}
		latest = max(latest, t)
	}
	if err := s.finish(); err != nil {
		return err
	}
	if latest != h.MaxTimestamp && !h.Attributes.LogAppendTime() {
		return &MaxTimestampError{Header: h.MaxTimestamp, Records: latest}
	}
	return nil
}

func (r Rules) inWindow(ms int64) bool {
	return ms == NoTimestamp || r.MinTimestamp == 0 && r.MaxTimestamp == 0 || ms >= r.MinTimestamp && ms <= r.MaxTimestamp
}

// bound is the limit that a caller's number means.
func bound(n int) int {
	if n <= 0 {
		n = DefaultMaxDecompressedBytes
	}
	return min(n, mostBytes)
}
