package segment

import (
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"sort"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// Row describes one batch of an object.
type Row struct {
	// OffsetDelta is the distance of the batch's first offset from the start
	// of its run. The fold says where the run starts.
	OffsetDelta  int64
	Position     int64 // in the object
	LengthBytes  int32
	Offsets      int32 // how many it spans: its last offset delta + 1
	MaxTimestamp int64 // ms
	Epoch        siltstone.Epoch

	// ProducerID is batch.NoProducerID where there is none; then epoch and sequence are -1.
	ProducerID    int64
	BaseSequence  int32
	ProducerEpoch int16

	Attributes batch.Attributes

	// Marker is a control batch's, and CoordinatorEpoch that of the transaction
	// coordinator that decided; NoMarker and -1 otherwise.
	Marker           batch.MarkerType
	CoordinatorEpoch int32
}

// NoMarker is the Marker of a batch that holds data.
const NoMarker batch.MarkerType = -1

// EndDelta is the distance of the offset after the batch from the start of its run.
func (r *Row) EndDelta() int64 { return r.OffsetDelta + int64(r.Offsets) }

// Check returns ErrCorrupt, wrapped, if b is not the batch that the row
// describes, by its header and its CRC. It is for who reads less than a run.
func (r *Row) Check(b []byte) error {
	h, err := batch.ParseHeader(b)
	if err == nil && h.SizeBytes() != len(b) {
		err = fmt.Errorf("%d bytes, and its header says %d", len(b), h.SizeBytes())
	}
	if err != nil {
		return damaged("batch", "at %d: %v", r.Position, err)
	}
	if crc32.Checksum(b[checkedFrom:], castagnoli) != h.CRC {
		return damaged("batch", "at %d: CRC does not match", r.Position)
	}
	if !r.describes(h) {
		return damaged("batch", "at %d: it is not the one in the index", r.Position)
	}
	return nil
}

// checkedFrom is where the bytes that a batch's own CRC covers start.
const checkedFrom = 21

// describes leaves out the base offset, which may be stamped anew, and what is in the records.
func (r *Row) describes(h batch.Header) bool {
	of := RowOf(h)
	of.OffsetDelta, of.Position, of.Marker, of.CoordinatorEpoch = r.OffsetDelta, r.Position, r.Marker, r.CoordinatorEpoch
	return of == *r
}

// RowOf is the row of a batch at the start of its run, without what stands in
// the records of a marker.
func RowOf(h batch.Header) Row {
	r := Row{
		LengthBytes:      int32(h.SizeBytes()),
		Offsets:          h.LastOffsetDelta + 1,
		MaxTimestamp:     h.MaxTimestamp,
		Epoch:            h.Epoch,
		ProducerID:       h.ProducerID,
		ProducerEpoch:    h.ProducerEpoch,
		BaseSequence:     h.BaseSequence,
		Attributes:       h.Attributes,
		Marker:           NoMarker,
		CoordinatorEpoch: -1,
	}
	if r.ProducerID < 0 {
		r.ProducerID, r.ProducerEpoch, r.BaseSequence = batch.NoProducerID, -1, -1
	}
	return r
}

// Run is the batches of one partition in an object, in order of their offsets.
type Run struct {
	Shard     uint16
	Partition siltstone.TopicPartition
	// Offsets is how many offsets the run covers: the span of its rows, or
	// more where compaction took the last ones.
	Offsets     int64
	Position    int64 // in the object
	LengthBytes int64
	CRC         uint32 // CRC32C of the run's bytes
	Rows        []Row
}

// At is the index of the first row that ends after an offset, given as its
// distance from the start of the run; len(Rows) if there is none.
func (r *Run) At(delta int64) int {
	return sort.Search(len(r.Rows), func(i int) bool { return r.Rows[i].EndDelta() > delta })
}

// MaxTimestamp is the largest of its rows', or -1.
func (r *Run) MaxTimestamp() int64 {
	ts := int64(-1)
	for i := range r.Rows {
		ts = max(ts, r.Rows[i].MaxTimestamp)
	}
	return ts
}

// LastEpoch is the leader epoch of the last batch, or -1.
func (r *Run) LastEpoch() siltstone.Epoch {
	if len(r.Rows) == 0 {
		return -1
	}
	return r.Rows[len(r.Rows)-1].Epoch
}

// Check returns ErrCorrupt, wrapped, if b is not the run's bytes.
func (r *Run) Check(b []byte) error {
	if int64(len(b)) != r.LengthBytes {
		return damaged("run", "of %s: %d bytes, want %d", r.Partition, len(b), r.LengthBytes)
	}
	if crc32.Checksum(b, castagnoli) != r.CRC {
		return damaged("run", "of %s: CRC does not match", r.Partition)
	}
	return nil
}

// end is the span of the rows.
func (r *Run) end() int64 {
	if len(r.Rows) == 0 {
		return 0
	}
	return r.Rows[len(r.Rows)-1].EndDelta()
}

// Index is what an object holds: its runs, by shard and partition.
type Index struct {
	Runs        []Run
	byPartition map[siltstone.TopicPartition]int
}

func newIndex(runs []Run) (*Index, error) {
	x := &Index{Runs: runs, byPartition: make(map[siltstone.TopicPartition]int, len(runs))}
	for i := range runs {
		if i > 0 && !before(&runs[i-1], &runs[i]) {
			return nil, fmt.Errorf("run of %s is out of order", runs[i].Partition)
		}
		if _, ok := x.byPartition[runs[i].Partition]; ok {
			return nil, fmt.Errorf("two runs of %s", runs[i].Partition)
		}
		x.byPartition[runs[i].Partition] = i
	}
	return x, nil
}

func before(a, b *Run) bool {
	return a.Shard < b.Shard || a.Shard == b.Shard && a.Partition.Compare(b.Partition) < 0
}

// Find is the run of a partition.
func (x *Index) Find(tp siltstone.TopicPartition) (*Run, bool) {
	i, ok := x.byPartition[tp]
	if !ok {
		return nil, false
	}
	return &x.Runs[i], true
}

// Shards are those that the runs belong to, ascending.
func (x *Index) Shards() []uint16 {
	var shards []uint16
	for i := range x.Runs {
		shards = append(shards, x.Runs[i].Shard)
	}
	return slices.Compact(shards)
}

// MemoryBytes is about what the index takes up in memory.
func (x *Index) MemoryBytes() int64 {
	const perRun, perRow = 160, 72
	n := int64(len(x.Runs)) * perRun
	for i := range x.Runs {
		n += int64(len(x.Runs[i].Rows)) * perRow
	}
	return n
}

// maxSpan bounds the offsets of a run, so that sums of two spans stay positive.
const maxSpan = math.MaxInt64 / 2
