package batch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Builder makes one batch, as a producer would.
type Builder struct {
	// Header is where the batch starts from: offset, epoch, producer and the
	// bits of Attributes are the caller's; Build fills in the rest.
	Header Header

	codec   Codec
	level   int
	records []byte
}

// NewBuilder starts a batch without a producer id or leader epoch. The level
// is the codec's own, as Kafka's configs have it; 0 is the default.
func NewBuilder(codec Codec, level int) *Builder {
	return &Builder{
		Header: Header{Epoch: -1, ProducerID: NoProducerID, ProducerEpoch: -1, BaseSequence: -1, MaxTimestamp: NoTimestamp},
		codec:  codec,
		level:  level,
	}
}

// Append adds a record at the next offset, whatever r.Offset is. It copies it.
func (b *Builder) Append(r Record) {
	if b.Header.Records == 0 {
		b.Header.BaseTimestamp = r.Timestamp
	}
	b.Header.MaxTimestamp = max(b.Header.MaxTimestamp, r.Timestamp)
	timestampDelta, offsetDelta := r.Timestamp-b.Header.BaseTimestamp, b.Header.Records
	b.Header.Records++

	size := 1 + varintBytes(timestampDelta) + varintBytes(int64(offsetDelta)) +
		fieldBytes(r.Key) + fieldBytes(r.Value) + varintBytes(int64(len(r.Headers)))
	for _, h := range r.Headers {
		size += varintBytes(int64(len(h.Key))) + len(h.Key) + fieldBytes(h.Value)
	}
	out := binary.AppendVarint(b.records, int64(size))
	out = append(out, byte(r.Attributes))
	out = binary.AppendVarint(out, timestampDelta)
	out = binary.AppendVarint(out, int64(offsetDelta))
	out = appendField(out, r.Key)
	out = appendField(out, r.Value)
	out = binary.AppendVarint(out, int64(len(r.Headers)))
	for _, h := range r.Headers {
		out = append(binary.AppendVarint(out, int64(len(h.Key))), h.Key...)
		out = appendField(out, h.Value)
	}
	b.records = out
}

// Build is the batch of what was appended, at least one record.
func (b *Builder) Build() ([]byte, error) {
	h := b.Header
	if h.Records == 0 {
		return nil, fmt.Errorf("%w: no records", ErrInvalid)
	}
	if h.Records > MaxRecordsPerBatch {
		return nil, fmt.Errorf("%w: %d records", ErrTooLarge, h.Records)
	}
	h.LastOffsetDelta = h.Records - 1
	return h.assemble(b.codec, b.level, b.records)
}

// Recompress makes a whole batch that Validate has passed anew with another
// codec: the same records and header but for that, and the CRC. The limit is
// as for Records.
func Recompress(b []byte, codec Codec, level, maxDecompressed int) ([]byte, error) {
	h, err := parseWhole(b)
	if err != nil {
		return nil, err
	}
	var s reader
	defer s.close()
	if err := s.open(h.Attributes.Codec(), b[HeaderBytes:], bound(maxDecompressed), true); err != nil {
		return nil, err
	}
	for s.more() {
	}
	if s.err != nil {
		return nil, s.err
	}
	return h.assemble(codec, level, s.buf[s.r:s.w])
}

// assemble puts a batch together.
func (h Header) assemble(codec Codec, level int, records []byte) ([]byte, error) {
	b := make([]byte, HeaderBytes, HeaderBytes+len(records))
	b, err := appendCompressed(b, codec, level, records)
	if err != nil {
		return nil, err
	}
	if len(b) > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(b))
	}
	Stamp(b, h.BaseOffset, h.Epoch)
	binary.BigEndian.PutUint32(b[atLength:], uint32(len(b)-lengthEnd))
	b[atMagic] = magicV2
	binary.BigEndian.PutUint16(b[atAttributes:], uint16(h.Attributes&^codecMask|Attributes(codec)))
	binary.BigEndian.PutUint32(b[atLastOffsetDelta:], uint32(h.LastOffsetDelta))
	binary.BigEndian.PutUint64(b[atBaseTimestamp:], uint64(h.BaseTimestamp))
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(h.MaxTimestamp))
	binary.BigEndian.PutUint64(b[atProducerID:], uint64(h.ProducerID))
	binary.BigEndian.PutUint16(b[atProducerEpoch:], uint16(h.ProducerEpoch))
	binary.BigEndian.PutUint32(b[atBaseSequence:], uint32(h.BaseSequence))
	binary.BigEndian.PutUint32(b[atRecords:], uint32(h.Records))
	seal(b)
	return b, nil
}

// fieldBytes is the size of a field that may be null.
func fieldBytes(f []byte) int {
	if f == nil {
		return 1
	}
	return varintBytes(int64(len(f))) + len(f)
}

func appendField(out, f []byte) []byte {
	if f == nil {
		return binary.AppendVarint(out, -1)
	}
	return append(binary.AppendVarint(out, int64(len(f))), f...)
}

// varintBytes is the size of a zigzag varint.
func varintBytes(v int64) int {
	n := 1
	for u := uint64(v<<1) ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
