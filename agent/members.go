package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// Agents that share the coordinator know of each other by registers: each holds
// one of node/1, node/2, …, whose number is the node id that clients know, and
// writes it every beatMost. Whoever sees one unchanged for the lease, by its own
// clock, deletes it: its holder counts as dead, until it claims a register
// again. Nobody takes a shard over from an agent that has a register.
//
// It is no more than manners: whether anybody may lead is for the slots of the
// ledgers (commit.go). A wrong suspicion costs a takeover, never data.
//
// An agent that cannot confirm for the lease that it holds its register refuses
// what only a leader may answer: others may have taken over. One that has lost
// it gives up what it led: others may be about to take it (seats.go).

const (
	memberPrefix = "node/"
	memberFormat = 1
	// beatMost is the longest between two writes; half the lease if that is less.
	beatMost = 3 * time.Second
	// beatAgain is how soon one that failed is tried again.
	beatAgain = 500 * time.Millisecond
	// leaveTime is what giving the register back may take.
	leaveTime = 2 * time.Second
)

// membership is how an agent stands among the others, and who they are.
type membership struct {
	on    bool      // it may lead, and answer as a leader
	since time.Time // so long
	alone bool      // for ever, as the coordinator is this agent's only

	node      int32               // its number; 0: it has none yet
	held      coordinator.Version // of its own last write; empty: it holds no register
	confirmed time.Time           // when the last write that went through was begun
	writes    []beatWrite         // of the last lease, whose outcome may be unknown

	others []*member               // by their numbers
	live   []siltstone.Incarnation // this agent among them, ascending
	logs   placement
	groups placement

	listed time.Time // when the registers were read last
	// silent is when those who have no register any more were found to have none,
	// for as long as an unclean takeover may depend on it.
	silent map[siltstone.Incarnation]time.Time
	asking bool
	due    time.Time
}

type beatWrite struct {
	nonce coordinator.Nonce
	began time.Time
}

// A member is another agent, as its register has it.
type member struct {
	MemberInfo
	key     string
	version coordinator.Version
	from    time.Time // since when it has been seen with this version

	up      bool // messages to it can be sent
	wasUp   bool
	refused bool // since it was up last, nobody listens where it was
	// dead is the version that it had when it was refused, as was read after
	// that: a later one is a sign of life.
	dead   coordinator.Version
	status *peer.Status
}

// MemberInfo is an agent of the cluster, as the others know it.
type MemberInfo struct {
	Node        int32
	Incarnation siltstone.Incarnation
	Address     string // for Kafka clients
	Peer        string // for other agents; empty: it cannot be reached
	Zone        string
}

// memberValue is what a register holds.
type memberValue struct {
	Format      int    `json:"format"`
	Incarnation string `json:"incarnation"`
	Address     string `json:"address"`
	Peer        string `json:"peer,omitempty"`
	Zone        string `json:"zone,omitempty"`
}

func memberKey(node int32) string { return fmt.Sprintf("%s%d", memberPrefix, node) }

// parseMember reads a register.
func parseMember(l coordinator.Listed) (i MemberInfo, err error) {
	var v memberValue
	if _, err = fmt.Sscanf(strings.TrimPrefix(l.Key, memberPrefix), "%d", &i.Node); err != nil {
		return i, err
	}
	if err = json.Unmarshal(l.Data, &v); err != nil {
		return i, err
	}
	i.Incarnation, err = siltstone.ParseIncarnation(v.Incarnation)
	i.Address, i.Peer, i.Zone = v.Address, v.Peer, v.Zone
	return i, err
}

func (c *core) lease() time.Duration {
	return time.Duration(c.Topics().Cluster().LeaseMS) * time.Millisecond
}

func (c *core) beatEvery() time.Duration { return min(beatMost, c.lease()/2) }

// beatTime is what one try may take: after one that hangs there is time for others.
func (c *core) beatTime() time.Duration { return c.lease() / 6 }

// mayElect says whether this agent may try to lead: it knows all topics that
// there were when it became a member.
func (c *core) mayElect() bool {
	return c.members.on && c.cluster.ready && !c.cluster.from.Before(c.members.since)
}

