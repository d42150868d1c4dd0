package kafka

import (
	"context"
	"slices"
	"sync"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic/topictest"
)

// fakeAdmin is the admin's side of the log.
type fakeAdmin struct {
	log    *fakeLog
	topics *topictest.Topics

	mu     sync.Mutex
	nextID int64
	known  map[siltstone.TopicPartition][]siltstone.ProducerState
	down   error // what everything says
}

func (a *fakeAdmin) failWith(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = err
}

func (a *fakeAdmin) NextProducerID(context.Context) (int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down != nil {
		return -1, a.down
	}
	a.nextID++
	return a.nextID - 1, nil
}

func (a *fakeAdmin) Trim(_ context.Context, r *siltstone.TrimRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down != nil {
		return a.down
	}
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	for i := range r.Parts {
		part := &r.Parts[i]
		p := a.log.partition(part.Partition)
		start := part.Start
		if start == siltstone.TrimAll {
			start = p.next
		}
		if a.log.fail != nil {
			part.Err = a.log.fail(part.Partition)
		}
		if part.Err == nil && (start < 0 || start > p.next) {
			part.Err = siltstone.ErrOffsetOutOfRange
		}
		if part.LogStart = -1; part.Err == nil {
			p.start = max(p.start, start)
			part.LogStart = p.start
		}
	}
	return nil
}

func (a *fakeAdmin) Producers(_ context.Context, tp siltstone.TopicPartition) ([]siltstone.ProducerState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[tp], a.down
}

// Sizes is that of what the fake log, which leads all, has of partitions; the
// last batch of one is not flushed.
func (a *fakeAdmin) Sizes(_ context.Context, named []siltstone.TopicPartition) ([]siltstone.PartitionSize, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down != nil {
		return nil, a.down
	}
	if named == nil {
		for _, t := range a.topics.Topics().All() {
			for n := range t.Partitions {
				named = append(named, siltstone.TopicPartition{Topic: t.ID, Partition: n})
			}
		}
	}
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	sizes := make([]siltstone.PartitionSize, 0, len(named))
	for _, tp := range named {
		size := siltstone.PartitionSize{Partition: tp}
		for _, b := range a.log.partition(tp).batches {
			size.Stored += size.Buffered
			size.Buffered = int64(len(b))
		}
		sizes = append(sizes, size)
	}
	slices.Reverse(sizes)
	return sizes, nil
}
