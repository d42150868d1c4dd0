package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// stallTimeout fails a run instead of waiting for records that do not come.
const stallTimeout = 30 * time.Second

// read has one consumer of all partitions, without a group, read the topic from
// its start until it has seen every record that was produced, once, with the
// value and in the order of offsets that it must have. It returns how long that took.
func (l workload) read(ctx context.Context, w written) (time.Duration, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(l.addr),
		kgo.ConsumeTopics(l.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	start, seen, next := time.Now(), newSeen(w.produced), map[int32]int64{}
	for seen.missing > 0 {
		polled, cancel := context.WithTimeout(ctx, stallTimeout)
		fetches := client.PollFetches(polled)
		cancel()
		if err := fetches.Err(); err != nil {
			return 0, fmt.Errorf("reading back, with %d records to come: %w", seen.missing, err)
		}
		for r := range fetches.RecordsAll() {
			if r.Offset != next[r.Partition] {
				return 0, fmt.Errorf("partition %d: offset %d where %d should be", r.Partition, r.Offset, next[r.Partition])
			}
			next[r.Partition]++
			if len(r.Key) == 0 { // a touch
				continue
			}
			producer, number, err := l.payload.identify(r.Key, r.Value)
			if err == nil {
				err = seen.tick(producer, number)
			}
			if err != nil {
				return 0, fmt.Errorf("partition %d, offset %d: %w", r.Partition, r.Offset, err)
			}
		}
	}
	return time.Since(start), nil
}