// lookMembers does what is due about the registers. It comes before an event is
// handled: an agent that was frozen must know that it is late.
func (c *core) lookMembers() {
	m := &c.members
	if m.alone || c.draining {
		return
	}
	if m.on && c.now.Sub(m.confirmed) >= c.lease() {
		c.opts.Log.Warn("cannot confirm that this agent holds its register; it serves no more until it can")
		c.suspend()
	}
	if m.asking || c.now.Before(m.due) {
		return
	}
	m.asking = true
	m.writes = slices.DeleteFunc(m.writes, func(w beatWrite) bool { return c.now.Sub(w.began) >= c.lease() })
	e := &beat{
		began: c.now, nonce: c.nonce(), node: m.node, held: m.held, dead: c.dead(),
		value: memberValue{
			Format: memberFormat, Incarnation: c.opts.Incarnation.String(),
			Address: c.opts.Address, Peer: c.opts.PeerAddress, Zone: c.opts.Zone,
		},
	}
	for i := range e.dead {
		e.dead[i].nonce = c.nonce()
	}
	m.writes = append(m.writes, beatWrite{e.nonce, e.began})
	timeout := c.beatTime()
	c.work(func(ctx context.Context) event {
		once, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		e.err = e.ask(once, c.opts.Coordinator)
		if ctx.Err() == nil {
			c.troubled("hold a register "+memberPrefix, e.err)
		}
		return e
	})
}

// membersDue is when lookMembers has something to do with no event; zero if never.
func (c *core) membersDue() (due time.Time) {
	m := &c.members
	if m.alone || c.draining {
		return due
	}
	if !m.asking {
		due = m.due
	}
	if expires := m.confirmed.Add(c.lease()); m.on && (due.IsZero() || expires.Before(due)) {
		due = expires
	}
	return due
}

// dead are the registers of those that count as dead: nothing has been heard of
// them for the lease, or nobody listens where they were.
func (c *core) dead() (dead []deadMember) {
	for _, o := range c.members.others {
		if c.silent(o) {
			dead = append(dead, deadMember{key: o.key, version: o.version})
		}
	}
	return dead
}

// silent says whether a member counts as dead, as of when the registers were read last.
func (c *core) silent(o *member) bool {
	return o.refused && o.dead == o.version || c.members.listed.Sub(o.from) >= c.lease()
}

// A deadMember is a register that is to be deleted.
type deadMember struct {
	key     string
	version coordinator.Version
	nonce   coordinator.Nonce
}

// become begins to lead, once the topics are known as they are by now.
func (c *core) become() {
	c.members.on, c.members.since, c.statusStale = true, c.now, true
	c.replan()
	c.loadCluster()
}

// suspend takes nothing from clients any more. What is buffered is kept, and
// still written: whether it may be is for the ledgers' slots. Groups begin anew
// later, with all sessions, as nobody's heartbeats are heard meanwhile.
func (c *core) suspend() {
	c.members.on, c.statusStale = false, true
	c.refuseChanges()
	for _, s := range c.groups {
		if s.state == serving {
			c.deposeGroups(s)
		}
	}
}

// lost is for an agent whose register was taken from it: others believe that it
// is dead, and lead what it led, or are about to.
func (c *core) lost() {
	c.opts.Log.Warn("other agents took this one for dead; it gives up what it led")
	c.members.held = ""
	c.suspend()
	if c.opts.Plant.Is(planted.GoOnAfterLoss) {
		return
	}
	for _, s := range c.shards {
		if s.inOffice() {
			c.depose(s)
		}
		s.epoch = 0 // also of one that is being read: it does not go on in that
	}
}

// A beat is one write of this agent's register, and a look at all others.
type beat struct {
	began time.Time
	nonce coordinator.Nonce
	value memberValue
	node  int32               // that it has, or had last
	held  coordinator.Version // of its last write, if it has one
	dead  []deadMember

	took   coordinator.Version // by a write that went through
	found  coordinator.Value   // else, what is there
	listed []coordinator.Listed
	err    error
}

