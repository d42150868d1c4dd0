package segment

import (
	"github.com/siltstone-io/siltstone"
)

// Row describes one batch of an object.
type Row struct {
	// OffsetDelta is the distance of the batch's first offset from the start
	// of its run. The fold says where the run starts.
	OffsetDelta  int64
	Offsets      int32 // how many it spans: its last offset delta + 1
	LengthBytes  int32
	Position     int64 // in the object
	MaxTimestamp int64 // ms
	Epoch        siltstone.Epoch

	// ProducerID is -1 where there is none; then epoch and sequence are too.
	ProducerID    int64
	BaseSequence  int32
	ProducerEpoch int16

	Attributes int16 // of the batch, as it stands in it

	// Marker is a control batch's type (KIP-98: 0 abort, 1 commit) and
	// CoordinatorEpoch that of the coordinator that decided; both -1 otherwise.
	Marker           int16
	CoordinatorEpoch int32
}

// Run is the batches of one partition in an object, in order of their offsets.
type Run struct {
	Shard     uint16
	Partition siltstone.TopicPartition
	// Offsets is how many offsets the run covers. It is the rows' own span,
	// or more where compaction left holes.
	Offsets     int64
	Position    int64 // in the object
	LengthBytes int64
	CRC         uint32 // CRC32C of the run's bytes
	Rows        []Row
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
