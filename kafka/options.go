package kafka

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a server.
type Options struct {
	Log     Log
	Groups  Groups
	Admin   Admin
	Topics  Topics
	Cluster Cluster
	// LogDir is the bucket's URL, for people; empty: "bucket". It is the one
	// log dir that clients are shown.
	LogDir string
	// Random makes topic and fetch session ids. It is called from many
	// goroutines and must not repeat itself from one run to the next.
	Random  func() uint64
	Logger  *slog.Logger          // nil: none
	Metrics prometheus.Registerer // nil: none
	Limits  Limits
}

// Limits bound what clients can cost. Zero is the default of a field.
type Limits struct {
	// Connections open at once (10,000); further ones are closed at once.
	Connections int
	// FrameBytes is the largest request (100 MiB, as socket.request.max.bytes).
	FrameBytes int
	// MemoryBytes is what requests may hold together, from when they are there
	// until they are answered (256 MiB). Beyond it they wait, and what comes
	// after them is not read. Frames that are arriving may hold an eighth as
	// much, by what has come of them, and one more frame beside (arrive.go).
	// One other than Produce counts as many times its length as its API's
	// weight says, so it can be no longer than MemoryBytes / weight.
	MemoryBytes int
	// AnswerBytes is what answers as large as the cluster (Metadata,
	// DescribeConfigs) may hold until they are read (as MemoryBytes).
	AnswerBytes int
	// InFlight is how many requests of one connection may wait for their
	// answer (128); what comes after waits unread.
	InFlight int
	// FetchBytes is the most record bytes in one answer (55 MiB, as
	// fetch.max.bytes); one batch may be more.
	FetchBytes int
	// FetchSessions are kept at most (1000, as
	// max.incremental.fetch.session.cache.slots), FetchSessionPartitions all
	// together (250,000).
	FetchSessions, FetchSessionPartitions int

	// FirstFrame is how long a new connection may take for its first request (30 s).
	FirstFrame time.Duration
	// Frame is how long a request may take from its first byte to its last (30 s).
	Frame time.Duration
	// Idle is how long a connection without requests stays open (10 min, as connections.max.idle.ms).
	Idle time.Duration
	// Write is how long a client may take to read a MiB of an answer (30 s).
	Write time.Duration
	// Drain is how long requests in flight have to end when the server stops
	// (5 s); negative: none.
	Drain time.Duration
}

func (o *Options) validate() error {
	if o.Log == nil || o.Groups == nil || o.Admin == nil || o.Topics == nil || o.Cluster == nil || o.Random == nil {
		return errors.New("kafka: a log, groups, an admin, topics, a cluster and a source of random ids are needed")
	}
	if o.LogDir == "" {
		o.LogDir = "bucket"
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
		{"connections", &l.Connections, 10_000},
		{"frame bytes", &l.FrameBytes, 100 << 20},
		{"memory bytes", &l.MemoryBytes, 256 << 20},
		{"answer bytes", &l.AnswerBytes, 0},
		{"in flight", &l.InFlight, 128},
		{"fetch bytes", &l.FetchBytes, 55 << 20},
		{"fetch sessions", &l.FetchSessions, 1000},
		{"fetch session partitions", &l.FetchSessionPartitions, 250_000},
	}
	for _, i := range ints {
		if *i.value < 0 {
			return fmt.Errorf("kafka: %s: %d is negative", i.name, *i.value)
		}
		if *i.value == 0 {
			*i.value = i.byDef
		}
	}
	if l.AnswerBytes == 0 {
		l.AnswerBytes = l.MemoryBytes
	}
	durations := []struct {
		value *time.Duration
		byDef time.Duration
	}{
		{&l.FirstFrame, 30 * time.Second},
		{&l.Frame, 30 * time.Second},
		{&l.Idle, 10 * time.Minute},
		{&l.Write, 30 * time.Second},
		{&l.Drain, 5 * time.Second},
	}
	for _, d := range durations {
		if *d.value == 0 {
			*d.value = d.byDef
		}
	}
	if l.FrameBytes > l.MemoryBytes {
		return fmt.Errorf("kafka: a frame of %d bytes does not fit into %d bytes for requests", l.FrameBytes, l.MemoryBytes)
	}
	return nil
}
