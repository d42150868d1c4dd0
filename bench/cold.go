package main

import (
	"context"
	"os"
	"syscall"
)

// coldTopic is to be read once the server has been restarted.
type coldTopic struct {
	workload workload
	written  written
	sample   int // its index, or nobodys
}

// nobodys figures are of what is read to warm up.
const nobodys = -1

// readCold restarts the server, with nothing of its data in memory, and reads
// each topic as far as it has not been read since.
func (t *turn) readCold(ctx context.Context) error {
	if err := t.s.stop(); err != nil {
		return err
	}
	if err := dropCaches(); err != nil {
		return err
	}
	if err := t.s.launch(ctx); err != nil {
		return err
	}
	return t.s.while(ctx, func(ctx context.Context) error {
		for _, topic := range t.cold {
			if err := dropCaches(); err != nil {
				return err
			}
			before, err := t.s.used(ctx)
			if err != nil {
				return err
			}
			elapsed, err := topic.workload.read(ctx, topic.written)
			if err != nil {
				return err
			}
			after, err := t.s.used(ctx)
			if err != nil {
				return err
			}
			if topic.sample == nobodys {
				continue
			}
			gib := topic.workload.gib(topic.written.records())
			sample := &t.samples[topic.sample]
			sample.ColdReadMiBPerSecond = gib * 1024 / elapsed.Seconds()
			sample.ColdReadCPUPerGiB = (after.cpu - before.cpu).Seconds() / gib
		}
		return nil
	})
}

// dropCaches writes dirty pages out, and has the kernel forget all that it can
// read again. Only root may.
func dropCaches() error {
	syscall.Sync()
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3\n"), 0)
}