// ask deletes the registers of the dead, writes this agent's own, or claims one,
// and lists them all.
func (e *beat) ask(ctx context.Context, store coordinator.Coordinator) (err error) {
	for _, d := range e.dead {
		err := store.Delete(ctx, d.key, d.version, d.nonce)
		if _, moved := errors.AsType[*coordinator.VersionConflict](err); err != nil && !moved {
			return fmt.Errorf("delete %s: %w", d.key, err)
		}
	}
	version := e.held
	if version == "" {
		if version, err = e.claim(ctx, store); err != nil {
			return err
		}
	}
	text, err := json.Marshal(e.value)
	if err != nil {
		return err
	}
	e.took, err = store.Put(ctx, memberKey(e.node), text, version, e.nonce)
	if conflict, ok := errors.AsType[*coordinator.VersionConflict](err); ok {
		e.found, err = conflict.Current, nil
	}
	if err != nil {
		return err
	}
	e.listed, err = store.List(ctx, memberPrefix)
	return err
}

// claim finds the number that this agent is to have, and its register's version:
// the one that it has already, of a write whose outcome was unknown; the one
// that it had; or the lowest that is free.
func (e *beat) claim(ctx context.Context, store coordinator.Register) (coordinator.Version, error) {
	listed, err := store.List(ctx, memberPrefix)
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, l := range listed {
		taken[l.Key] = true
		if e.own(l.Value) {
			i, err := parseMember(l)
			e.node = i.Node
			return l.Version, err
		}
	}
	if e.node == 0 || taken[memberKey(e.node)] {
		for e.node = 1; taken[memberKey(e.node)]; e.node++ {
		}
	}
	v, err := store.Get(ctx, memberKey(e.node))
	if err == nil && v.Version != "" && !v.Deleted {
		err = fmt.Errorf("%w: %s was taken just now", siltstone.ErrUnavailable, memberKey(e.node))
	}
	return v.Version, err
}

// own says whether what is there is this agent's: nobody else has its incarnation.
func (e *beat) own(v coordinator.Value) bool {
	var m memberValue
	return !v.Deleted && json.Unmarshal(v.Data, &m) == nil && m.Incarnation == e.value.Incarnation
}

func (e *beat) handle(c *core) {
	m := &c.members
	m.asking, c.statusStale = false, true
	if e.err == nil {
		m.listed = e.began
		c.listedMembers(e.listed)
	}
	next := c.now
	switch {
	case e.took != "":
		m.held, m.node = e.took, e.node
		c.confirm(e.began)
		if next = e.began.Add(c.beatEvery()); e.err != nil {
			next = c.now.Add(beatAgain)
		}
	case e.err != nil:
		next = c.now.Add(beatAgain)
	case e.own(e.found): // of a write that was unknown, and has landed since it began
		m.held = e.found.Version
		if i := slices.IndexFunc(m.writes, func(w beatWrite) bool { return w.nonce == e.found.Nonce }); i >= 0 {
			c.confirm(m.writes[i].began)
		}
	case e.held != "":
		c.lost()
	default: // another was faster
		next = c.now.Add(beatAgain / 10)
	}
	m.due = next
	if e.err == nil {
		c.lookSilent()
	}
}

// lookSilent looks at the registers sooner where somebody may have died.
func (c *core) lookSilent() {
	m := &c.members
	for _, o := range m.others {
		at := o.from.Add(c.lease())
		if c.silent(o) {
			at = c.now
		}
		if at.Before(m.due) {
			m.due = at
		}
	}
}

// confirm notes that this agent held its register at some time after a write
// began. It is a member once it knows the others too: who is not listed counts as dead.
func (c *core) confirm(began time.Time) {
	m := &c.members
	if began.After(m.confirmed) {
		m.confirmed = began
	}
	if !m.on && c.now.Sub(began) < c.lease() && c.now.Sub(m.listed) < c.lease() {
		c.become()
	}
}

