package shard

import (
	"iter"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// Partition is what the fold knows of one open partition. Its fields are read
// only, and change with every entry that concerns it.
type Partition struct {
	TP       siltstone.TopicPartition
	Number   uint32           // the topic's short number
	Next     siltstone.Offset // of the next Segment's range: the flushed end, or above it after an unclean Lead
	LogStart siltstone.Offset
	Epochs   []EpochStart // ascending in both
	// Indexed is the offset below which Producers and Aborted are complete.
	Indexed   siltstone.Offset
	Producers map[int64]*Producer
	Aborted   []AbortedTxn // in the order of their markers
}

// EpochStart is the first offset that a leader wrote (KIP-101).
type EpochStart struct {
	Epoch siltstone.Epoch
	Start siltstone.Offset
}

// Range is the offsets [Base, Base+Offsets) of a partition, in one object.
type Range struct {
	Object       segment.ObjectID
	Base         siltstone.Offset
	Offsets      int64
	LengthBytes  int64
	MaxTimestamp int64
	Epoch        siltstone.Epoch // of its last offset
	Generation   uint32          // how often it was rewritten
}

// End is the offset after the range's last.
func (r Range) End() siltstone.Offset { return r.Base + siltstone.Offset(r.Offsets) }

// Len is how many live ranges there are.
func (p *Partition) Len() int { panic("todo") }

// Range is the i-th of them, 0 ≤ i < Len, in order of offsets.
func (p *Partition) Range(i int) Range { panic("todo") }

// Find is the index of the first range that ends after off; Len if none does.
func (p *Partition) Find(off siltstone.Offset) int { panic("todo") }

// Ranges yields the ranges that end after off, in order.
func (p *Partition) Ranges(off siltstone.Offset) iter.Seq[Range] { panic("todo") }

// SizeBytes is the sum of the ranges' lengths.
func (p *Partition) SizeBytes() int64 { panic("todo") }

// EndOfEpoch answers OffsetForLeaderEpoch as far as the fold knows: an epoch
// at or after the last one ends at Next.
func (p *Partition) EndOfEpoch(e siltstone.Epoch) siltstone.EpochEnd { panic("todo") }

// EpochAt is the leader epoch of an offset below Next; -1 where none is known.
func (p *Partition) EpochAt(off siltstone.Offset) siltstone.Epoch { panic("todo") }

// LastStable is the offset of the first record of an open transaction below
// Indexed, or end if there is none.
func (p *Partition) LastStable(end siltstone.Offset) siltstone.Offset { panic("todo") }

// Producer is what a partition remembers of an idempotent producer (KIP-98).
type Producer struct {
	ID               int64
	Epoch            int16
	CoordinatorEpoch int32            // of its last marker; -1
	LastTimestamp    int64            // ms
	TxnStart         siltstone.Offset // of its open transaction; -1
	Batches          []ProducerBatch  // the last five at most, oldest first
}

// ProducerBatch is one batch of an idempotent producer.
type ProducerBatch struct {
	Base          siltstone.Offset
	Offsets       int32
	FirstSequence int32
	Timestamp     int64 // largest of the batch
}

// AbortedTxn is one transaction whose records read_committed readers skip.
type AbortedTxn struct {
	ProducerID  int64
	First, Last siltstone.Offset // Last is the marker's
	LastStable  siltstone.Offset // once the marker was in
}
