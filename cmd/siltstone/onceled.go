package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// moveTime is how long partitions may take to move from an agent to another:
	// the lease, and what takes over.
	moveTime  = 15 * time.Second
	moveAgain = 100 * time.Millisecond
)

// onceLed asks again while an answer fails as partitions are on their way to
// another agent.
func onceLed[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for end := time.Now().Add(moveTime); ; {
		v, err := ask()
		if err == nil || !moving(err) || time.Now().After(end) {
			return v, err
		}
		select {
		case <-time.After(moveAgain):
		case <-ctx.Done():
			return v, err
		}
	}
}

// moving says whether all that failed may succeed a moment later.
func moving(err error) bool {
	var shards *kadm.ShardErrors
	if !errors.As(err, &shards) {
		return false
	}
	for _, e := range shards.Errs {
		if !kerr.IsRetriable(e.Err) && !kgo.IsRetryableBrokerErr(e.Err) && !refusedDial(e.Err) {
			return false
		}
	}
	return true
}

// refusedDial says whether a connection was refused: to a leader that has just
// stopped, for some agent has told who leads.
func refusedDial(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}
