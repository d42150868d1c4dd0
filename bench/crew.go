package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// crew runs the members of one group, each in a goroutine, and knows when they
// are settled: as many as there should be, in one generation, with the whole
// topic shared among them. It belongs to one goroutine.
type crew struct {
	group     string
	topic     groupTopic
	heartbeat time.Duration

	ctx     context.Context // of the members; ends with the first error
	running *errgroup.Group
	cancel  context.CancelFunc
	news    chan news
	members []*hand
	last    time.Time // of the last news
}

// hand is a member of a crew.
type hand struct {
	*member           // its goroutine's
	stop    chan bool // true: leave; false: just end
	heard   news      // the last of it
}

// news is what a member says when it is assigned something, or has ended.
type news struct {
	of         *hand
	generation int32
	partitions int
	gone       bool
	at         time.Time
}

// newCrew starts nobody.
func newCrew(ctx context.Context, group string, topic groupTopic, heartbeat time.Duration) *crew {
	ctx, cancel := context.WithCancel(ctx)
	running, ctx := errgroup.WithContext(ctx)
	return &crew{group: group, topic: topic, heartbeat: heartbeat, ctx: ctx, running: running, cancel: cancel, news: make(chan news)}
}

// add starts a member on a connection, which stays the caller's.
func (c *crew) add(conn *connection, instance *string) {
	h := &hand{member: &member{group: c.group, topic: c.topic, conn: conn, instance: instance}, stop: make(chan bool, 1)}
	c.members = append(c.members, h)
	c.running.Go(func() error {
		err := h.run(c.ctx, c.heartbeat, c.tell)
		if err != nil {
			return fmt.Errorf("a member of group %s: %w", c.group, err)
		}
		c.tell(news{of: h, gone: true, at: time.Now()})
		return nil
	})
}

func (c *crew) tell(n news) {
	select {
	case c.news <- n:
	case <-c.ctx.Done():
	}
}

// run is a member's life: it joins whenever the group rebalances, of which it
// hears by its heartbeats.
func (h *hand) run(ctx context.Context, heartbeat time.Duration, tell func(news)) error {
	for {
		if err := h.enter(ctx); err != nil {
			return err
		}
		tell(news{of: h, generation: h.generation, partitions: h.assigned, at: time.Now()})
		for tick := time.NewTicker(heartbeat); ; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case leaves := <-h.stop:
				if !leaves {
					return nil
				}
				return h.leave(ctx)
			case <-tick.C:
			}
			err := h.heartbeat(ctx)
			if err == nil {
				continue
			}
			if !h.again(err) {
				return err
			}
			break // and join
		}
	}
}

// settled waits until so many members are, and says since when.
func (c *crew) settled(want int) (time.Time, error) {
	return c.await(fmt.Sprintf("%d members settled", want), func() bool { return c.areSettled(want) })
}

func (c *crew) areSettled(want int) bool {
	n, partitions := 0, 0
	for _, h := range c.members {
		if h.heard.gone {
			continue
		}
		if h.heard.generation == 0 || h.heard.generation != c.newest() {
			return false
		}
		n, partitions = n+1, partitions+h.heard.partitions
	}
	return n == want && partitions == int(c.topic.partitions)
}

func (c *crew) newest() (generation int32) {
	for _, h := range c.members {
		generation = max(generation, h.heard.generation)
	}
	return generation
}

// end stops a member, and waits until it has.
func (c *crew) end(h *hand, leaves bool) error {
	h.stop <- leaves
	_, err := c.await("a member has ended", func() bool { return h.heard.gone })
	return err
}

// await waits for news that make it so, unless it is, and returns since when.
func (c *crew) await(what string, so func() bool) (time.Time, error) {
	late := time.After(answerTimeout)
	for !so() {
		select {
		case n := <-c.news:
			n.of.heard, c.last = n, n.at
		case <-c.ctx.Done():
			return time.Time{}, c.running.Wait()
		case <-late:
			return time.Time{}, fmt.Errorf("group %s: not within %v: %s", c.group, answerTimeout, what)
		}
	}
	return c.last, nil
}

// dismiss ends all members, who leave or just stay away.
func (c *crew) dismiss(leave bool) error {
	for _, h := range c.members {
		if !h.heard.gone {
			h.stop <- leave
		}
	}
	_, err := c.await("all have ended", func() bool {
		for _, h := range c.members {
			if !h.heard.gone {
				return false
			}
		}
		return true
	})
	c.cancel()
	return err
}
