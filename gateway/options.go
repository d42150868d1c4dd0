package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options are what a handler needs.
type Options struct {
	Agent  Agent
	Log    Log
	Topics Topics
	// Random makes topic ids, and spreads records without a key over
	// partitions. It is called from many goroutines and must not repeat itself
	// from one run to the next.
	Random   func() uint64
	Logger   *slog.Logger        // nil: none
	Gatherer prometheus.Gatherer // what /metrics shows
	Metrics  prometheus.Registerer
	Limits   Limits
}

// Limits bound what requests can cost, and say what the server in front of the
// handler is capable of. Zero is the default of a field. A request whose
// context has a deadline ends before it.
type Limits struct {
	// BodyBytes is the largest body of a request (10 MiB), as it is sent and
	// when it is decompressed.
	BodyBytes int
	// ReplyBytes is after how many bytes a reply with records ends (4 MiB); the
	// first record is in it however large it is.
	ReplyBytes int
	// MostReplyBytes is what a reply cannot exceed: a record that does not fit
	// is an error. 0: there is no such limit.
	MostReplyBytes int
	// MemoryBytes is what requests may hold together in bodies and replies
	// (128 MiB). Beyond it they are told to come again.
	MemoryBytes int
	// Records are the most that one request appends (100,000).
	Records int
	// Wait is how long a read may wait for records (25 s).
	Wait time.Duration
	// Change is how long an append, or a change of the topics, may take (30 s).
	Change time.Duration
	// Drain is how long an append may still take when the server stops (4 s).
	Drain time.Duration
}

func (o *Options) validate() error {
	if o.Agent == nil || o.Log == nil || o.Topics == nil || o.Random == nil || o.Gatherer == nil {
		return errors.New("gateway: an agent, a log, topics, a source of random ids and metrics to show are needed")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &o.Limits
	ints := []struct {
		name  string
		value *int
		byDef int
	}{
		{"body bytes", &l.BodyBytes, 10 << 20},
		{"reply bytes", &l.ReplyBytes, 4 << 20},
		{"most reply bytes", &l.MostReplyBytes, 0},
		{"memory bytes", &l.MemoryBytes, 128 << 20},
		{"records", &l.Records, 100_000},
	}
	for _, i := range ints {
		if *i.value < 0 {
			return fmt.Errorf("gateway: %s: %d is negative", i.name, *i.value)
		}
		if *i.value == 0 {
			*i.value = i.byDef
		}
	}
	durations := []struct {
		value *time.Duration
		byDef time.Duration
	}{
		{&l.Wait, 25 * time.Second},
		{&l.Change, 30 * time.Second},
		{&l.Drain, 4 * time.Second},
	}
	for _, d := range durations {
		if *d.value == 0 {
			*d.value = d.byDef
		}
	}
	if l.BodyBytes >= l.MemoryBytes/(1+bodyFactor) { // compressed, and not
		return fmt.Errorf("gateway: a body of %d bytes does not fit into %d bytes for requests", l.BodyBytes, l.MemoryBytes)
	}
	return nil
}
