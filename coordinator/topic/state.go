package topic

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/internal/wire"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// State is the fold of the cluster ledger's entries about topics and settings.
// It implements ledger.Fold[Change].
type State struct {
	topics   draft
	next     uint32 // the next topic's short number
	nextID   int64  // the first producer id that is in no block
	settings map[string]string
	cluster  *Cluster
	defaults *Config // of topics without settings of their own
	view     *View   // nil where it is no longer the newest
}

// New is the fold of no entries.
func New() *State {
	s := &State{next: 1}
	s.set(nil)
	return s
}

// View is a snapshot of the state, the same one until the next change.
func (s *State) View() *View {
	if s.view == nil {
		s.view = s.topics.view(s.settings, s.cluster)
		s.view.nextID = s.nextID
	}
	return s.view
}

// Change is what an entry changed.
type Change struct {
	Kind byte
	Void string // why the entry was void, and changed nothing; empty where it was not

	Created  []*Topic
	Deleted  []*Topic
	Changed  []*Topic // as they are now: partitions added, or configs set
	Settings bool     // the cluster's settings changed, and every topic's Config with them
}

func (c *Change) void(format string, args ...any) { c.Void = fmt.Sprintf(format, args...) }

// Apply folds one entry. A body that cannot be decoded is void: its frame
// held, so its writer is at fault. The error, for a kind that this release
// does not know, wraps siltstone.ErrNewerFormat.
//
// Each kind checks all that it says before it changes anything.
func (s *State) Apply(e ledger.Entry) (Change, error) {
	c := Change{Kind: e.Kind}
	if e.Kind < KindCreate || e.Kind > KindProducerIDs {
		return c, fmt.Errorf("entry of kind %d: %w", e.Kind, siltstone.ErrNewerFormat)
	}
	body, err := Decode(e.Kind, e.Body)
	switch b := body.(type) {
	case nil:
		c.void("%v", err)
	case *CreateTopics:
		s.create(b, &c)
	case *DeleteTopics:
		s.delete(b, &c)
	case *AddedPartitions:
		s.grow(b, &c)
	case *SetConfigs:
		s.configure(b, &c)
	case *SetCluster:
		s.set(b.Configs)
		c.Settings = true
	case *TakenIDs:
		s.takeIDs(b, &c)
	}
	if c.Void == "" {
		s.view = nil
	}
	return c, nil
}

func (s *State) create(b *CreateTopics, c *Change) {
	names, ids := map[string]bool{}, map[siltstone.TopicID]bool{}
	for _, t := range b.Topics {
		key := nameKey(t.Name)
		if err := CheckName(t.Name); err != nil {
			c.Void = err.Error()
		} else if s.topics.named(t.Name) != nil || names[key] {
			c.void("topic %s is there, or a name that collides with it", t.Name)
		} else if s.byID(t.ID) != nil || ids[t.ID] || t.ID == (siltstone.TopicID{}) {
			c.void("topic id %s is taken", t.ID)
		} else if t.Partitions < 1 {
			c.void("topic %s without a partition", t.Name)
		} else if uint64(s.next)+uint64(len(b.Topics)) > math.MaxUint32 {
			c.void("no short numbers are left")
		}
		if c.Void != "" {
			return
		}
		names[key], ids[t.ID] = true, true
	}
	for _, t := range b.Topics {
		made := &Topic{ID: t.ID, Number: s.next, Name: t.Name, Partitions: t.Partitions, Configs: t.Configs, CreatedMS: t.CreatedMS}
		s.put(made)
		s.next++
		c.Created = append(c.Created, made)
	}
}

func (s *State) byID(id siltstone.TopicID) *Topic { return s.topics.ids[idBucket(id)][id] }

// put adds a topic, or another version of it, with the Config that is in force for it.
func (s *State) put(t *Topic) {
	t.config = s.defaults
	if len(t.Configs) > 0 {
		t.config = resolve(t.Configs, s.settings)
	}
	s.topics.put(t)
}

// known finds the topics of an entry, each named once, or says why not.
func (s *State) known(n int, id func(i int) siltstone.TopicID, c *Change) []*Topic {
	found, seen := make([]*Topic, n), map[siltstone.TopicID]bool{}
	for i := range found {
		id := id(i)
		if found[i] = s.byID(id); found[i] == nil || seen[id] {
			c.void("topic id %s is unknown, or named twice", id)
			return nil
		}
		seen[id] = true
	}
	return found
}

