package topic

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/siltstone-io/siltstone"
)

// Topic is one topic. It is immutable: a change makes another.
type Topic struct {
	ID         siltstone.TopicID
	Number     uint32 // the short number that shard ledgers use; never used again
	Name       string
	Partitions int32
	Configs    map[string]string // its own settings, not the defaults; not to be changed
	CreatedMS  int64             // by the clock of whoever created it

	config *Config
}

// Config is what is in force for the topic: its own settings over the cluster's.
func (t *Topic) Config() *Config { return t.config }

// View is an immutable snapshot, for any number of readers.
type View struct {
	index
	settings map[string]string
	cluster  *Cluster
	nextID   int64 // the first producer id that is in no block
	all      func() []*Topic
}

// Topic finds a topic by its name.
func (v *View) Topic(name string) (*Topic, bool) {
	if t := v.named(name); t != nil && t.Name == name {
		return t, true
	}
	return nil, false // or one whose name collides
}

// TopicByID finds a topic by its id.
func (v *View) TopicByID(id siltstone.TopicID) (*Topic, bool) {
	t, ok := v.ids[idBucket(id)][id]
	return t, ok
}

// TopicByNumber finds a topic by its short number.
func (v *View) TopicByNumber(number uint32) (*Topic, bool) {
	t, ok := v.numbers[byte(number)][number]
	return t, ok
}

// Len is how many topics there are.
func (v *View) Len() int { return v.count }

// All is every topic, sorted by name. Not to be changed.
func (v *View) All() []*Topic { return v.all() }

// Settings are the cluster's own settings, not the defaults. Not to be changed.
func (v *View) Settings() map[string]string { return v.settings }

// Cluster is what is in force for the cluster.
func (v *View) Cluster() *Cluster { return v.cluster }

// buckets is into how many maps an index is cut: a change copies one, and the
// array of them.
const buckets = 256

// index finds topics, by nameKey, by id and by short number.
type index struct {
	names   [buckets]map[string]*Topic
	ids     [buckets]map[siltstone.TopicID]*Topic
	numbers [buckets]map[uint32]*Topic
	count   int
}

func nameBucket(key string) byte {
	h := uint32(2166136261) // FNV-1a
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return byte(h ^ h>>8 ^ h>>16 ^ h>>24)
}

func idBucket(id siltstone.TopicID) byte { return id[0] ^ id[len(id)-1] }

// named is the topic of this name, or of one that collides with it.
func (x *index) named(name string) *Topic {
	key := nameKey(name)
	return x.names[nameBucket(key)][key]
}

// topics is every topic, sorted by name.
func (x *index) topics() []*Topic {
	all := make([]*Topic, 0, x.count)
	for _, m := range x.names {
		all = slices.AppendSeq(all, maps.Values(m))
	}
	slices.SortFunc(all, func(a, b *Topic) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// draft is an index that goes on changing: it owns a map until the next
// snapshot takes it, and copies it before it changes it again.
type draft struct {
	index
	ownNames, ownIDs, ownNumbers [buckets]bool
}

func (d *draft) snapshot() index {
	d.ownNames, d.ownIDs, d.ownNumbers = [buckets]bool{}, [buckets]bool{}, [buckets]bool{}
	return d.index
}

func own[K comparable](m *map[K]*Topic, owned *bool) map[K]*Topic {
	if !*owned {
		*owned = true
		if *m = maps.Clone(*m); *m == nil {
			*m = map[K]*Topic{}
		}
	}
	return *m
}

// put adds a topic, or another version of it.
func (d *draft) put(t *Topic) {
	key := nameKey(t.Name)
	n, i, k := nameBucket(key), idBucket(t.ID), byte(t.Number)
	if _, known := d.ids[i][t.ID]; !known {
		d.count++
	}
	own(&d.names[n], &d.ownNames[n])[key] = t
	own(&d.ids[i], &d.ownIDs[i])[t.ID] = t
	own(&d.numbers[k], &d.ownNumbers[k])[t.Number] = t
}

func (d *draft) remove(t *Topic) {
	key := nameKey(t.Name)
	n, i, k := nameBucket(key), idBucket(t.ID), byte(t.Number)
	delete(own(&d.names[n], &d.ownNames[n]), key)
	delete(own(&d.ids[i], &d.ownIDs[i]), t.ID)
	delete(own(&d.numbers[k], &d.ownNumbers[k]), t.Number)
	d.count--
}

func (d *draft) view(settings map[string]string, cluster *Cluster) *View {
	v := &View{index: d.snapshot(), settings: settings, cluster: cluster}
	v.all = sync.OnceValue(v.topics)
	return v
}

// sortedByID is every topic, sorted by id.
func (x *index) sortedByID() []*Topic {
	all := x.topics()
	slices.SortFunc(all, func(a, b *Topic) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return all
}
