package group

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// State is the fold of a group shard's ledger. It implements ledger.Fold[Change].
type State struct {
	epoch  siltstone.Epoch
	leader siltstone.Incarnation
	groups map[string]*Group
}

// Change is what an entry changed.
type Change struct {
	Kind    byte
	Void    string // why the entry was void, and changed nothing; empty where it was not
	Elected bool   // a Lead of a new epoch
}

func (c *Change) void(format string, args ...any) { c.Void = fmt.Sprintf(format, args...) }

// Group is what the fold knows of one group. It is not to be changed, and
// changes with every entry that concerns it.
type Group struct {
	ID string
	Info
	Offsets map[TopicPartition]Committed
}

// New is the fold of no entries: epoch 0, led by nobody, not sealed.
func New() *State { return &State{groups: map[string]*Group{}} }

// Epoch is that of the last Lead; 0 before the first.
func (s *State) Epoch() siltstone.Epoch { return s.epoch }

// Leader in office; the zero Incarnation while there is none.
func (s *State) Leader() siltstone.Incarnation { return s.leader }

// Sealed says that a Lead has left the shard to nobody.
func (s *State) Sealed() bool { return s.epoch > 0 && s.leader == 0 }

// Group finds a group.
func (s *State) Group(id string) (*Group, bool) {
	g, ok := s.groups[id]
	return g, ok
}

// Groups yields all groups, sorted by id.
func (s *State) Groups() iter.Seq[*Group] {
	return func(yield func(*Group) bool) {
		for _, id := range slices.Sorted(maps.Keys(s.groups)) {
			if !yield(s.groups[id]) {
				return
			}
		}
	}
}

// Apply folds one entry. A body that cannot be decoded is void: its frame
// held, so its writer is at fault. The error, for a kind that this release
// does not know, wraps siltstone.ErrNewerFormat.
//
// Each kind checks all that it says before it changes anything.
func (s *State) Apply(e ledger.Entry) (Change, error) {
	c := Change{Kind: e.Kind}
	if e.Kind < KindLead || e.Kind > KindUpdate {
		return c, fmt.Errorf("entry of kind %d: %w", e.Kind, siltstone.ErrNewerFormat)
	}
	body, err := Decode(e.Kind, e.Body)
	switch b := body.(type) {
	case nil:
		c.void("%v", err)
	case *Lead:
		s.lead(b, &c)
	case *Update:
		s.update(b, &c)
	}
	return c, nil
}

func (s *State) lead(l *Lead, c *Change) {
	if l.Epoch <= s.epoch {
		c.void("epoch %d, the shard is at %d", l.Epoch, s.epoch)
		return
	}
	s.epoch, s.leader, c.Elected = l.Epoch, l.Leader, true
}

func (s *State) update(u *Update, c *Change) {
	switch {
	case u.Epoch != s.epoch:
		c.void("epoch %d, the shard is at %d", u.Epoch, s.epoch)
	case s.leader == 0:
		c.void("by %s, nobody leads", u.Writer)
	case u.Writer != s.leader:
		c.void("by %s, the leader is %s", u.Writer, s.leader)
	}
	named := map[string]bool{}
	for i := range u.Groups {
		if c.Void != "" {
			return
		}
		g := &u.Groups[i]
		if named[g.ID] {
			c.void("group %q is named twice", g.ID)
		} else if why := g.check(s.groups[g.ID]); why != "" {
			c.void("group %q: %s", g.ID, why)
		}
		named[g.ID] = true
	}
	if c.Void != "" {
		return
	}
	for i := range u.Groups {
		s.change(&u.Groups[i])
	}
}

// change does what an update says, which is checked. A group comes to be with
// a Set or a Commit: to delete one that is not there, or forget offsets that
// are not, does nothing.
func (s *State) change(u *GroupUpdate) {
	if u.Delete {
		delete(s.groups, u.ID)
	}
	g := s.groups[u.ID]
	if g == nil {
		if u.Set == nil && len(u.Commit) == 0 {
			return
		}
		g = &Group{ID: u.ID}
		s.groups[u.ID] = g
	}
	if u.Set != nil {
		g.Info = *u.Set
	}
	for _, tp := range u.Forget {
		delete(g.Offsets, tp)
	}
	g.commit(u.Commit)
}

// commit puts offsets in the place of those of their partitions.
func (g *Group) commit(list []Committed) {
	if g.Offsets == nil && len(list) > 0 {
		g.Offsets = make(map[TopicPartition]Committed, len(list))
	}
	for _, c := range list {
		g.Offsets[c.TopicPartition] = c
	}
}

// sorted is all offsets, in order of their partitions.
func (g *Group) sorted() []Committed {
	return slices.SortedFunc(maps.Values(g.Offsets), func(a, b Committed) int { return compare(a.TopicPartition, b.TopicPartition) })
}
