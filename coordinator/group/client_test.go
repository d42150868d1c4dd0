package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// client is one consumer, and what it has been told.
type client struct {
	w         *world
	group     string
	name      string
	instance  *string
	session   int32
	rebalance int32
	twoSteps  bool
	maySkip   bool
	protocols []Protocol

	id         string
	generation int32
	leads      bool
	members    []JoinedMember
	assignment string
	join       *Join
	sync       *Sync
}

// reads is the subscription to topics, as the consumer protocol has it.
func reads(topics ...string) []byte {
	b := binary.BigEndian.AppendUint16(nil, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(len(topics)))
	for _, t := range topics {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(t))), t...)
	}
	return append(b, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)
}

func (w *world) client(id, name string) *client {
	return &client{
		w: w, group: id, name: name, session: 10_000, rebalance: 60_000, generation: -1, twoSteps: true, maySkip: true,
		protocols: []Protocol{{"range", reads("a")}, {"sticky", reads("a")}},
	}
}

func (w *world) static(id, instance string) *client {
	c := w.client(id, "of-"+instance)
	c.instance = &instance
	return c
}

// asks sends a JoinGroup as the client stands, and leaves it at that.
func (c *client) asks() *Join {
	c.w.t.Helper()
	r := &Join{
		Call: Call{Group: c.group}, Member: c.id, Instance: c.instance, ClientID: c.name, ClientHost: "/10.0.0.1",
		Type: "consumer", Protocols: slices.Clone(c.protocols), SessionMS: c.session, RebalanceMS: c.rebalance,
		TwoSteps: c.twoSteps, MaySkip: c.maySkip,
	}
	c.join = r
	c.w.handle(r)
	return r
}

// joins sends a JoinGroup, and a second one with the member id that it may be told.
func (c *client) joins() *Join {
	c.w.t.Helper()
	r := c.asks()
	if !c.w.waits(r) && errors.Is(r.Err, ErrMemberIDRequired) {
		c.id = r.MemberID
		r = c.asks()
	}
	return r
}

// joined takes the answer to a JoinGroup that succeeded.
func (c *client) joined() {
	c.w.t.Helper()
	r := c.join
	if c.w.waits(r) || r.Err != nil {
		c.w.t.Fatalf("%s: join waits %v: %v", c.name, c.w.waits(r), r.Err)
	}
	c.id, c.generation, c.leads, c.members = r.MemberID, r.Generation, r.MemberID == r.Leader, r.Members
	if c.leads == (len(r.Members) == 0) {
		c.w.t.Errorf("%s leads %v, and is told of %d members", c.name, c.leads, len(r.Members))
	}
}

// share is what the leader gives a member: an instance's stays the same.
func share(generation int32, id string, instance *string) string {
	if instance != nil {
		id = *instance
	}
	return fmt.Sprintf("%d for %s", generation, id)
}

// syncs sends a SyncGroup; the leader gives each member its share.
func (c *client) syncs() *Sync {
	c.w.t.Helper()
	r := &Sync{Call: Call{Group: c.group}, Member: c.id, Instance: c.instance, Generation: c.generation}
	if c.leads {
		r.Assignments = map[string][]byte{}
		for _, m := range c.members {
			r.Assignments[m.ID] = []byte(share(c.generation, m.ID, m.Instance))
		}
	}
	c.sync = r
	c.w.handle(r)
	return r
}

// synced takes the answer to a SyncGroup that succeeded.
func (c *client) synced() {
	c.w.t.Helper()
	if c.w.waits(c.sync) || c.sync.Err != nil {
		c.w.t.Fatalf("%s: sync waits %v: %v", c.name, c.w.waits(c.sync), c.sync.Err)
	}
	if c.assignment = string(c.sync.Assignment); c.assignment != share(c.generation, c.id, c.instance) {
		c.w.t.Errorf("%s has %q in generation %d", c.id, c.assignment, c.generation)
	}
}

func (c *client) beats() error {
	c.w.t.Helper()
	return c.w.answer(&Heartbeat{Call: Call{Group: c.group}, Member: c.id, Instance: c.instance, Generation: c.generation})
}

// commits sends an OffsetCommit.
func (c *client) commits(tp TopicPartition, off int64) *Commit {
	c.w.t.Helper()
	r := outsider(c.group, tp, off)
	r.Member, r.Instance, r.Generation = c.id, c.instance, c.generation
	c.w.handle(r)
	return r
}

func (c *client) leaves() *Leave {
	c.w.t.Helper()
	r := &Leave{Call: Call{Group: c.group}, Members: []LeavingMember{{Member: c.id, Instance: c.instance}}}
	c.w.handle(r)
	return r
}

// gather lets clients join one generation.
func gather(clients ...*client) {
	w := clients[0].w
	w.t.Helper()
	for _, c := range clients {
		c.joins()
	}
	w.settle()
	for _, c := range clients {
		c.joined()
	}
}

// settleIn lets clients join a generation and sync.
func settleIn(clients ...*client) {
	w := clients[0].w
	w.t.Helper()
	gather(clients...)
	for _, c := range clients {
		c.syncs()
	}
	w.settle()
	for _, c := range clients {
		c.synced()
	}
}

// stable is a group g, stable in generation 1, of so many members; the first leads.
func stable(t testing.TB, members int) (*world, []*client) {
	t.Helper()
	w := newWorld(t)
	var clients []*client
	for i := range members {
		clients = append(clients, w.client("g", fmt.Sprintf("client-%d", i)))
	}
	settleIn(clients...)
	w.is("g", Stable, 1, members)
	return w, clients
}