func (s *State) delete(b *DeleteTopics, c *Change) {
	c.Deleted = s.known(len(b.IDs), func(i int) siltstone.TopicID { return b.IDs[i] }, c)
	for _, t := range c.Deleted {
		s.topics.remove(t)
	}
}

func (s *State) grow(b *AddedPartitions, c *Change) {
	topics := s.known(len(b.Topics), func(i int) siltstone.TopicID { return b.Topics[i].ID }, c)
	for i, t := range topics {
		if total := b.Topics[i].Total; total <= t.Partitions {
			c.void("topic %s has %d partitions, and %d are no more", t.Name, t.Partitions, total)
			return
		}
	}
	for i, t := range topics {
		grown := *t
		grown.Partitions = b.Topics[i].Total
		s.put(&grown)
		c.Changed = append(c.Changed, &grown)
	}
}

func (s *State) configure(b *SetConfigs, c *Change) {
	for i, t := range s.known(len(b.Topics), func(i int) siltstone.TopicID { return b.Topics[i].ID }, c) {
		configured := *t
		configured.Configs = b.Topics[i].Configs
		s.put(&configured)
		c.Changed = append(c.Changed, &configured)
	}
}

// set takes the cluster's settings, which give every topic its defaults.
func (s *State) set(settings map[string]string) {
	s.settings, s.cluster, s.defaults = settings, resolveCluster(settings), resolve(nil, settings)
	for _, t := range s.topics.topics() {
		again := *t
		s.put(&again)
	}
}

func (s *State) takeIDs(b *TakenIDs, c *Change) {
	if b.First != s.nextID || b.Count < 1 || b.Count > math.MaxInt64-s.nextID {
		c.void("%d producer ids from %d on, the next is %d", b.Count, b.First, s.nextID)
		return
	}
	s.nextID += b.Count
}

// First bytes of the keys of a checkpoint's rows. 0 to 15 are of this package.
const (
	rowCluster   = 0
	rowTopic     = 1
	rowProducers = 2
)

// Rows yields the checkpoint's rows, sorted by key.
func (s *State) Rows(yield func(key, value []byte) bool) {
	head := binary.AppendUvarint(nil, uint64(s.next))
	if !yield([]byte{rowCluster}, appendConfigs(head, s.settings)) {
		return
	}
	for _, t := range s.topics.sortedByID() {
		b := binary.AppendUvarint(nil, uint64(t.Number))
		b = wire.AppendString(b, t.Name)
		b = binary.AppendUvarint(b, uint64(t.Partitions))
		b = binary.AppendVarint(b, t.CreatedMS)
		if !yield(append([]byte{rowTopic}, t.ID[:]...), appendConfigs(b, t.Configs)) {
			return
		}
	}
	if s.nextID > 0 {
		yield([]byte{rowProducers}, binary.AppendUvarint(nil, uint64(s.nextID)))
	}
}

// Restore takes back one row. Errors wrap siltstone.ErrCorrupt, or
// siltstone.ErrNewerFormat for a row of a kind that is not known.
func (s *State) Restore(key, value []byte) error {
	in := wire.NewReader(value)
	s.view = nil
	switch {
	case len(key) == 1 && key[0] == rowCluster:
		s.next = uint32(in.Uvarint(math.MaxUint32))
		s.set(readConfigs(in))
	case len(key) == 1+idBytes && key[0] == rowTopic:
		t := &Topic{ID: siltstone.TopicID(key[1:]), Number: uint32(in.Uvarint(math.MaxUint32)), Name: in.String()}
		t.Partitions, t.CreatedMS, t.Configs = readPartitions(in), in.Varint(), readConfigs(in)
		if CheckName(t.Name) != nil || s.topics.named(t.Name) != nil || s.byID(t.ID) != nil || t.Partitions < 1 || t.Number >= s.next {
			in.Fail("topic %q, number %d, %d partitions", t.Name, t.Number, t.Partitions)
		}
		if in.Err() == nil {
			s.put(t)
		}
	case len(key) == 1 && key[0] == rowProducers:
		s.nextID = int64(in.Uvarint(math.MaxInt64))
	default:
		return fmt.Errorf("row %x: %w", key, siltstone.ErrNewerFormat)
	}
	if err := in.Close(); err != nil {
		return fmt.Errorf("row %x: %w", key, err)
	}
	return nil
}
