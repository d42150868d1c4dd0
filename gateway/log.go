package gateway

import (
	"context"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// Agent is what the gateway asks of the process behind it.
type Agent interface {
	// Ready is nil when requests can be served, else why they cannot.
	Ready() error
	// Begun is nil from the first time on that it was ready: before, it does not
	// know what there is.
	Begun() error
}

// Log takes and gives record batches. Its errors wrap the sentinels of package siltstone.
type Log interface {
	// Append takes a request, and waits while memory for it is short. From a
	// nil error on the log owns the request until it closes Done, at r.Deadline
	// or soon after at the latest. After an error it has not taken it.
	Append(ctx context.Context, r *siltstone.AppendRequest) error
	// Fetch blocks as FetchRequest says. The result's parts are those of the
	// request, in order; its Release is called once, when they are read. The
	// first part that has a batch gives it whole, whatever the limits.
	Fetch(ctx context.Context, r *siltstone.FetchRequest) (*siltstone.FetchResult, error)
	// OffsetForTime finds the first record at or after a time (ms since 1970),
	// or one of siltstone.Time*. An epoch other than -1 must be the leader's.
	OffsetForTime(ctx context.Context, tp siltstone.TopicPartition, time int64,
		epoch siltstone.Epoch, isolation siltstone.Isolation) (siltstone.TimedOffset, error)
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
