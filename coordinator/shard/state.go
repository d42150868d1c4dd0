package shard

import (
	"iter"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// State is the fold of a log shard's ledger. It implements ledger.Fold[Change].
type State struct{}

// New is the fold of no entries: epoch 0, led by nobody, not sealed.
func New() *State { panic("todo") }

// Epoch is that of the last Lead.
func (s *State) Epoch() siltstone.Epoch { panic("todo") }

// Leader in office; the zero Incarnation while there is none.
func (s *State) Leader() siltstone.Incarnation { panic("todo") }

// ISR as the last Lead has it, sorted. Not to be changed.
func (s *State) ISR() []siltstone.Incarnation { panic("todo") }

// Sealed says that nobody leads, and anybody may append.
func (s *State) Sealed() bool { panic("todo") }

// Partition finds an open partition.
func (s *State) Partition(tp siltstone.TopicPartition) (*Partition, bool) { panic("todo") }

// Partitions yields the open partitions in their order.
func (s *State) Partitions() iter.Seq[*Partition] { panic("todo") }

// Live says that a range refers to the object.
func (s *State) Live(id segment.ObjectID) bool { panic("todo") }

// Dropped says that a Drop has given the object up.
func (s *State) Dropped(id segment.ObjectID) bool { panic("todo") }

// Apply folds one entry. The error, for an unknown kind, wraps siltstone.ErrNewerFormat.
func (s *State) Apply(e ledger.Entry) (Change, error) { panic("todo") }

// Rows yields the checkpoint's rows, sorted by key.
func (s *State) Rows(yield func(key, value []byte) bool) { panic("todo") }

// Restore takes back one row.
func (s *State) Restore(key, value []byte) error { panic("todo") }

// AddRows takes the producers and transactions of one range from the rows of
// its run in an object's index. Ranges are given in order of their offsets;
// one that was given before changes nothing.
func (s *State) AddRows(tp siltstone.TopicPartition, base siltstone.Offset, rows []segment.Row) error {
	panic("todo")
}

// Change is what an entry changed.
type Change struct {
	Kind byte
	Void string // why the entry was void; empty where it was not

	Elected  bool // a Lead of a new epoch
	Jumped   bool // an unclean one: the next offset of every open partition has moved up
	Opened   []*Partition
	Assigned []Assigned // by a Segment, in its order
	Trimmed  []Trimmed
	Replaced []siltstone.TopicPartition // by a Replace; their ranges are others now
}

// Assigned is one range that a Segment added.
type Assigned struct {
	Partition *Partition
	Object    segment.ObjectID
	Base      siltstone.Offset
	Offsets   int64
}

// End is the offset after the range's last.
func (a Assigned) End() siltstone.Offset { return a.Base + siltstone.Offset(a.Offsets) }

// Trimmed is one partition whose log start moved, or that is gone.
type Trimmed struct {
	Partition siltstone.TopicPartition
	Start     siltstone.Offset
	Gone      bool
}
