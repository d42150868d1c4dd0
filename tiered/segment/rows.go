package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// Least sizes of a run without rows and of a row in the index: what bounds
// how much memory a count from outside may ask for.
const (
	minRunBytes = 24
	minRowBytes = 7
)

// encodeIndex writes runs whose positions follow each other. Timestamps and
// epochs are written as differences from the row before, whatever its run.
func encodeIndex(runs []Run) []byte {
	var b []byte
	b = binary.AppendUvarint(b, uint64(len(runs)))
	var prev Row
	shard := uint16(0)
	for i := range runs {
		r := &runs[i]
		b = binary.AppendUvarint(b, uint64(r.Shard-shard))
		shard = r.Shard
		b = append(b, r.Partition.Topic[:]...)
		b = binary.AppendUvarint(b, uint64(uint32(r.Partition.Partition)))
		b = binary.AppendUvarint(b, uint64(r.Offsets))
		b = binary.AppendUvarint(b, uint64(len(r.Rows)))
		b = order.AppendUint32(b, r.CRC)
		end := int64(0)
		for j := range r.Rows {
			row := &r.Rows[j]
			b = appendRow(b, row, end, &prev)
			end = row.EndDelta()
			prev = *row
		}
	}
	return b
}

func appendRow(b []byte, r *Row, end int64, prev *Row) []byte {
	b = binary.AppendUvarint(b, uint64(r.OffsetDelta-end))
	b = binary.AppendUvarint(b, uint64(r.Offsets))
	b = binary.AppendVarint(b, int64(r.Epoch)-int64(prev.Epoch))
	b = binary.AppendVarint(b, r.MaxTimestamp-prev.MaxTimestamp) // wraps; so does adding it
	b = binary.AppendUvarint(b, uint64(uint16(r.Attributes)))
	b = binary.AppendUvarint(b, uint64(r.LengthBytes))
	b = binary.AppendUvarint(b, uint64(r.ProducerID+1))
	if r.ProducerID != batch.NoProducerID {
		b = binary.AppendVarint(b, int64(r.ProducerEpoch))
		b = binary.AppendVarint(b, int64(r.BaseSequence))
	}
	if r.Attributes.Control() {
		b = binary.AppendVarint(b, int64(r.Marker))
		b = binary.AppendVarint(b, int64(r.CoordinatorEpoch))
	}
	return b
}

// ParseIndex reads an object's index, the bytes that its trailer names.
func ParseIndex(b []byte, t Trailer) (*Index, error) {
	if int64(len(b)) != t.IndexBytes {
		return nil, damaged("index", "has %d bytes of %d", len(b), t.IndexBytes)
	}
	if crc32.Checksum(b, castagnoli) != t.IndexCRC {
		return nil, damaged("index", "fails its CRC")
	}
	d := decoder{b: b}
	runs := d.runs(t.DataPosition)
	if d.err == nil && len(d.b) > 0 {
		d.err = fmt.Errorf("%d bytes are left", len(d.b))
	}
	if d.err == nil && d.position != t.IndexPosition {
		d.err = fmt.Errorf("runs end at %d, the index starts at %d", d.position, t.IndexPosition)
	}
	var x *Index
	if d.err == nil {
		x, d.err = newIndex(runs)
	}
	if d.err != nil {
		return nil, damaged("index", "does not parse: %v", d.err)
	}
	return x, nil
}

// decoder takes fields off b. After an error it gives zeros.
type decoder struct {
	b        []byte
	position int64 // in the object, of the next batch
	prev     Row
	err      error
}

var errCut = errors.New("it is cut")

func (d *decoder) runs(position int64) []Run {
	d.position = position
	n := d.count(minRunBytes)
	runs := make([]Run, 0, n)
	shard := uint64(0)
	for range n {
		shard += d.uvarint(math.MaxUint16)
		r := Run{Shard: uint16(shard), Position: d.position}
		r.Partition = siltstone.TopicPartition{Topic: siltstone.TopicID(d.take(16)), Partition: int32(d.uvarint(math.MaxInt32))}
		r.Offsets = int64(d.uvarint(maxSpan))
		rows := d.count(minRowBytes)
		r.CRC = order.Uint32(d.take(crcBytes))
		if d.err == nil && shard > math.MaxUint16 {
			d.err = fmt.Errorf("a run is of shard %d", shard)
		}
		if d.err != nil {
			return nil
		}
		if rows > 0 {
			r.Rows = make([]Row, 0, rows)
		}
		for range rows {
			r.Rows = append(r.Rows, d.row(r.end()))
			if d.err != nil {
				return nil
			}
		}
		if r.LengthBytes = d.position - r.Position; r.Offsets < r.end() {
			d.err = fmt.Errorf("rows of %s span more than its %d offsets", r.Partition, r.Offsets)
			return nil
		}
		runs = append(runs, r)
	}
	return runs
}

func (d *decoder) row(end int64) Row {
	r := Row{ProducerID: batch.NoProducerID, ProducerEpoch: -1, BaseSequence: -1, Marker: NoMarker, CoordinatorEpoch: -1}
	r.OffsetDelta = end + int64(d.uvarint(uint64(maxSpan-end)))
	r.Offsets = int32(d.uvarint(math.MaxInt32))
	epoch := int64(d.prev.Epoch) + d.varint(-1<<32, 1<<32)
	r.MaxTimestamp = d.prev.MaxTimestamp + d.varint(math.MinInt64, math.MaxInt64)
	r.Attributes = batch.Attributes(d.uvarint(math.MaxUint16))
	r.LengthBytes = int32(d.uvarint(math.MaxInt32))
	if id := d.uvarint(1 << 63); id > 0 {
		r.ProducerID = int64(id - 1)
		r.ProducerEpoch = int16(d.varint(math.MinInt16, math.MaxInt16))
		r.BaseSequence = int32(d.varint(math.MinInt32, math.MaxInt32))
	}
	if r.Attributes.Control() {
		r.Marker = batch.MarkerType(d.varint(math.MinInt8, math.MaxInt8))
		r.CoordinatorEpoch = int32(d.varint(math.MinInt32, math.MaxInt32))
	}
	if d.err == nil && (epoch != int64(int32(epoch)) || r.Offsets < 1 || r.EndDelta() > maxSpan || r.LengthBytes < batch.HeaderBytes) {
		d.err = fmt.Errorf("row of %d offsets, %d bytes, epoch %d", r.Offsets, r.LengthBytes, epoch)
	}
	r.Epoch, r.Position = siltstone.Epoch(epoch), d.position
	d.position += int64(r.LengthBytes)
	d.prev = r
	return r
}

// count takes how many things follow, each of at least leastBytes.
func (d *decoder) count(leastBytes int) int { return int(d.uvarint(uint64(len(d.b) / leastBytes))) }

func (d *decoder) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if d.err == nil && n <= 0 {
		d.err = errCut
	}
	if d.err == nil && v > most {
		d.err = fmt.Errorf("a field is %d, at most %d", v, most)
	}
	if d.err != nil {
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint(least, most int64) int64 {
	v, n := binary.Varint(d.b)
	if d.err == nil && n <= 0 {
		d.err = errCut
	}
	if d.err == nil && (v < least || v > most) {
		d.err = fmt.Errorf("a field is %d, from %d to %d", v, least, most)
	}
	if d.err != nil {
		return 0
	}
	d.b = d.b[n:]
	return v
}

// take takes n bytes, n at most 16.
func (d *decoder) take(n int) []byte {
	if d.err == nil && len(d.b) < n {
		d.err = errCut
	}
	if d.err != nil {
		return make([]byte, n)
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}
