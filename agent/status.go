package agent

import (
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// setState notes how far the agent is with a shard.
func (c *core) setState(s *ledShard, to shardState) {
	s.state = to
	c.statusStale = true
}

// publish makes what others read of the state.
func (c *core) publish() {
	if !c.statusStale {
		return
	}
	c.statusStale = false
	s := Status{Epochs: make([]siltstone.Epoch, len(c.shards))}
	for i, sh := range c.shards {
		s.Epochs[i] = -1
		if sh.leads() && c.activity.on {
			s.Epochs[i] = sh.epoch
		}
	}
	s.Groups = make([]bool, len(c.groups))
	for i, g := range c.groups {
		s.Groups[i] = g.leads() && !c.draining
	}
	switch behind, groupsBehind := slices.Index(s.Epochs, -1), slices.Index(s.Groups, false); {
	case c.draining:
		s.Why = "stopping"
	case !c.activity.on:
		s.Why = c.activity.whyNotActive()
	case !c.cluster.ready:
		s.Why = "reading the cluster's ledger"
	case behind >= 0:
		s.Why = fmt.Sprintf("does not lead %s yet", c.shards[behind].log.Name())
	case groupsBehind >= 0:
		s.Why = fmt.Sprintf("does not lead %s yet", c.groups[groupsBehind].log.Name())
	default:
		s.Ready = true
	}
	c.status.Store(&s)
	if s.Ready {
		c.onceReady.Do(func() { close(c.ready) })
	}
}

// Status is what an agent says of itself.
type Status struct {
	// Ready: it leads every shard, and the stores answer.
	Ready bool
	// Why it is not ready, for people.
	Why string
	// Epochs of the shards that it leads; -1 for the others. Not to be changed.
	Epochs []siltstone.Epoch
	// Groups are the group shards whose groups it coordinates. Not to be changed.
	Groups []bool
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

// Leads says in which epoch this agent leads a partition's shard.
func (a *Agent) Leads(tp siltstone.TopicPartition) (siltstone.Epoch, bool) {
	epochs := a.status.Load().Epochs
	if len(epochs) == 0 {
		return -1, false
	}
	e := epochs[shard.Of(tp)]
	return e, e >= 0
}
