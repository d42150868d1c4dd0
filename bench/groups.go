package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"
)

// groupTurn is a system while its groups are measured.
type groupTurn struct {
	*figureTurn
	topic groupTopic
}

// measureGroups measures a system's groups, and then stops it, where its
// ledgers can be read.
func measureGroups(ctx context.Context, figures *figureTurn) error {
	t := &groupTurn{figureTurn: figures}
	var windows []window
	if err := t.s.while(ctx, func(ctx context.Context) (err error) { windows, err = t.run(ctx); return err }); err != nil {
		return err
	}
	if t.s.database == "" {
		return nil
	}
	if err := t.s.stop(); err != nil {
		return err
	}
	return t.addAppends(ctx, windows)
}

// run measures all but what only the ledgers tell, of which it returns when it
// was measured: by the name of the figures.
func (t *groupTurn) run(ctx context.Context) (windows []window, err error) {
	if err := t.prepare(ctx); err != nil {
		return nil, fmt.Errorf("a topic of %d partitions: %w", t.o.groupPartitions, err)
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"memory", t.memory},
		{"warming up", t.warmUp},
		{"rebalancing", t.rebalance},
		{"rebalancing with clients", t.rebalanceClients},
		{"committing", func(ctx context.Context) (err error) { windows, err = t.commit(ctx); return err }},
		{"heartbeats", t.heartbeats},
	} {
		t.o.say(t.round, t.system, step.name)
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return windows, nil
}

// prepare makes the topic, and waits until each partition has a leader and
// there can be groups (Kafka makes a topic for them first).
func (t *groupTurn) prepare(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.s.addr))
	if err != nil {
		return err
	}
	defer client.Close()
	t.topic.partitions = int32(t.o.groupPartitions)
	if t.topic.name, err = createTopic(ctx, kadm.NewClient(client), t.topic.partitions); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	q := kmsg.NewPtrFindCoordinatorRequest()
	q.CoordinatorKeys = []string{"any"}
	if _, err := q.RequestWith(ctx, client); err != nil {
		return err
	}
	c, conns, err := t.form(ctx, "first", memoryMembers)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	return c.dismiss(true)
}

// warmUp does a little of everything: a JVM compiles what is used often.
func (t *groupTurn) warmUp(ctx context.Context) error {
	c, conns, err := t.form(ctx, "warm", t.o.members)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	for deadline := time.Now().Add(t.o.warmUp); time.Now().Before(deadline); {
		if err := t.restart(c, nil); err != nil {
			return err
		}
	}
	if err := c.dismiss(true); err != nil {
		return err
	}
	committers, err := t.committers(ctx, spreadGroups("warm", t.o.groups))
	if err != nil {
		return err
	}
	defer committers.close()
	_, err = committers.run(ctx, time.Second, t.o.warmUp)
	return err
}

// form starts a group of so many members and waits until it has settled.
func (t *groupTurn) form(ctx context.Context, group string, members int) (*crew, []*connection, error) {
	conns, err := t.connect(ctx, members)
	if err != nil {
		return nil, nil, err
	}
	c := newCrew(ctx, group, t.topic, quickHeartbeat)
	for _, conn := range conns {
		c.add(conn, nil)
	}
	_, err = c.settled(members)
	return c, conns, err
}

func (t *groupTurn) connect(ctx context.Context, n int) (conns []*connection, err error) {
	for range n {
		c, err := connect(ctx, t.s.addr)
		if err != nil {
			closeAll(conns)
			return nil, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}

func closeAll(conns []*connection) {
	for _, c := range conns {
		c.close()
	}
}

// median of some times, in ms.
func median(times []time.Duration) float64 {
	var all []float64
	for _, t := range times {
		all = append(all, millis(t))
	}
	slices.Sort(all)
	return middle(all)
}

// profiled measures, and keeps a CPU profile of it if there is to be one.
func (t *groupTurn) profiled(ctx context.Context, name string, measure func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return measure(ctx) })
	if t.o.profileDir != "" && t.s.profile != "" {
		g.Go(func() error { return t.o.saveProfile(ctx, t.s, name, t.o.duration) })
	}
	return g.Wait()
}
