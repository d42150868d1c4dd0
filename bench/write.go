package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

const (
	// windowBytes bounds what all producers together have handed over and not
	// had acknowledged: Java's buffer.memory. Flat out, the acknowledgement
	// time is about this divided by the throughput.
	windowBytes = 32 << 20
	// ackTimeout fails a run instead of waiting for a server that has stopped.
	ackTimeout = time.Minute
)

// workload is what the cells of a run have in common, and where they go.
type workload struct {
	addr     string
	topic    string
	payload  payload
	duration time.Duration
}

// written is what producing gave: every record in it was acknowledged.
type written struct {
	produced []uint64 // records by producer
	elapsed  time.Duration
	acks     []time.Duration // per record, from the time it was due, sorted
}

func (w written) records() (n int64) {
	for _, p := range w.produced {
		n += int64(p)
	}
	return n
}

// gib is how much so many records are, keys and values.
func (l workload) gib(records int64) float64 {
	return float64(records) * float64(l.payload.recordBytes) / (1 << 30)
}

// write produces the cell's records with acks=all and waits until all are
// acknowledged.
func (l workload) write(ctx context.Context, c Cell) (written, error) {
	producers, err := l.producers(c)
	if err != nil {
		return written{}, err
	}
	defer closeProducers(producers)
	return l.run(ctx, producers, time.Now())
}

// producers are clients, each with a connection of its own.
func (l workload) producers(c Cell) (all []*producer, err error) {
	for i := range c.Producers {
		p, err := newProducer(l, c, i)
		if err != nil {
			closeProducers(all)
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func closeProducers(all []*producer) {
	for _, p := range all {
		p.client.Close()
	}
}

// run has producers write what their schedule, which begins at start, has for them.
func (l workload) run(ctx context.Context, producers []*producer, start time.Time) (written, error) {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range producers {
		g.Go(func() error { return p.run(ctx, start, l.duration) })
	}
	if err := g.Wait(); err != nil {
		return written{}, err
	}
	w := written{elapsed: time.Since(start)}
	for _, p := range producers {
		w.produced = append(w.produced, p.number)
		w.acks = append(w.acks, p.acks...)
	}
	slices.Sort(w.acks)
	return w, nil
}

type producer struct {
	id       uint32
	client   *kgo.Client
	payload  payload
	schedule schedule
	number   uint64 // of the next record

	// Owned by the client, which calls promises one at a time, until Flush returns.
	acks []time.Duration
	err  error
}

// newProducer is idempotent, as clients are by default, with up to five
// requests in flight.
func newProducer(l workload, c Cell, i int) (*producer, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(l.addr),
		kgo.DefaultProduceTopic(l.topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordPartitioner(kgo.StickyPartitioner()),
		kgo.MaxBufferedBytes(windowBytes / c.Producers),
		kgo.RecordDeliveryTimeout(ackTimeout),
	}
	if c.BatchBytes > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(c.BatchBytes), kgo.ProducerLinger(javaLinger))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	return &producer{
		id:       uint32(i),
		client:   client,
		payload:  l.payload,
		schedule: schedule{rate: c.Rate, producers: c.Producers, producer: i},
	}, nil
}

// run produces what is due before duration has passed, and waits for the acknowledgements.
func (p *producer) run(ctx context.Context, start time.Time, duration time.Duration) error {
	for ctx.Err() == nil {
		now := time.Since(start)
		due := p.schedule.due(p.number, now)
		if due >= duration {
			break
		}
		if due > now {
			time.Sleep(due - now)
		}
		p.produce(ctx, start.Add(due))
	}
	if err := p.client.Flush(ctx); err != nil {
		return err
	}
	return p.err
}

// produce hands one record over. Its time runs from when it was due, however
// long the client makes it wait: a slow server does not slow its own clock.
func (p *producer) produce(ctx context.Context, due time.Time) {
	r := &kgo.Record{Key: p.payload.key(p.id, p.number), Value: p.payload.value(p.id, p.number)}
	p.number++
	p.client.Produce(ctx, r, func(_ *kgo.Record, err error) {
		p.acks = append(p.acks, time.Since(due))
		if err != nil && p.err == nil {
			p.err = fmt.Errorf("producer %d: a record was not acknowledged: %w", p.id, err)
		}
	})
}

// schedule says when the records of one producer are due.
type schedule struct {
	rate                int // records per second of all producers; 0: as soon as one asks
	producers, producer int
}

// due is when the producer's numbered record is due, from the start; producers take turns.
func (s schedule) due(number uint64, now time.Duration) time.Duration {
	if s.rate == 0 {
		return now
	}
	turn := number*uint64(s.producers) + uint64(s.producer)
	return time.Duration(turn * uint64(time.Second) / uint64(s.rate))
}
