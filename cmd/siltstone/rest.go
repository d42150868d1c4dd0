package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// rest gives memory back to the system once the process has come to rest. Go
// collects when the heap has doubled, or after two minutes, so what a load
// leaves would be held for as long as nobody asks for anything.
type rest struct {
	allocated func() uint64 // bytes, since the start
	giveBack  func()
}

const (
	restEvery = 5 * time.Second
	// restBytes are what a process at rest allocates meanwhile, at most: timers,
	// a page of metrics.
	restBytes = 1 << 20
	// loadBytes are worth collecting.
	loadBytes = 16 << 20
)

func newRest() *rest { return &rest{allocated: heapAllocated, giveBack: debug.FreeOSMemory} }

func heapAllocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// watch looks now and then, until ctx ends.
func (r *rest) watch(ctx context.Context) error {
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	given := r.allocated() // when memory was last given back
	for before := given; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := r.allocated()
		if now-before <= restBytes && now-given >= loadBytes {
			r.giveBack()
			given = now
		}
		before = now
	}
}
