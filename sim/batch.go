package sim

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// What of a batch its length and its CRC do not count.
const beforeLength, beforeCRC = 12, 21

// encodeBatch makes a record batch (v2, KIP-98) whose values begin with the
// records' ids and go on with something of a random length.
func encodeBatch(ids []recordID, nowMS int64, d *dice) []byte {
	var records []byte
	for i, id := range ids {
		r := kmsg.Record{OffsetDelta: int32(i), TimestampDelta64: int64(i)}
		r.Value = binary.BigEndian.AppendUint64(nil, uint64(id))
		r.Value = append(r.Value, make([]byte, d.below(200))...)
		body := r.AppendTo(nil)[1:] // without its length, of 0 in one byte
		r.Length = int32(len(body))
		records = r.AppendTo(records)
	}
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: int32(len(ids) - 1),
		FirstTimestamp: nowMS, MaxTimestamp: nowMS + int64(len(ids)-1),
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		NumRecords: int32(len(ids)), Records: records,
	}
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[8:], uint32(len(out)-beforeLength))
	seal(out)
	return out
}

// seal writes the CRC of a batch.
func seal(b []byte) { binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[beforeCRC:], castagnoli)) }

// A stamp is what an idempotent producer puts into a batch (KIP-98).
type stamp struct {
	id       int64
	epoch    int16
	sequence int32 // of the first record
}

// onto writes the stamp into a batch.
func (s stamp) onto(b []byte) {
	binary.BigEndian.PutUint64(b[43:], uint64(s.id))
	binary.BigEndian.PutUint16(b[51:], uint16(s.epoch))
	binary.BigEndian.PutUint32(b[53:], uint32(s.sequence))
	seal(b)
}

// after is the sequence that follows so many records: 0 comes after the largest.
func after(sequence int32, records int) int32 {
	return int32((int64(sequence) + int64(records)) & math.MaxInt32)
}

// decodeBatches takes apart the record batches of a fetch; the last may be cut.
// They end before an offset, which need not be after a record.
func decodeBatches(b []byte) (all []readRecord, end int64, err error) {
	for len(b) >= 12 {
		size := int(int32(binary.BigEndian.Uint32(b[8:]))) + 12
		if size < 61 || len(b) < size {
			break
		}
		var batch kmsg.RecordBatch
		if err := batch.ReadFrom(b[:size]); err != nil {
			return all, end, err
		}
		b = b[size:]
		end = batch.FirstOffset + int64(batch.LastOffsetDelta) + 1
		records := batch.Records
		for range batch.NumRecords {
			length, n := binary.Varint(records)
			if n <= 0 || int(length) > len(records)-n {
				return all, end, fmt.Errorf("batch at %d: record of %d bytes", batch.FirstOffset, length)
			}
			var r kmsg.Record
			if err := r.ReadFrom(records[:n+int(length)]); err != nil {
				return all, end, err
			}
			records = records[n+int(length):]
			if len(r.Value) < 8 {
				return all, end, fmt.Errorf("batch at %d: a value of %d bytes", batch.FirstOffset, len(r.Value))
			}
			all = append(all, readRecord{
				offset: batch.FirstOffset + int64(r.OffsetDelta), epoch: batch.PartitionLeaderEpoch,
				id: recordID(binary.BigEndian.Uint64(r.Value)),
			})
		}
	}
	return all, end, nil
}
