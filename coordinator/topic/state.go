package topic

import "github.com/siltstone-io/siltstone/coordinator/ledger"

// State is the fold of the cluster ledger's entries about topics and settings.
// It implements ledger.Fold[Change].
type State struct{}

// New is the fold of no entries.
func New() *State { panic("todo") }

// View is a snapshot of the state. It costs nothing to take.
func (s *State) View() *View { panic("todo") }

// Apply folds one entry. The error, for an unknown kind, wraps siltstone.ErrNewerFormat.
func (s *State) Apply(e ledger.Entry) (Change, error) { panic("todo") }

// Rows yields the checkpoint's rows, sorted by key.
func (s *State) Rows(yield func(key, value []byte) bool) { panic("todo") }

// Restore takes back one row.
func (s *State) Restore(key, value []byte) error { panic("todo") }

// Change is what an entry changed.
type Change struct {
	Kind byte
	Void string // why the entry was void; empty where it was not

	Created  []*Topic
	Deleted  []*Topic
	Changed  []*Topic // as they are now: partitions added, or configs set
	Settings bool     // the cluster's settings changed
}
