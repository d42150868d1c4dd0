package main

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// send writes what is read, and returns the first error. An error of what is
// read does not keep what was read before from being written.
func (p *producer) send(ctx context.Context, cl *kgo.Client, in *input) error {
	ctx, cancel := context.WithCancelCause(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		p.watch(ctx)
	}()
	defer func() { // before run prints anything else
		cancel(nil)
		<-watching
	}()
	records := make(chan placed, 16)
	var unreadable error // once records is closed
	go func() {          // by itself, as no interrupt ends a read of a terminal
		defer close(records)
		unreadable = in.read(ctx, records)
	}()
	for more := true; more; {
		var r placed
		select {
		case r, more = <-records:
		case <-ctx.Done():
			more = false
		}
		if !more {
			break
		}
		r.record.Topic = p.topic
		p.sent.Add(1)
		cl.Produce(ctx, r.record, func(_ *kgo.Record, err error) {
			if err != nil {
				cancel(&recordError{r.place, err})
				return
			}
			p.acked.Add(1)
		})
	}
	// Flush waits for all promises, and one that failed has cancelled. After an
	// interrupt it does not wait: what is left is not acknowledged.
	_ = cl.Flush(ctx)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return unreadable
}

// watch tells the stall, until the context ends, whether records that are sent
// are acknowledged.
func (p *producer) watch(ctx context.Context) {
	tick := time.NewTicker(stallTick)
	defer tick.Stop()
	for last := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		acked := p.acked.Load()
		if acked != last || acked == p.sent.Load() {
			last = acked
			p.stall.moved()
			continue
		}
		p.stall.tick()
	}
}
