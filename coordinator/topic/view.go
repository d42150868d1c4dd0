package topic

import "github.com/siltstone-io/siltstone"

// Topic is one topic. It is immutable: a change makes another.
type Topic struct {
	ID         siltstone.TopicID
	Number     uint32 // the short number that shard ledgers use; never used again
	Name       string
	Partitions int32
	Configs    map[string]string // its own, not the defaults; not to be changed
	CreatedMS  int64
	config     *Config
}

// Config is what is in force for the topic: its own settings over the cluster's.
func (t *Topic) Config() *Config { return t.config }

// View is an immutable snapshot, for any number of readers.
type View struct{}

// Topic finds a topic by its name.
func (v *View) Topic(name string) (*Topic, bool) { panic("todo") }

// TopicByID finds a topic by its id.
func (v *View) TopicByID(id siltstone.TopicID) (*Topic, bool) { panic("todo") }

// Len is how many topics there are.
func (v *View) Len() int { panic("todo") }

// All is every topic, sorted by name. Not to be changed.
func (v *View) All() []*Topic { panic("todo") }

// Settings are the cluster's own settings, not the defaults. Not to be changed.
func (v *View) Settings() map[string]string { panic("todo") }

// Cluster is what is in force for the cluster.
func (v *View) Cluster() *Cluster { panic("todo") }
