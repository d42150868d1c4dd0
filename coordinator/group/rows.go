package group

import (
	"cmp"
	"fmt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/internal/wire"
)

// First bytes of the keys of a checkpoint's rows.
const (
	rowLeadership = 0
	rowGroup      = 1
)

// Rows yields the checkpoint's rows, sorted by key.
func (s *State) Rows(yield func(key, value []byte) bool) {
	lead := Lead{s.epoch, s.leader}
	if !yield([]byte{rowLeadership}, lead.Encode()) {
		return
	}
	for g := range s.Groups() {
		value := appendCommits(g.append(nil), g.sorted())
		if !yield(append([]byte{rowGroup}, g.ID...), value) {
			return
		}
	}
}

// Restore takes back one row. Errors wrap siltstone.ErrCorrupt, or
// siltstone.ErrNewerFormat for a row of a kind that is not known.
func (s *State) Restore(key, value []byte) error {
	in := wire.NewReader(value)
	switch {
	case len(key) == 1 && key[0] == rowLeadership:
		s.epoch = readEpoch(in)
		s.leader = siltstone.Incarnation(in.Uint64())
	case len(key) >= 1 && key[0] == rowGroup:
		s.restoreGroup(string(key[1:]), in)
	default:
		return fmt.Errorf("row %x: %w", key, siltstone.ErrNewerFormat)
	}
	if err := in.Close(); err != nil {
		return fmt.Errorf("row %x: %w", key, err)
	}
	return nil
}

func (s *State) restoreGroup(id string, in *wire.Reader) {
	info, offsets := readInfo(in), readCommits(in)
	u := GroupUpdate{ID: id, Set: &info, Commit: offsets}
	if why := u.check(nil); why != "" || s.groups[id] != nil {
		in.Fail("group %q: %s", id, cmp.Or(why, "there already"))
		return
	}
	s.change(&u)
}
