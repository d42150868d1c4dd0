package batch

import (
	"encoding/binary"

	"github.com/siltstone-io/siltstone"
)

// Stamp writes the base offset and the leader epoch into a batch, in place.
// The CRC does not cover them. b must have a header that was parsed.
func Stamp(b []byte, base siltstone.Offset, epoch siltstone.Epoch) {
	binary.BigEndian.PutUint64(b, uint64(base))
	binary.BigEndian.PutUint32(b[atEpoch:], uint32(epoch))
}

// ProducerID is that of a batch whose header was parsed, or NoProducerID.
func ProducerID(b []byte) int64 { return int64At(b, atProducerID) }

// StampAppendTime gives every record of a batch the time at which it was
// appended, in place: the attribute, the max timestamp, the CRC. What the
// records themselves say is ignored from then on. b must be whole.
func StampAppendTime(b []byte, ms int64) {
	attributes := Attributes(int16At(b, atAttributes)) | LogAppendTimeBit
	binary.BigEndian.PutUint16(b[atAttributes:], uint16(attributes))
	StampMaxTimestamp(b, ms)
}

// StampMaxTimestamp writes the max timestamp into a batch, and the CRC, in
// place: the remedy for a *MaxTimestampError. b must be whole.
func StampMaxTimestamp(b []byte, ms int64) {
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(ms))
	seal(b)
}

// seal writes the CRC that b should carry.
func seal(b []byte) { binary.BigEndian.PutUint32(b[atCRC:], checksum(b)) }
