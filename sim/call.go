package sim

import (
	"context"
	"errors"
	"strings"
	"time"
)

// What a node is told when the world is against it.
var (
	errFailed = errors.New("sim: the store failed")
	errSilent = errors.New("sim: no answer")
	errDead   = errors.New("sim: this node is dead")
)

// A call is one thing that a node asks of a store. The goroutine that asks
// waits for the answer, the driver does the rest.
type call struct {
	node   *node
	link   string // what it is about; a node's calls on one link are numbered
	detail string
	write  bool
	store  *trouble // the weather that it meets
	// apply does it, in the driver, and keeps what came of it for the caller.
	apply func() error
	// unknown wraps the error of a write of which nothing is certain.
	unknown func(error) error

	ctx      context.Context
	answered bool
	survives bool // its landing survives its sender
	result   error
	done     chan struct{}
}

// do asks and waits. The call's results are the caller's to read only when it
// returns nil or what apply returned.
func (c *call) do(ctx context.Context) error {
	c.ctx, c.done = ctx, make(chan struct{})
	if err := ctx.Err(); err != nil {
		return err
	}
	if !c.node.put(c) {
		c.abandon()
	}
	stop := context.AfterFunc(ctx, func() { c.node.put(&giveUp{c, context.Cause(ctx)}) })
	<-c.done
	stop()
	return c.result
}

func (c *call) from() (*node, string, string) { return c.node, c.link, c.detail }

func (c *call) happen() {
	n, w := c.node, c.node.world
	link := n.name + " " + c.link
	number := w.number(link)
	d := newDice(w.seed, link, number)
	c.survives = d.chance(0.5)
	f := c.store.fateOf(d, c.write)
	if w.offline[n.host] || w.throttled[n.host] && strings.HasPrefix(c.link, "append ") {
		f = fate{name: "goes nowhere", lands: -1, answers: d.duration(time.Second, 5*time.Second), told: toldFailed}
		if c.write {
			f.told = toldUnknown
		}
	}
	w.tracef("%s %s #%d: %s", link, c.detail, number, f.name)
	var came error
	land := func() {
		if n.dead && !c.survives {
			return
		}
		apply := func() {
			came = c.apply()
			w.tracef("%s %s #%d lands: %v", link, c.detail, number, came)
		}
		if c.write {
			w.raise(c.link, d)
			if n.dead && d.chance(0.5) {
				w.ghosts[c.link] = append(w.ghosts[c.link], apply)
				return
			}
		}
		apply()
		if c.write && !n.dead && d.chance(w.weather.crash) {
			w.tracef("%s dies as it lands", n.name)
			n.crash()
		}
	}
	answer := func() {
		switch f.told {
		case toldResult:
			c.answer(came)
		case toldFailed:
			c.answer(errFailed)
		case toldUnknown:
			c.answer(c.unknown(errSilent))
		}
	}
	var landsAt time.Time
	if f.lands >= 0 {
		landsAt = w.after(f.lands, land)
	}
	at := w.now.Add(f.answers)
	if f.told == toldResult && at.Before(landsAt.Add(time.Millisecond)) {
		at = landsAt.Add(time.Millisecond)
	}
	w.notBefore(at, func() { n.receive(answer) })
}

// raise lands what dead nodes have left under way on a link, now that another
// write is about to land on it.
func (w *world) raise(link string, d *dice) {
	for len(w.ghosts[link]) > 0 && d.chance(0.7) {
		apply := w.ghosts[link][0]
		w.ghosts[link] = w.ghosts[link][1:]
		apply()
	}
}

// abandon is for a call whose node is dead: nobody answers it, and it ends
// with its context.
func (c *call) abandon() {
	c.answered = true
	context.AfterFunc(c.ctx, func() {
		c.result = c.unknown(errDead)
		close(c.done)
	})
}

// answer lets the goroutine that asked go on.
func (c *call) answer(err error) {
	if c.answered {
		return
	}
	c.answered = true
	c.result = err
	if err != nil {
		c.node.world.tracef("%s %s %s answered: %v", c.node.name, c.link, c.detail, err)
	}
	c.node.forget(c)
	close(c.done)
}

// A giveUp is the end of a call's context.
type giveUp struct {
	call  *call
	cause error
}

func (g *giveUp) from() (*node, string, string) {
	return g.call.node, g.call.link, g.call.detail + " given up"
}

// happen answers in an event of its own: contexts that end together would
// otherwise wake their goroutines together.
func (g *giveUp) happen() {
	c := g.call
	c.node.world.after(0, func() {
		c.node.receive(func() { c.answer(c.unknown(g.cause)) })
	})
}
