package group

import (
	"iter"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// State is the fold of a group shard's ledger. It implements ledger.Fold[Change].
type State struct{}

// Change is what an entry changed.
type Change struct {
	Kind    byte
	Void    string // why the entry was void, and changed nothing; empty where it was not
	Elected bool   // a Lead of a new epoch
}

// Group is what the fold knows of one group. It is not to be changed, and
// changes with every entry that concerns it.
type Group struct {
	ID string
	Info
	Offsets map[TopicPartition]Committed
}

// New is the fold of no entries: epoch 0, led by nobody, not sealed.
func New() *State { return &State{} }

// Epoch is that of the last Lead; 0 before the first.
func (s *State) Epoch() siltstone.Epoch { return 0 }

// Leader in office; the zero Incarnation while there is none.
func (s *State) Leader() siltstone.Incarnation { return 0 }

// Sealed says that a Lead has left the shard to nobody.
func (s *State) Sealed() bool { return false }

// Group finds a group.
func (s *State) Group(id string) (*Group, bool) { return nil, false }

// Groups yields all groups, sorted by id.
func (s *State) Groups() iter.Seq[*Group] { return func(func(*Group) bool) {} }

// Apply folds one entry.
func (s *State) Apply(e ledger.Entry) (Change, error) { return Change{}, nil }

// Rows yields the checkpoint's rows, sorted by key.
func (s *State) Rows(yield func(key, value []byte) bool) {}

// Restore takes back one row.
func (s *State) Restore(key, value []byte) error { return nil }