// listedMembers takes the registers as they are.
func (c *core) listedMembers(listed []coordinator.Listed) {
	m := &c.members
	var now []*member
	for _, l := range listed {
		info, err := parseMember(l)
		if err != nil {
			c.opts.Log.Error("a register of an agent cannot be read", "key", l.Key, "err", err)
			continue
		}
		if info.Incarnation == c.opts.Incarnation {
			continue
		}
		o := &member{MemberInfo: info, key: l.Key, version: l.Version, from: c.now}
		if i := slices.IndexFunc(m.others, func(old *member) bool { return old.key == l.Key && old.Incarnation == info.Incarnation }); i >= 0 {
			old := *m.others[i]
			if old.version == l.Version {
				o.from = old.from
			}
			o.up, o.wasUp, o.refused, o.dead, o.status = old.up, old.wasUp, old.refused, old.dead, old.status
			switch {
			case !o.refused:
			case o.dead == "":
				o.dead = l.Version
			case o.dead != l.Version:
				o.refused, o.dead = false, ""
			}
		}
		now = append(now, o)
	}
	slices.SortFunc(now, func(a, b *member) int { return cmp.Compare(a.Node, b.Node) })
	c.noteSilent(now)
	m.others = now
	c.replan()
}

// noteSilent notes who has a register no more.
func (c *core) noteSilent(now []*member) {
	m := &c.members
	maps.DeleteFunc(m.silent, func(_ siltstone.Incarnation, from time.Time) bool { return c.now.Sub(from) > c.uncleanGrace() })
	for _, o := range m.others {
		if !slices.ContainsFunc(now, func(n *member) bool { return n.Incarnation == o.Incarnation }) {
			if m.silent == nil {
				m.silent = map[siltstone.Incarnation]time.Time{}
			}
			m.silent[o.Incarnation] = c.now // it may have been heard until now by others
		}
	}
}

// uncleanGrace is how long all of an ISR must have been silent before another takes over.
func (c *core) uncleanGrace() time.Duration {
	return time.Duration(c.Topics().Cluster().UncleanGraceMS) * time.Millisecond
}

// replan computes who is to lead what, if those who live are others than before.
func (c *core) replan() {
	m := &c.members
	var live []siltstone.Incarnation
	if m.on {
		live = append(live, c.opts.Incarnation)
	}
	for _, o := range m.others {
		live = append(live, o.Incarnation)
	}
	slices.Sort(live)
	live = slices.Compact(live)
	if slices.Equal(live, m.live) {
		return
	}
	m.live, c.statusStale = live, true
	m.logs, m.groups = logPlacing.of(live), groupPlacing.of(live)
	c.reach()
}

// listed says whether an agent has a register, as far as this one knows.
func (c *core) listed(i siltstone.Incarnation) bool { return slices.Contains(c.members.live, i) }

// member finds another agent.
func (c *core) member(i siltstone.Incarnation) *member {
	for _, o := range c.members.others {
		if o.Incarnation == i {
			return o
		}
	}
	return nil
}

// leave gives the register back, so that nobody waits for the lease: when the
// shards are sealed.
func (c *core) leave(ctx context.Context) {
	m := &c.members
	if m.alone || m.held == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if err := c.opts.Coordinator.Delete(ctx, memberKey(m.node), m.held, c.nonce()); err != nil {
		c.opts.Log.Warn("others wait for the lease, as this agent could not say that it leaves", "err", err)
	}
}

// Members lists the agents of a cluster, for people, by their numbers. Some may
// have died since.
func Members(ctx context.Context, store coordinator.Register) (members []MemberInfo, err error) {
	listed, err := store.List(ctx, memberPrefix)
	if err != nil {
		return nil, err
	}
	for _, l := range listed {
		i, err := parseMember(l)
		if err != nil {
			return nil, fmt.Errorf("register %s: %w", l.Key, err)
		}
		members = append(members, i)
	}
	slices.SortFunc(members, func(a, b MemberInfo) int { return cmp.Compare(a.Node, b.Node) })
	return members, nil
}

const notConfirmed = "has not confirmed yet that it holds a register of the agents"
