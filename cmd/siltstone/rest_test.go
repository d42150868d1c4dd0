package main

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRest: memory is given back once after each load, and not during one, nor
// for the little that a process at rest allocates.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var allocated atomic.Uint64
		var given atomic.Int32
		r := &rest{allocated: allocated.Load, giveBack: func() { given.Add(1) }}
		ended := make(chan error)
		go func() { ended <- r.watch(ctx) }()
		synctest.Wait()
		for _, step := range []struct {
			bytes uint64 // that are allocated until it looks again
			given int32
		}{
			{loadBytes / 2, 0}, {0, 0}, // too little
			{loadBytes, 0}, {loadBytes, 0}, {restBytes + 1, 0}, {restBytes, 1}, {0, 1}, {0, 1},
			{loadBytes, 1}, {0, 2}, {restBytes, 2}, {restBytes, 2},
		} {
			allocated.Add(step.bytes)
			time.Sleep(restEvery)
			synctest.Wait()
			if n := given.Load(); n != step.given {
				t.Fatalf("after %d bytes in all: given back %d times, want %d", allocated.Load(), n, step.given)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	before := heapAllocated()
	kept = make([]byte, loadBytes)
	if got := heapAllocated() - before; got < loadBytes {
		t.Errorf("%d bytes allocated, want %d", got, loadBytes)
	}
	kept = nil
}

var kept []byte // by the test, on the heap
