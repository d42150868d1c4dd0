package siltstone

import "time"

// AppendRequest asks a log to take record batches. A door fills it, the log
// fills the outcomes and then closes Done; nobody else touches it in between.
type AppendRequest struct {
	// Acks is Kafka's: 0 (Done closes as soon as the log has taken or refused
	// it), 1 (once buffered), -1 (once safe).
	Acks int16
	// Deadline is when a part that is not decided gets ErrTimedOut.
	Deadline time.Time
	Parts    []AppendPart
	Done     chan struct{}
}

// AppendPart is the share of one partition.
type AppendPart struct {
	Partition TopicPartition
	// Batches holds one or more whole v2 batches that batch.Validate has
	// passed; one of an idempotent producer stands alone. The log stamps base
	// offsets and leader epochs into its own copy and is done with these bytes
	// when Done closes.
	Batches []byte

	// Outcome: Err is nil, or wraps one of the sentinels of this package and
	// the other fields are -1.
	Err      error
	Base     Offset // of the first record
	LogStart Offset
	// RepeatedMS is, where an idempotent producer sent again what the log has
	// already, the largest timestamp of the original, whose offset Base is; -1
	// for what is new.
	RepeatedMS int64
}

// TrimAll stands for the high watermark in a TrimPart.
const TrimAll Offset = -1

// TrimRequest asks a log to begin later: the records below the new log starts
// are gone (DeleteRecords).
type TrimRequest struct {
	// Deadline is when a part that is not decided gets ErrTimedOut; its log
	// start may yet move.
	Deadline time.Time
	Parts    []TrimPart
}

// TrimPart is the share of one partition.
type TrimPart struct {
	Partition TopicPartition
	Start     Offset // or TrimAll

	// Outcome: Err is nil, or wraps one of the sentinels of this package.
	Err      error
	LogStart Offset // which may be above Start; -1 with Err
}

// Isolation is what a reader may see (KIP-98).
type Isolation int8

// Isolation levels.
const (
	ReadUncommitted Isolation = 0 // up to the high watermark
	ReadCommitted   Isolation = 1 // up to the last stable offset
)

// FetchRequest asks a log for record batches. It returns when MinBytes are
// there, a part has an error, or at the deadline.
type FetchRequest struct {
	Deadline           time.Time
	MinBytes, MaxBytes int
	Isolation          Isolation
	Parts              []FetchPart
}

// FetchPart is the share of one partition.
type FetchPart struct {
	Partition TopicPartition
	Offset    Offset
	MaxBytes  int
	Epoch     Epoch // the leader epoch the reader believes in; -1: not checked (KIP-320)
	// LastEpoch is the leader epoch of the last batch the reader has; -1: not checked (KIP-595).
	LastEpoch Epoch
}

// FetchResult has one part for each of the request's, in their order.
type FetchResult struct {
	Parts []FetchedPart
	// Release gives back the memory that Records point into; nil when there
	// is nothing to give back. No byte of Records is touched after it.
	Release func()
	// Wanted says whether others wait for that memory; nil where nobody would.
	Wanted func() bool
}

// FetchedPart is what one partition gave.
type FetchedPart struct {
	Err                              error
	HighWatermark, LastStable, Start Offset   // -1 where unknown
	Records                          [][]byte // whole batches, stamped, in order; the first begins at or before the offset asked for
	DivergingEpoch                   Epoch    // -1, or the largest epoch up to LastEpoch ...
	DivergingEnd                     Offset   // ... and where it ends; the reader truncates
}

// Times that ListOffsets asks for besides a timestamp in milliseconds.
const (
	TimeLatest       = -1
	TimeEarliest     = -2
	TimeMaxTimestamp = -3 // KIP-734
)

// TimedOffset answers ListOffsets: the first record at or after a time.
type TimedOffset struct {
	Offset    Offset // -1: none
	Timestamp int64  // of that record, ms; -1: none, or not asked by time
	Epoch     Epoch  // leader epoch of the batch; -1: none
}

// EpochEnd answers OffsetForLeaderEpoch (KIP-101): the largest epoch up to the
// one asked for, and its end; -1 and -1 where there is none.
type EpochEnd struct {
	Epoch Epoch
	End   Offset
}

// PartitionSize is how large a partition is, in bytes of batches: of the ranges
// in the bucket that readers are sent to, whole where only a part of one is
// left, and of what is in no such range yet.
type PartitionSize struct {
	Partition        TopicPartition
	Stored, Buffered int64
}

// ProducerState is what a partition's leader remembers of an idempotent
// producer (KIP-664), with what is not flushed yet.
type ProducerState struct {
	ID               int64
	Epoch            int16
	LastSequence     int32  // -1: none of this epoch
	LastTimestamp    int64  // when it last wrote, by the leader's clock, ms
	CoordinatorEpoch int32  // of its last transaction's marker; -1
	TxnStart         Offset // of its open transaction; -1
}
