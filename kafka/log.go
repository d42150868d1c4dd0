package kafka

import (
	"context"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// Log takes and gives record batches. Its errors wrap the sentinels of package siltstone.
type Log interface {
	// Append takes a request, and waits while memory for it is short. From a
	// nil error on the log owns the request until it closes Done, at r.Deadline
	// or soon after at the latest. After an error it has not taken it, and Done
	// stays open. The requests of one connection come in order, one at a time.
	Append(ctx context.Context, r *siltstone.AppendRequest) error
	// Fetch blocks as FetchRequest says. The result's parts are those of the
	// request, in order; its Release is called once, when they are written out.
	// The first part that has a batch gives it whole, whatever the limits.
	Fetch(ctx context.Context, r *siltstone.FetchRequest) (*siltstone.FetchResult, error)
	// OffsetForTime finds the first record at or after a time (ms since 1970),
	// or one of siltstone.Time*. An epoch other than -1 must be the leader's.
	OffsetForTime(ctx context.Context, tp siltstone.TopicPartition, time int64,
		epoch siltstone.Epoch, isolation siltstone.Isolation) (siltstone.TimedOffset, error)
	// EpochEnd says where an epoch ends (KIP-101). A current epoch other than -1 must be the leader's.
	EpochEnd(ctx context.Context, tp siltstone.TopicPartition, epoch, current siltstone.Epoch) (siltstone.EpochEnd, error)
}

// Groups is the coordinators of groups.
type Groups interface {
	// Group hands requests to the coordinators of their groups, which own them
	// from then on, and returns once the outcomes are in them. An error says that
	// there are none, and that the requests are still not the caller's.
	Group(ctx context.Context, requests ...group.Request) error
	// ListGroups is every group, sorted by id.
	ListGroups(ctx context.Context) ([]group.Listed, error)
}

// Admin is what administrators, and idempotent producers, ask of the log.
type Admin interface {
	// NextProducerID is a producer id that nobody was ever given.
	NextProducerID(ctx context.Context) (int64, error)
	// Producers are those that a partition's leader remembers, sorted by id.
	Producers(ctx context.Context, tp siltstone.TopicPartition) ([]siltstone.ProducerState, error)
	// Sizes is how large partitions are, in no order: of those named the ones
	// that this node leads, or with a nil list all that it leads.
	Sizes(ctx context.Context, named []siltstone.TopicPartition) ([]siltstone.PartitionSize, error)
	// Trim moves log starts, and returns once each part has its outcome, at
	// r.Deadline at the latest. An error says that there is none, and that the
	// request is still not the caller's.
	Trim(ctx context.Context, r *siltstone.TrimRequest) error
}

// Topics is what there is, and a way to change it.
type Topics interface {
	// Topics is the newest view. It costs nothing.
	Topics() *topic.View
	// Change appends what decide says, on the view that it was given: decide is
	// called again, on a newer one, when another writer came first, and the last
	// call counts. An empty decision appends nothing. After a nil error Topics
	// shows the change.
	Change(ctx context.Context, decide func(*topic.View) topic.Decision) error
}

// Cluster is who serves. It answers from memory.
type Cluster interface {
	Describe() ClusterInfo
	// Leader says which node leads a partition, at which epoch.
	Leader(tp siltstone.TopicPartition) (node int32, epoch siltstone.Epoch, ok bool)
	// Coordinator says which node coordinates a group.
	Coordinator(group string) (node int32, ok bool)
}

// ClusterInfo is who serves. Its parts are not to be changed.
type ClusterInfo struct {
	ID         string
	Self       int32 // the node that answers
	Controller int32 // a live node
	Nodes      []Node
}

// Node is one live agent, as clients reach it.
type Node struct {
	ID   int32
	Host string
	Port int32
	Rack string // its zone; empty: none
}

// node finds a live node.
func (c *ClusterInfo) node(id int32) (*Node, bool) {
	for i := range c.Nodes {
		if c.Nodes[i].ID == id {
			return &c.Nodes[i], true
		}
	}
	return nil, false
}

// rack is nil where there is none.
func (n *Node) rack() *string {
	if n.Rack == "" {
		return nil
	}
	return &n.Rack
}
