package kafka

import (
	"context"
	"sync"

	"github.com/siltstone-io/siltstone"
)

// fakeAdmin is the admin's side of the log.
type fakeAdmin struct {
	log *fakeLog

	mu     sync.Mutex
	nextID int64
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
