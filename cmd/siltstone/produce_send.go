package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// errInput is an error of what is read, and not of the server.
var errInput = errors.New("cannot read on")

// recordError is the server's, about one record.
type recordError struct {
	where place
	err   error
}

func (e *recordError) Error() string { return fmt.Sprintf("%s: %v", e.where, e.err) }

func (e *recordError) Unwrap() error { return e.err }

// send writes what is read, and returns how many records were acknowledged, and
// the first error.
func send(ctx context.Context, cl *kgo.Client, topic string, in *input) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var acked atomic.Int64
	records := make(chan placed, 16)
	go func() { // by itself, as no interrupt ends a read of a terminal
		defer close(records)
		if err := in.read(ctx, records); err != nil {
			cancel(err)
		}
	}()
	for more := true; more; {
		var p placed
		select {
		case p, more = <-records:
		case <-ctx.Done():
			more = false
		}
		if !more {
			break
		}
		p.record.Topic = topic
		cl.Produce(ctx, p.record, func(_ *kgo.Record, err error) {
			if err != nil {
				cancel(&recordError{p.place, err})
				return
			}
			acked.Add(1)
		})
	}
	// Flush waits for all promises, and one that failed has cancelled. After an
	// interrupt it does not wait: what is left is not acknowledged.
	_ = cl.Flush(ctx)
	return acked.Load(), context.Cause(ctx)
}
