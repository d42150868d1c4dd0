// Package agent is the engine: it leads shards, buffers record batches, writes
// them to the bucket as segments, commits those to the coordinator, and serves
// readers. It promises that what it acknowledged with acks=-1 is read back at
// its offset for ever, whatever happens to this process.
//
// One goroutine, the step loop in Run, owns all state (core): events come in
// through one channel, and all I/O is done by workers that report back as
// events. Request goroutines hand in operations and wait for their outcome;
// what needs the bucket to read is read on the request's own goroutine, from
// a plan that the loop made.
//
// The ordering rules of the write path stand in commit.go.
package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/tiered"
)

// Agent is one run of a stateless broker. New starts nothing; Run does.
type Agent struct {
	opts    Options
	ledgers *ledger.Client
	reader  *tiered.Reader
	metrics *metrics

	inbox   chan event
	memory  *semaphore.Weighted // bytes that may be unflushed
	reading *readMemory
	finding *semaphore.Weighted // records by their times
	queued  atomic.Int32        // appends that wait for memory
	trouble trouble

	// state that others read
	topics atomic.Pointer[topic.View]
	status atomic.Pointer[Status]

	onceReady sync.Once
	ready     chan struct{}

	// of Run
	workers    sync.WaitGroup
	workCtx    context.Context
	drainUntil time.Time
	ended      chan struct{}
}

// New checks the options.
func New(opts Options) (*Agent, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	a := &Agent{
		opts:    opts,
		inbox:   make(chan event, 256),
		memory:  semaphore.NewWeighted(int64(opts.Memory.Unflushed)),
		reading: newReadMemory(opts.Memory.Answers),
		finding: semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0))),
		ended:   make(chan struct{}),
		ready:   make(chan struct{}),
	}
	a.metrics = newMetrics(opts.Metrics)
	a.ledgers = ledger.NewClient(ledger.Options{
		Coordinator: opts.Coordinator, Bucket: opts.Bucket, Rand: a.jitter, Logger: opts.Log, Bug: opts.Plant,
		Stalled: a.stalled,
	})
	var err error
	if a.reader, err = tiered.New(tiered.Options{Bucket: opts.Bucket, Answered: a.heard, CacheBytes: int64(opts.Memory.Cache), WholeBytes: int64(opts.Memory.Whole), Metrics: opts.Metrics}); err != nil {
		return nil, err
	}
	a.topics.Store(topic.New().View())
	a.status.Store(&Status{})
	return a, nil
}

// ErrUnwritten is that the agent had to end with records that are in memory
// only. None of them was acknowledged with acks=-1.
var ErrUnwritten = errors.New("what it had buffered could not be written out, and is lost, but for what its producers send again")

// Run leads, writes and serves until ctx ends; then it flushes what is
// buffered and seals its shards, for Options.DrainTime at most: then the error
// may be ErrUnwritten. Any other means that it met something that it must not
// go on from.
func (a *Agent) Run(ctx context.Context) error {
	workCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.workCtx = workCtx
	c := newCore(a)
	err := c.loop(ctx)
	if lost := c.unwritten(); err == nil && lost > 0 && a.opts.DrainTime > 0 {
		why := "there was no time"
		if said := a.trouble.String(); said != "" {
			why = said
		}
		err = fmt.Errorf("%w: %d bytes: %s", ErrUnwritten, lost, why)
	}
	if c.failed == nil {
		c.leave(workCtx)
	}
	close(a.ended)
	c.abandon()
	stop()
	a.workers.Wait()
	a.reader.Close()
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// post hands an event to the loop.
func (a *Agent) post(ctx context.Context, e event) error {
	select {
	case a.inbox <- e:
	case <-a.ended:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-a.ended:
		a.abandonQueued() // the loop may have left before it saw the event
	default:
	}
	return nil
}

// abandonQueued answers appends that the loop has left in its inbox.
func (a *Agent) abandonQueued() {
	for {
		select {
		case e := <-a.inbox:
			if op, ok := e.(*appendOp); ok {
				op.abandon()
			}
		default:
			return
		}
	}
}

var errStopped = fmt.Errorf("agent has stopped: %w", siltstone.ErrUnavailable)

// Cluster is the id of the cluster that the agent is of.
func (a *Agent) Cluster() siltstone.ClusterID { return a.opts.Cluster }

// Topics is the newest view of the topics that this agent has folded.
func (a *Agent) Topics() *topic.View { return a.topics.Load() }

// wait waits for an operation, or for the end of the agent.
func (a *Agent) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.ended:
		select {
		case <-done:
			return nil
		default:
			return errStopped
		}
	}
}
