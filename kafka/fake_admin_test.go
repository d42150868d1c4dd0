package kafka

import (
	"context"
	"sync"
)

// fakeAdmin is the admin's side of the log.
type fakeAdmin struct {
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
