// Package batch reads, checks, stamps and makes Kafka's record batches of
// format v2 (KIP-98), the form in which records travel from a producer's
// socket to a segment and back. docs/formats/record-batch.md has their bytes.
//
// It promises that no input makes it panic, that no length or count from
// outside sizes an allocation before it is checked, and that decompression
// stays within the caller's bound. What it takes from its pools it gives back
// before it returns; it starts no goroutine, and all of it may be called from
// anywhere at once.
package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"math"

	"github.com/siltstone-io/siltstone"
)

// Constants of the format.
const (
	// HeaderBytes is the size of a batch without its records.
	HeaderBytes = 61
	// MaxRecordsPerBatch bounds the offsets that one batch takes: a leader
	// could never give out more.
	MaxRecordsPerBatch = siltstone.UncleanJump
	// NoTimestamp is the timestamp of a record that has none.
	NoTimestamp = -1
	// NoProducerID is the producer id of a batch that is not idempotent.
	NoProducerID = -1

	lengthEnd      = 12 // what the length field counts starts here
	minLengthBytes = HeaderBytes - lengthEnd
	minRecordBytes = 7 // length, attributes, two deltas, null key, null value, no headers
	magicV2        = 2
)

// Places of fields.
const (
	atLength          = 8
	atEpoch           = 12
	atMagic           = 16
	atCRC             = 17
	atAttributes      = 21 // the CRC covers everything from here on
	atLastOffsetDelta = 23
	atBaseTimestamp   = 27
	atMaxTimestamp    = 35
	atProducerID      = 43
	atProducerEpoch   = 51
	atBaseSequence    = 53
	atRecords         = 57
)

// What is wrong with a batch. Wrapped with what was found; a *RecordError in
// the chain names the record.
var (
	// ErrCorrupt: lengths do not fit, or the CRC does not. The bytes were
	// damaged on their way, and sending them again may help.
	ErrCorrupt = errors.New("corrupt record batch")
	// ErrInvalid: the bytes are what their sender meant, and break a rule of
	// the format: they will be refused again.
	ErrInvalid = errors.New("invalid record batch")
	// ErrMagic: a message of an older format (magic 0 or 1), or of an unknown one.
	ErrMagic = errors.New("record batch is not of format v2")
	// ErrCodec: a compression codec that no version of Kafka has.
	ErrCodec = errors.New("unknown compression codec")
	// ErrTooLarge: more records than MaxRecordsPerBatch, or they decompress to
	// more than the caller's bound.
	ErrTooLarge = errors.New("record batch is too large")
	// ErrTimestamp: a record's timestamp is outside the caller's window.
	ErrTimestamp = errors.New("timestamp is out of range")
)

// RecordError names the first record, counted from 0, that is wrong.
type RecordError struct {
	Index int32
	Err   error
}

func (e *RecordError) Error() string { return fmt.Sprintf("record %d: %v", e.Index, e.Err) }

func (e *RecordError) Unwrap() error { return e.Err }

// Attributes are a batch's flags.
type Attributes int16

// Bits of Attributes; the lowest three are the codec.
const (
	LogAppendTimeBit Attributes = 1 << 3
	TransactionalBit Attributes = 1 << 4
	ControlBit       Attributes = 1 << 5
	DeleteHorizonBit Attributes = 1 << 6

	codecMask Attributes = 0x07
)

// Codec is how the records are compressed; it may be one that ErrCodec is for.
func (a Attributes) Codec() Codec { return Codec(a & codecMask) }

// LogAppendTime says that every record's timestamp is the batch's max timestamp.
func (a Attributes) LogAppendTime() bool { return a&LogAppendTimeBit != 0 }

// Transactional says that the batch is part of a transaction (KIP-98).
func (a Attributes) Transactional() bool { return a&TransactionalBit != 0 }

// Control says that the batch holds a marker and no data.
func (a Attributes) Control() bool { return a&ControlBit != 0 }

