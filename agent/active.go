package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siltstone-io/siltstone/coordinator"
)

// Agents that share a coordinator take turns: one of them is active, and holds
// the register activeKey, which it writes every beatMost. Another takes it
// once it is free, as its holder has sealed its shards and left, or once it
// has had the same version for the lease, by the clock of who takes it. So two
// agents do not pull shards out of each other's hands. It is no more than
// that: whether anybody may lead is for the slots of the ledgers (commit.go),
// and a wrong suspicion costs a takeover, never data.
//
// An agent that cannot confirm for the lease that it holds the register
// refuses what only a leader may answer: another may have taken over. It goes
// on where it was if it turns out that nobody has.

const (
	activeKey = "active"
	// beatMost is the longest between two writes; half the lease if that is less.
	beatMost = 3 * time.Second
	// watchEvery is how often one that is not active looks at the register.
	watchEvery = time.Second
	// beatAgain is how soon one that failed is tried again.
	beatAgain = 500 * time.Millisecond
	// leaveTime is what giving the register back may take.
	leaveTime = 2 * time.Second
)

// activity is how an agent stands to the register.
type activity struct {
	on    bool      // it is active: it may lead, and answer as a leader
	since time.Time // so long
	alone bool      // for ever, as the coordinator is this agent's only

	held      coordinator.Version // of its own last write; empty: another's, or nobody's
	confirmed time.Time           // when the last write that went through was begun
	writes    []activeWrite       // of the last lease, whose outcome may be unknown

	holder   string // who holds the register instead, for people
	seen     coordinator.Version
	seenFrom time.Time // when that was seen first; zero: nothing was

	asking bool
	due    time.Time
}

type activeWrite struct {
	nonce coordinator.Nonce
	began time.Time
}

// holder is the value of the register.
type holder struct {
	Format      int    `json:"format"`
	Incarnation string `json:"incarnation"`
	Address     string `json:"address"`
}

const holderFormat = 1

func (c *core) lease() time.Duration {
	return time.Duration(c.Topics().Cluster().LeaseMS) * time.Millisecond
}

func (c *core) beatEvery() time.Duration { return min(beatMost, c.lease()/2) }

// beatTime is what one try may take: after one that hangs there is time for others.
func (c *core) beatTime() time.Duration { return c.lease() / 6 }

// mayElect says whether this agent may try to lead: it knows all topics that
// there were when it became active.
func (c *core) mayElect() bool {
	return c.activity.on && c.cluster.ready && !c.cluster.from.Before(c.activity.since)
}

// lookActive does what is due about the register. It comes before an event is
// handled: an agent that was frozen must know that it is late.
func (c *core) lookActive() {
	a := &c.activity
	if a.alone || c.draining {
		return
	}
	if a.on && c.now.Sub(a.confirmed) >= c.lease() {
		c.opts.Log.Warn("cannot confirm that this agent is the active one; it serves no more until it can")
		c.suspend()
	}
	if a.asking || c.now.Before(a.due) {
		return
	}
	a.asking = true
	a.writes = slices.DeleteFunc(a.writes, func(w activeWrite) bool { return c.now.Sub(w.began) >= c.lease() })
	e := &activeHeard{
		began: c.now, nonce: c.nonce(), held: a.held,
		old: a.seen, late: !a.seenFrom.IsZero() && c.now.Sub(a.seenFrom) >= c.lease(),
		value: holder{Format: holderFormat, Incarnation: c.opts.Incarnation.String(), Address: c.opts.Address},
	}
	a.writes = append(a.writes, activeWrite{e.nonce, e.began})
	timeout := c.beatTime()
	c.work(func(ctx context.Context) event {
		once, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		e.err = e.ask(once, c.opts.Coordinator)
		if ctx.Err() == nil {
			c.troubled("hold the register "+activeKey, e.err)
		}
		return e
	})
}

// activeDue is when lookActive has something to do with no event; zero if never.
func (c *core) activeDue() (due time.Time) {
	a := &c.activity
	if a.alone || c.draining {
		return due
	}
	if !a.asking {
		due = a.due
	}
	if expires := a.confirmed.Add(c.lease()); a.on && (due.IsZero() || expires.Before(due)) {
		due = expires
	}
	return due
}

// becomeActive begins to lead, once the topics are known as they are by now.
func (c *core) becomeActive() {
	c.activity.on, c.activity.since, c.statusStale = true, c.now, true
	c.loadCluster()
}

