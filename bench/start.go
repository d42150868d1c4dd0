package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// settling is how long a server may tidy up after a load before it is idle.
	settling = 30 * time.Second
	idleTime = 10 * time.Second
)

// startTurn is a system while it is measured how it starts and rests.
type startTurn struct{ *figureTurn }

// measureStart looks when a system that was started on an empty folder takes a
// record, leaves it alone, loads it, leaves it alone again, kills it and starts
// it again.
func measureStart(ctx context.Context, figures *figureTurn) error {
	t := &startTurn{figures}
	t.o.say(t.round, t.system, "starting and resting")
	topic, err := t.firstRecord(ctx, "")
	if err != nil {
		return err
	}
	t.add(writable+", empty folder", "ms", millis(time.Since(t.s.began)))
	if err := t.idle(ctx, "fresh"); err != nil {
		return err
	}
	l := workload{addr: t.s.addr, topic: topic, payload: newPayload(1024), duration: t.o.duration}
	if err := t.s.while(ctx, func(ctx context.Context) error {
		_, err := l.write(ctx, Cell{RecordBytes: 1024, Partitions: 1, Producers: 16, BatchBytes: javaBatchBytes})
		return err
	}); err != nil {
		return err
	}
	time.Sleep(settling)
	if err := t.idle(ctx, "after a load"); err != nil {
		return err
	}
	if err := t.s.kill(); err != nil {
		return err
	}
	if err := t.s.launch(ctx); err != nil {
		return err
	}
	if _, err := t.firstRecord(ctx, topic); err != nil {
		return err
	}
	t.add(writable+", after kill -9", "ms", millis(time.Since(t.s.began)))
	return nil
}

// firstRecord waits until a record is acknowledged, of a new topic if none is named.
func (t *startTurn) firstRecord(ctx context.Context, topic string) (string, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.s.addr), kgo.AlwaysRetryEOF(), kgo.RecordDeliveryTimeout(startTimeout),
		kgo.MetadataMinAge(10*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return readyInterval }))
	if err != nil {
		return "", err
	}
	defer client.Close()
	if topic == "" {
		if topic, err = createTopic(ctx, kadm.NewClient(client), 1); err != nil {
			return "", err
		}
	}
	err = client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr()
	return topic, err
}

// idle measures a server that nobody asks anything.
func (t *startTurn) idle(ctx context.Context, when string) error {
	before, err := t.s.usage()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleTime):
	}
	after, err := t.s.usage()
	if err != nil {
		return err
	}
	rss, err := t.s.rss()
	if err != nil {
		return err
	}
	t.add(idleCPU+", "+when, "% of a core", 100*(after.cpu-before.cpu).Seconds()/idleTime.Seconds())
	t.add(idleRSS+", "+when, "MiB", float64(rss)/(1<<20))
	return nil
}
