package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// prepare makes a topic that is ready to be measured.
func (t *turn) prepare(ctx context.Context, l *workload, c Cell) (err error) {
	if l.topic, err = createTopic(ctx, t.admin, int32(c.Partitions)); err != nil {
		return err
	}
	if err := l.touch(ctx, c.Partitions); err != nil {
		return err
	}
	return t.s.settle(ctx)
}

// settle waits until what is left of earlier cells is done, which is not the
// next one's: dirty pages, garbage, and a server that makes and deletes
// partitions after it has said that it did.
func (s *server) settle(ctx context.Context) error {
	syscall.Sync()
	runtime.GC()
	const look, atMost, busy = 500 * time.Millisecond, 20 * time.Second, 0.1 // of a core, each server
	for begin := time.Now(); s.pid != 0 && time.Since(begin) < atMost; {
		before, err := s.usage()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
		after, err := s.usage()
		if err != nil || (after.cpu-before.cpu).Seconds() < busy*look.Seconds()*float64(len(s.all())) {
			return err
		}
	}
	return nil
}

// createTopic makes a topic, and waits until each of its partitions has a leader
// that knows that it is: a client that asks too early waits for 5 s.
func createTopic(ctx context.Context, admin *kadm.Client, partitions int32) (name string, err error) {
	name = fmt.Sprintf("bench-%d", time.Now().UnixNano())
	if _, err := admin.CreateTopic(ctx, partitions, -1, nil, name); err != nil {
		return "", fmt.Errorf("creating a topic: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		ends, err := admin.ListEndOffsets(ctx, name)
		if err == nil && ends.Error() == nil && len(ends[name]) == int(partitions) {
			return name, nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("waiting for leaders of %d partitions: %w", partitions, errors.Join(err, ends.Error()))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
