package shard

import (
	"fmt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// Unindexed is what one object of a Segment added, and whose rows are yet to
// be read from the object's index.
type Unindexed struct {
	Object segment.ObjectID
	TimeMS int64 // of the Segment
	Ranges []Assigned
}

// Unindexed are the objects whose rows the fold lacks after the tail was
// folded onto a checkpoint, in order: AddIndex takes each, or Skip. All of them
// are there, or there is a newer checkpoint: until then an object stays that a
// Segment named, even if nothing of it is live. Where all its partitions are
// gone, nobody asks for it.
func (s *State) Unindexed(tail []ledger.Change[Change]) []Unindexed {
	var all []Unindexed
	for i := range tail {
		for _, a := range tail[i].Effect.Assigned {
			if p := s.partitions[a.Partition.key()]; p != a.Partition || a.End() <= p.Indexed {
				continue
			}
			if n := len(all); n == 0 || all[n-1].Object != a.Object {
				all = append(all, Unindexed{Object: a.Object, TimeMS: tail[i].Entry.TimeMS})
			}
			last := &all[len(all)-1]
			last.Ranges = append(last.Ranges, a)
		}
	}
	return all
}

// AddIndex adds the rows of an object, by its index.
func (u *Unindexed) AddIndex(x *segment.Index) error {
	for _, a := range u.Ranges {
		run, ok := x.Find(a.Partition.TP)
		if !ok || run.Offsets != a.Offsets {
			return fmt.Errorf("object %s has no run of %d offsets of %s: %w", u.Object, a.Offsets, a.Partition.TP, siltstone.ErrCorrupt)
		}
		if err := a.Partition.AddRows(a, u.TimeMS, run.Rows); err != nil {
			return err
		}
	}
	return nil
}

// Skip goes past an object that is lost.
func (u *Unindexed) Skip() error {
	for _, a := range u.Ranges {
		if err := a.Partition.AddRows(a, u.TimeMS, nil); err != nil {
			return err
		}
	}
	return nil
}
