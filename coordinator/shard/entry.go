package shard

import (
	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// Kinds of entries.
const (
	KindLead byte = 1 + iota
	KindOpen
	KindSegment
	KindReplace
	KindTrim
	KindDrop
)

// Body is what an entry says. Decode is the inverse of Encode.
type Body interface {
	Kind() byte
	Encode() []byte
}

// Lead says that an agent leads at an epoch: appending it is the election. One
// of the present epoch, by its leader, changes the ISR.
type Lead struct {
	Epoch  siltstone.Epoch
	Leader siltstone.Incarnation // the zero Incarnation, nobody, seals the shard
	ISR    []siltstone.Incarnation
	// Unclean excuses what replication alone had made safe under older epochs:
	// the next offset of every open partition moves up by siltstone.UncleanJump.
	Unclean bool
}

// Sealed says that nobody leads, and anybody may append.
func (l *Lead) Sealed() bool { return l.Leader == 0 }

// Open says that partitions exist from here on, at offset 0.
type Open struct {
	Epoch  siltstone.Epoch
	Writer siltstone.Incarnation
	Topics []OpenTopic
}

// OpenTopic is the share of one topic, and ties its short number to its id.
type OpenTopic struct {
	Topic      siltstone.TopicID
	Number     uint32
	Partitions []int32 // ascending
}

// Segment says what uploaded objects hold, in the order of their offsets. It
// counts offsets: the fold assigns them.
type Segment struct {
	Epoch   siltstone.Epoch
	Writer  siltstone.Incarnation
	Objects []SegmentObject
}

// SegmentObject is one object and what it holds for this shard.
type SegmentObject struct {
	ID    segment.ObjectID
	Parts []Part
}

// Extent is how much of a partition a run of an object covers.
type Extent struct {
	Number       uint32 // the topic's short number
	Partition    int32
	Offsets      int64 // how many, at least 1; holes that compaction left count
	LengthBytes  int64 // at least 1
	MaxTimestamp int64 // ms, -1 where there is none
}

// Part is what a flush adds to one partition.
type Part struct {
	Extent
	Epoch siltstone.Epoch // leader epoch of the last batch
	// Earlier is what batches of older epochs the run begins with: those of a
	// tail that a new leader rebuilt. Epochs ascend; the offsets that it
	// counts are among the Extent's.
	Earlier []EpochRun
}

// EpochRun is how many offsets in a row were written under one epoch.
type EpochRun struct {
	Epoch   siltstone.Epoch
	Offsets int64
}

// Replace says that exactly the live ranges Out are now served by In, which
// cover the same offsets.
type Replace struct {
	Out []ReplaceOut
	In  []ReplaceIn
}

// ReplaceOut names live ranges in one object.
type ReplaceOut struct {
	ID    segment.ObjectID
	Parts []Ref
}

// Ref names a partition's live range in a known object.
type Ref struct {
	Number     uint32
	Partition  int32
	Generation uint32
}

// ReplaceIn is one new object. Of one partition, the first of the entry's
// extents begins where the ranges that go out begin, and each of the others
// where the one before it ends.
type ReplaceIn struct {
	ID    segment.ObjectID
	Parts []Extent
}

// Trim moves log starts, or ends partitions.
type Trim struct{ Parts []TrimPart }

// TrimPart is the share of one partition.
type TrimPart struct {
	Number    uint32
	Partition int32
	Start     siltstone.Offset // the new log start
	Gone      bool             // the partition is no more; Start is 0
}

// Drop gives up objects that no range refers to; none of them will be named by
// a later entry.
type Drop struct{ Objects []segment.ObjectID }

// Kind of the entry.
func (*Lead) Kind() byte    { return KindLead }
func (*Open) Kind() byte    { return KindOpen }
func (*Segment) Kind() byte { return KindSegment }
func (*Replace) Kind() byte { return KindReplace }
func (*Trim) Kind() byte    { return KindTrim }
func (*Drop) Kind() byte    { return KindDrop }
