package gateway

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// bodyFactor bounds the memory that records of a body take until they are
// appended, in lengths of the body: its buffer, and the batches as they grow.
const bodyFactor = 4

// memory is what requests may hold together.
type memory struct {
	free *semaphore.Weighted
	held atomic.Int64
}

// holding is what one request holds.
type holding struct {
	of    *memory
	bytes int64
}

// grow holds more, or says that there is no more.
func (h *holding) grow(bytes int) error {
	if !h.of.free.TryAcquire(int64(bytes)) {
		return fmt.Errorf("%w: requests hold all the memory that is for them", errBusy)
	}
	h.bytes += int64(bytes)
	h.of.held.Add(int64(bytes))
	return nil
}

func (h *holding) release() {
	h.of.held.Add(-h.bytes)
	h.of.free.Release(h.bytes)
	h.bytes = 0
}
