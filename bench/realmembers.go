package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// clients are members that are whole franz-go clients: they say whether what
// light members measure is what clients see.
type clients struct {
	topic    groupTopic
	mu       sync.Mutex
	assigned map[*kgo.Client]int // partitions
	changed  chan struct{}       // holds one token after each change
	last     time.Time           // of the last change
}

// rebalanceClients measures what rebalance does, with clients.
func (t *groupTurn) rebalanceClients(context.Context) error {
	if !t.o.realMembers {
		return nil
	}
	all := &clients{topic: t.topic, assigned: map[*kgo.Client]int{}, changed: make(chan struct{}, 1)}
	defer all.close()
	title := fmt.Sprintf("%d franz-go clients, %d partitions: ", t.o.members, t.o.groupPartitions)
	var first *kgo.Client
	for _, step := range []struct {
		name string
		do   func() error
		want int
	}{
		{"first join " + toAllAssigned, func() error {
			for range t.o.members {
				cl, err := all.start(t.s.addr)
				if err != nil {
					return err
				}
				first = cl
			}
			return nil
		}, t.o.members},
		{"one leaves, " + toAllAssigned, func() error { all.stop(first); return nil }, t.o.members - 1},
		{"one joins, " + toAllAssigned, func() error { _, err := all.start(t.s.addr); return err }, t.o.members},
	} {
		start := time.Now()
		if err := step.do(); err != nil {
			return err
		}
		at, err := all.settled(step.want)
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		t.add(title+step.name, "ms", millis(at.Sub(start)))
	}
	return nil
}

func (c *clients) start(addr string) (*kgo.Client, error) {
	change := func(sign int) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, cl *kgo.Client, parts map[string][]int32) {
			c.change(func() { c.assigned[cl] += sign * len(parts[c.topic.name]) })
		}
	}
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(addr), kgo.ConsumerGroup("clients"), kgo.ConsumeTopics(c.topic.name),
		kgo.Balancers(kgo.RangeBalancer()), kgo.HeartbeatInterval(quickHeartbeat),
		kgo.OnPartitionsAssigned(change(1)), kgo.OnPartitionsRevoked(change(-1)), kgo.OnPartitionsLost(change(-1)),
	)
	if err == nil {
		c.change(func() { c.assigned[cl] += 0 })
	}
	return cl, err
}

func (c *clients) change(do func()) {
	c.mu.Lock()
	do()
	c.last = time.Now()
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// stop leaves the group.
func (c *clients) stop(cl *kgo.Client) {
	cl.Close()
	c.change(func() { delete(c.assigned, cl) })
}

// settled waits until so many clients have all partitions among them, and says since when.
func (c *clients) settled(want int) (time.Time, error) {
	late := time.After(answerTimeout)
	for {
		select {
		case <-c.changed:
		case <-late:
			return time.Time{}, fmt.Errorf("not within %v", answerTimeout)
		}
		c.mu.Lock()
		with, partitions := 0, 0
		for _, n := range c.assigned {
			partitions += n
			if n > 0 {
				with++
			}
		}
		last := c.last
		c.mu.Unlock()
		if with == want && partitions == int(c.topic.partitions) {
			return last, nil
		}
	}
}

func (c *clients) close() {
	c.mu.Lock()
	var all []*kgo.Client
	for cl := range c.assigned {
		all = append(all, cl)
	}
	c.mu.Unlock()
	for _, cl := range all {
		cl.Close()
	}
}