// DeleteHorizon says that the base timestamp is when tombstones may go (KIP-534).
func (a Attributes) DeleteHorizon() bool { return a&DeleteHorizonBit != 0 }

// Header is the fixed part of a batch.
type Header struct {
	BaseOffset      siltstone.Offset
	LengthBytes     int32 // of what follows the length field
	Epoch           siltstone.Epoch
	Magic           int8
	CRC             uint32 // CRC32C from the attributes to the end
	Attributes      Attributes
	LastOffsetDelta int32
	BaseTimestamp   int64 // ms, as all timestamps
	MaxTimestamp    int64
	ProducerID      int64 // NoProducerID, or of an idempotent producer
	ProducerEpoch   int16
	BaseSequence    int32
	Records         int32
}

// SizeBytes is the size of the whole batch.
func (h Header) SizeBytes() int { return lengthEnd + int(h.LengthBytes) }

// ParseHeader reads the header at the start of b, which need not hold more
// than that. It checks the magic, and that the length is one that a batch can
// have; not that b holds so much, and nothing else.
func ParseHeader(b []byte) (Header, error) {
	if len(b) > atMagic && b[atMagic] != magicV2 {
		return Header{}, fmt.Errorf("%w: magic %d", ErrMagic, int8(b[atMagic]))
	}
	if len(b) < HeaderBytes {
		return Header{}, fmt.Errorf("%w: %d bytes are no header", ErrCorrupt, len(b))
	}
	h := Header{
		BaseOffset:      siltstone.Offset(int64At(b, 0)),
		LengthBytes:     int32At(b, atLength),
		Epoch:           siltstone.Epoch(int32At(b, atEpoch)),
		Magic:           int8(b[atMagic]),
		CRC:             binary.BigEndian.Uint32(b[atCRC:]),
		Attributes:      Attributes(int16At(b, atAttributes)),
		LastOffsetDelta: int32At(b, atLastOffsetDelta),
		BaseTimestamp:   int64At(b, atBaseTimestamp),
		MaxTimestamp:    int64At(b, atMaxTimestamp),
		ProducerID:      int64At(b, atProducerID),
		ProducerEpoch:   int16At(b, atProducerEpoch),
		BaseSequence:    int32At(b, atBaseSequence),
		Records:         int32At(b, atRecords),
	}
	if h.LengthBytes < minLengthBytes || h.LengthBytes > math.MaxInt32-lengthEnd {
		return Header{}, fmt.Errorf("%w: length field is %d", ErrCorrupt, h.LengthBytes)
	}
	return h, nil
}

// All splits a record set into its batches, each whole, none copied. It ends
// with an error where the rest is no whole batch. CRCs are not checked.
func All(b []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for len(b) > 0 {
			h, err := ParseHeader(b)
			if err == nil && h.SizeBytes() > len(b) {
				err = fmt.Errorf("%w: %d bytes of %d", ErrCorrupt, len(b), h.SizeBytes())
			}
			if err != nil {
				yield(nil, err)
				return
			}
			one := b[:h.SizeBytes():h.SizeBytes()]
			b = b[h.SizeBytes():]
			if !yield(one, nil) {
				return
			}
		}
	}
}

// parseWhole parses the header of b and checks that b is that batch and no more.
func parseWhole(b []byte) (Header, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return Header{}, err
	}
	if h.SizeBytes() != len(b) {
		return Header{}, fmt.Errorf("%w: %d bytes, and the length field makes %d", ErrCorrupt, len(b), h.SizeBytes())
	}
	return h, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC32C that b should carry.
func checksum(b []byte) uint32 { return crc32.Checksum(b[atAttributes:], castagnoli) }

func int16At(b []byte, at int) int16 { return int16(binary.BigEndian.Uint16(b[at:])) }
func int32At(b []byte, at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) }
func int64At(b []byte, at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