// suspend takes nothing from clients any more. What is buffered is kept, and
// still written: whether it may be is for the ledgers' slots. Groups begin anew
// later, with all sessions, as nobody's heartbeats are heard meanwhile.
func (c *core) suspend() {
	c.activity.on, c.statusStale = false, true
	c.refuseChanges()
	for _, s := range c.groups {
		if s.state == serving {
			c.deposeGroups(s)
		}
	}
}

// resign gives up what this agent leads, as another agent has become active.
// What is in flight is settled later.
func (c *core) resign() {
	c.suspend()
	for _, s := range c.shards {
		if s.state == serving {
			c.depose(s)
		}
	}
}

// activeHeard is what became of a look at the register.
type activeHeard struct {
	began     time.Time
	nonce     coordinator.Nonce
	value     holder
	held, old coordinator.Version // what this agent wrote last, or saw of another's
	late      bool                // that other is

	took  coordinator.Version // by a write that went through
	found coordinator.Value   // else, what is there
	err   error
}

// ask writes the register if it is this agent's, or may be taken.
func (e *activeHeard) ask(ctx context.Context, store coordinator.Coordinator) (err error) {
	version := e.held
	if version == "" {
		if e.found, err = store.Get(ctx, activeKey); err != nil {
			return err
		}
		free := e.found.Version == "" || e.found.Deleted || e.own()
		if !free && !(e.late && e.found.Version == e.old) {
			return nil
		}
		version = e.found.Version
	}
	text, err := json.Marshal(e.value)
	if err != nil {
		return err
	}
	e.took, err = store.Put(ctx, activeKey, text, version, e.nonce)
	if conflict := (*coordinator.VersionConflict)(nil); errors.As(err, &conflict) {
		e.found, err = conflict.Current, nil
	}
	return err
}

// own says whether what is there is this agent's, of a write whose outcome was
// unknown: nobody else has its incarnation.
func (e *activeHeard) own() bool {
	var h holder
	return !e.found.Deleted && json.Unmarshal(e.found.Data, &h) == nil && h.Incarnation == e.value.Incarnation
}

// ActiveAgent names the agent that holds the register, for people: empty if none
// does. It may have died since.
func ActiveAgent(ctx context.Context, store coordinator.Register) (string, error) {
	v, err := store.Get(ctx, activeKey)
	if err != nil || v.Version == "" || v.Deleted {
		return "", err
	}
	return holderOf(v), nil
}

// holderOf names who wrote a value of the register, for people.
func holderOf(v coordinator.Value) string {
	var h holder
	if err := json.Unmarshal(v.Data, &h); err != nil {
		return fmt.Sprintf("%q", v.Data)
	}
	return fmt.Sprintf("%s, incarnation %s", h.Address, h.Incarnation)
}

func (e *activeHeard) handle(c *core) {
	a := &c.activity
	a.asking, c.statusStale = false, true
	switch {
	case e.err != nil:
		a.due = c.now.Add(beatAgain)
	case e.took != "":
		a.held, a.due = e.took, e.began.Add(c.beatEvery())
		c.confirm(e.began)
	case e.own(): // of a write that was unknown, and has landed since it began
		a.held, a.due = e.found.Version, c.now
		if i := slices.IndexFunc(a.writes, func(w activeWrite) bool { return w.nonce == e.found.Nonce }); i >= 0 {
			c.confirm(a.writes[i].began)
		}
	default:
		a.held, a.due = "", c.now.Add(watchEvery)
		if a.seenFrom.IsZero() || e.found.Version != a.seen {
			a.seen, a.seenFrom, a.holder = e.found.Version, c.now, holderOf(e.found)
		}
		if e.held != "" {
			c.opts.Log.Warn("another agent has become the active one", "holder", a.holder)
			c.resign()
		}
	}
}

// confirm notes that this agent held the register at some time after a write began.
func (c *core) confirm(began time.Time) {
	a := &c.activity
	a.seenFrom = time.Time{}
	if began.After(a.confirmed) {
		a.confirmed = began
	}
	if !a.on && c.now.Sub(began) < c.lease() {
		c.becomeActive()
	}
}

// leave gives the register back, so that the next agent need not wait for the
// lease: when the shards are sealed.
func (c *core) leave(ctx context.Context) {
	a := &c.activity
	if a.alone || a.held == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if err := c.opts.Coordinator.Delete(ctx, activeKey, a.held, c.nonce()); err != nil {
		c.opts.Log.Warn("the next agent waits for the lease, as this one could not say that it leaves", "err", err)
	}
}

// whyNotActive is for people.
func (a *activity) whyNotActive() string {
	if a.held == "" && !a.seenFrom.IsZero() {
		return fmt.Sprintf("another agent is active: %s", a.holder)
	}
	return "has not confirmed yet that it is the active agent"
}
