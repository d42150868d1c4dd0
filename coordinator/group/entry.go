package group

import "github.com/siltstone-io/siltstone"

// Kinds of entries.
const (
	KindLead byte = 1 + iota
	KindUpdate
)

// Body is what an entry says. Decode is the inverse of Encode.
type Body interface {
	Kind() byte
	Encode() []byte
}

// Lead says that an agent leads at an epoch: appending it is the election. A
// group shard has no replicas, so it is never unclean, and anybody may take
// over, at an epoch above the present one.
type Lead struct {
	Epoch  siltstone.Epoch
	Leader siltstone.Incarnation // the zero Incarnation, nobody, seals the shard
}

// Update changes groups. It is void outside its writer's epoch: of another
// epoch than the present one, or by anybody but the leader in office.
type Update struct {
	Epoch  siltstone.Epoch
	Writer siltstone.Incarnation
	Groups []GroupUpdate // each group once
}

// GroupUpdate changes one group: first Delete, then Set, then Forget, then
// Commit. A group comes to be with Set or Commit. To delete one that is not
// there, or forget offsets that are not, does nothing: a group may come and go
// between two entries.
type GroupUpdate struct { //nolint:revive // Update is the entry
	ID     string // may be empty: offsets may be committed under that too
	Delete bool   // the group and its offsets
	Set    *Info  // nil: as it was; a group that is not there gets the zero Info
	Forget []TopicPartition
	Commit []Committed // Forget and Commit together name each partition once
}

// TopicPartition names a partition by its topic's short number, which no other
// topic ever has.
type TopicPartition struct {
	Topic     uint32
	Partition int32
}

// Info is a group but for its offsets: what a generation consists of.
type Info struct {
	Type string // protocol type, "consumer" mostly; empty: only offsets were ever committed
	// Generation never falls, but in a group made anew by the Update that deleted it.
	Generation int32
	Protocol   string // that all members have; empty without members
	Leader     string // a member's id; empty without members
	// Assigned says that the leader's assignments are in: the group is stable.
	Assigned  bool     // false without members
	ChangedMS int64    // when it got these members
	Members   []Member // in the order in which they came; no id and no instance twice
}

// Member is one member of a generation.
type Member struct {
	ID                     string  // not empty
	Instance               *string // group.instance.id (KIP-345)
	ClientID               string
	ClientHost             string
	SessionMS, RebalanceMS int32
	Subscription           []byte // its metadata of the generation's Protocol
	Assignment             []byte
}

// Committed is an offset committed for a partition.
type Committed struct {
	TopicPartition
	Offset   int64 // not negative
	Epoch    int32 // leader epoch of the record before it; -1: not known
	Metadata string
	TimeMS   int64 // of the commit
	ExpireMS int64 // when it expires whatever else; -1: offsets.retention.minutes counts
}
