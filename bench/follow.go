package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// followed is what consumers found that read records as they were produced.
type followed struct {
	written
	delays    []time.Duration // per record and follower, from when it was due until a client had it, sorted
	delivered int64           // records to all followers
}

// writeFollowed is write at a fixed rate, with consumers that follow.
func (l workload) writeFollowed(ctx context.Context, c Cell) (f followed, err error) {
	producers, err := l.producers(c)
	if err != nil {
		return f, err
	}
	defer closeProducers(producers)
	followers := make([]*follower, c.Followers)
	for i := range followers {
		if followers[i], err = l.newFollower(c); err != nil {
			return f, err
		}
		defer followers[i].client.Close()
	}
	for _, one := range followers {
		if err := one.catchUp(ctx); err != nil {
			return f, err
		}
	}
	var all atomic.Int64 // that are to be delivered, once it is known
	all.Store(-1)
	start := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, one := range followers {
		g.Go(func() error { return one.follow(ctx, start, &all) })
	}
	g.Go(func() (err error) {
		f.written, err = l.run(ctx, producers, start)
		all.Store(f.records())
		return err
	})
	if err := g.Wait(); err != nil {
		return f, err
	}
	for _, one := range followers {
		f.delays = append(f.delays, one.delays...)
	}
	slices.Sort(f.delays)
	f.delivered = int64(len(f.delays))
	return f, nil
}

// follower is a consumer of all partitions, without a group.
type follower struct {
	client  *kgo.Client
	payload payload
	cell    Cell
	delays  []time.Duration
}

func (l workload) newFollower(c Cell) (*follower, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(l.addr),
		kgo.ConsumeTopics(l.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	return &follower{client: client, payload: l.payload, cell: c}, err
}

// catchUp reads what is there: of each partition what touch has written.
func (f *follower) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	for touches := 0; touches < f.cell.Partitions*touchesEach; {
		fetches := f.client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("catching up: %w", err)
		}
		touches += fetches.NumRecords()
	}
	return nil
}

// follow reads until it has all records, whose schedule began at start.
func (f *follower) follow(ctx context.Context, start time.Time, all *atomic.Int64) error {
	const look = 100 * time.Millisecond // whether that was all
	for last := time.Now(); all.Load() < 0 || int64(len(f.delays)) < all.Load(); {
		polled, cancel := context.WithTimeout(ctx, look)
		fetches := f.client.PollFetches(polled)
		cancel()
		now := time.Now()
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("following: %w", err)
		}
		if fetches.NumRecords() > 0 {
			last = now
		} else if now.Sub(last) > stallTimeout {
			return fmt.Errorf("following: %d of %d records, and no more come", len(f.delays), all.Load())
		}
		for r := range fetches.RecordsAll() {
			producer, number, err := f.payload.identify(r.Key, r.Value)
			if err != nil {
				return fmt.Errorf("following partition %d, offset %d: %w", r.Partition, r.Offset, err)
			}
			due := schedule{rate: f.cell.Rate, producers: f.cell.Producers, producer: int(producer)}.due(number, 0)
			f.delays = append(f.delays, now.Sub(start.Add(due)))
		}
	}
	return nil
}
