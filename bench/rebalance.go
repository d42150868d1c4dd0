package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// quickHeartbeat is how often members that rebalance ask whether they should:
	// clients ask every 3 s, and figures would be of that.
	quickHeartbeat = 100 * time.Millisecond
	// repeats of what takes a moment; figures are medians of them.
	repeats = 10
)

// restart ends that member of a settled group who is longest in it, and starts
// another on its connection. One with an instance id only stays away; others leave.
func (t *groupTurn) restart(c *crew, instance *string) error {
	old := c.members[0]
	if err := c.end(old, instance == nil); err != nil {
		return err
	}
	c.members = slices.Delete(c.members, 0, 1)
	c.add(old.conn, instance)
	_, err := c.settled(len(c.members))
	return err
}

// rebalance measures a group of many members.
func (t *groupTurn) rebalance(ctx context.Context) error {
	title := fmt.Sprintf("%d members, %d partitions: ", t.o.members, t.o.groupPartitions)
	changes := []string{"first join ", "one leaves, ", "one joins, "}
	took := make([][]time.Duration, len(changes))
	for i := range repeats {
		times, err := t.formAndChange(ctx, fmt.Sprintf("formed-%d", i), i%t.o.members)
		if err != nil {
			return err
		}
		for change, d := range times {
			took[change] = append(took[change], d)
		}
	}
	for i, change := range changes {
		t.add(title+change+toAllAssigned, "ms", median(took[i]))
	}
	for _, static := range []bool{false, true} {
		took, err := t.rollingRestart(ctx, static)
		if err != nil {
			return err
		}
		name := rollingRestart
		if static {
			name = "static members, " + name
		}
		t.add(title+name, "ms", millis(took))
	}
	return nil
}

// formAndChange forms a group, takes one member out, and lets one in: what each took.
func (t *groupTurn) formAndChange(ctx context.Context, group string, one int) (took [3]time.Duration, err error) {
	conns, err := t.connect(ctx, t.o.members)
	if err != nil {
		return took, err
	}
	defer closeAll(conns)
	c := newCrew(ctx, group, t.topic, quickHeartbeat)
	for i, change := range []struct {
		do   func() error
		want int
	}{
		{func() error {
			for _, conn := range conns {
				c.add(conn, nil)
			}
			return nil
		}, t.o.members},
		{func() error { return c.end(c.members[one], true) }, t.o.members - 1},
		{func() error { c.add(conns[one], nil); return nil }, t.o.members},
	} {
		start := time.Now()
		if err := change.do(); err != nil {
			return took, err
		}
		at, err := c.settled(change.want)
		if err != nil {
			return took, err
		}
		took[i] = at.Sub(start)
	}
	return took, c.dismiss(true)
}

// rollingRestart restarts each member once, one after the other.
func (t *groupTurn) rollingRestart(ctx context.Context, static bool) (time.Duration, error) {
	conns, err := t.connect(ctx, t.o.members)
	if err != nil {
		return 0, err
	}
	defer closeAll(conns)
	c := newCrew(ctx, fmt.Sprintf("rolling-%v", static), t.topic, quickHeartbeat)
	instances := make([]*string, len(conns))
	for i, conn := range conns {
		if static {
			instances[i] = kmsg.StringPtr(fmt.Sprintf("instance-%d", i))
		}
		c.add(conn, instances[i])
	}
	if _, err := c.settled(t.o.members); err != nil {
		return 0, err
	}
	start := time.Now()
	for i := range t.o.members {
		if err := t.restart(c, instances[i]); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	return took, c.dismiss(true)
}
