package agent

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// setState notes how far the agent is with a shard.
func (c *core) setState(s *ledShard, to shardState) {
	s.state = to
	c.statusStale = true
}

// countShortISR counts the shards that are led and held by fewer than wanted.
func (c *core) countShortISR() {
	short, replicas := 0, c.Topics().Cluster().Replicas
	for _, s := range c.shards {
		if s.leads() && len(s.fold().ISR()) < replicas {
			short++
		}
	}
	c.metrics.shortISR.Set(float64(short))
}

// publish makes what others read of the state.
func (c *core) publish() {
	if !c.statusStale {
		return
	}
	c.statusStale = false
	c.say()
	s := Status{Self: c.members.node, Members: c.membersNow()}
	nodes := map[siltstone.Incarnation]int32{}
	for _, m := range s.Members {
		nodes[m.Incarnation] = m.Node
	}
	missing := ""
	for sh := range c.allSeats() {
		leader, epoch := c.leaderOf(sh)
		if seat := sh.seat(); leader != 0 {
			seat.led, seat.ledIn = leader, epoch
		} else if c.listed(seat.led) {
			leader, epoch = seat.led, seat.ledIn
		}
		own := leader == c.opts.Incarnation && sh.stands() == serving && c.members.on
		led := Led{Node: -1, Epoch: -1, Own: own && !c.draining}
		if node, ok := nodes[leader]; ok && (own || leader != c.opts.Incarnation) {
			led.Node, led.Epoch = node, epoch
		}
		// A register may be of one that has died: who says so itself counts.
		if by, _ := c.claimed(sh); !own && by == 0 && missing == "" {
			missing = sh.ledger()
		}
		if sh.named().Group {
			s.Groups = append(s.Groups, led)
		} else {
			s.Logs = append(s.Logs, led)
		}
	}
	switch {
	case c.draining:
		s.Why = "stopping"
	case !c.members.on:
		s.Why = notConfirmed
	case !c.cluster.ready:
		s.Why = "reading the cluster's ledger"
	case missing != "":
		s.Why = fmt.Sprintf("nobody says that it leads %s", missing)
	default:
		s.Ready = true
	}
	c.status.Store(&s)
	if s.Ready {
		c.onceReady.Do(func() {
			c.hearGroups()
			close(c.ready)
		})
	}
}

// membersNow are all agents that live, this one among them, by their numbers.
func (c *core) membersNow() (all []MemberInfo) {
	if m := &c.members; m.node != 0 {
		all = append(all, MemberInfo{Node: m.node, Incarnation: c.opts.Incarnation, Address: c.opts.Address, Peer: c.opts.PeerAddress, Zone: c.opts.Zone})
	}
	for _, o := range c.members.others {
		all = append(all, o.MemberInfo)
	}
	slices.SortFunc(all, func(a, b MemberInfo) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// Status is what an agent says of itself, and what it knows of the others.
// Nothing in it is to be changed.
type Status struct {
	// Ready: it is a member, every shard is led by it, or by another that says
	// so, and the stores answer.
	Ready bool
	// Why it is not ready, for people.
	Why string
	// Self is its number; 0: it has none yet.
	Self int32
	// Members are the agents that live, by their numbers.
	Members []MemberInfo
	// Logs and Groups are who leads which shard.
	Logs, Groups []Led
}

// Led is who leads a shard.
type Led struct {
	Node  int32 // -1: nobody is known to
	Epoch siltstone.Epoch
	Own   bool // it is this agent, and it serves
}

// Status is the newest.
func (a *Agent) Status() Status {
	s := *a.status.Load()
	if why := a.trouble.String(); s.Ready && why != "" {
		s.Ready, s.Why = false, why
	}
	return s
}

// Ready is closed once the agent has become ready for the first time.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

// Leader says which node leads a partition, as far as this agent knows, and in
// which epoch.
func (a *Agent) Leader(tp siltstone.TopicPartition) (node int32, epoch siltstone.Epoch, ok bool) {
	l := ledBy(a.status.Load().Logs, shard.Of(tp))
	return l.Node, l.Epoch, l.Node >= 0
}

// Coordinator says which node coordinates a group, as far as this agent knows.
func (a *Agent) Coordinator(id string) (node int32, ok bool) {
	l := ledBy(a.status.Load().Groups, group.Of(id))
	return l.Node, l.Node >= 0
}

func ledBy(all []Led, i int) Led {
	if i >= len(all) {
		return Led{Node: -1, Epoch: -1}
	}
	return all[i]
}
