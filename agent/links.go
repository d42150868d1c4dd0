package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// What agents tell each other. All of it may be lost: it makes things quick, and
// nothing safe.

// links hands what the transport hears to the loop.
type links struct{ *Agent }

var _ peer.Handler = links{}

// Up implements peer.Handler.
func (l links) Up(to siltstone.Incarnation) { _ = l.post(l.workCtx, &linkUp{to}) }

// Down implements peer.Handler.
func (l links) Down(to siltstone.Incarnation, refused bool) {
	_ = l.post(l.workCtx, &linkDown{to, refused})
}

// Received implements peer.Handler.
func (l links) Received(from siltstone.Incarnation, _ peer.Lane, message []byte) {
	m, err := peer.Decode(message)
	switch {
	case errors.Is(err, peer.ErrUnknownKind):
		l.opts.Log.Debug("a message of a newer release", "from", from, "err", err)
	case err != nil:
		l.opts.Log.Error("a message cannot be read", "from", from, "err", err)
	default:
		_ = l.post(l.workCtx, &heardFrom{from, m})
	}
}

// talk runs the transport beside the loop.
func (c *core) talk() {
	if c.opts.Peers == nil {
		return
	}
	c.work(func(ctx context.Context) event {
		if err := c.opts.Peers.Run(ctx, links{c.Agent}); err != nil && ctx.Err() == nil {
			return &talkEnded{err}
		}
		return nil
	})
}

// talkEnded is a transport that has ended by itself.
type talkEnded struct{ err error }

func (e *talkEnded) handle(c *core) { c.fail(fmt.Errorf("talk to other agents: %w", e.err)) }

// reach keeps connections to all other agents.
func (c *core) reach() {
	if c.opts.Peers == nil {
		return
	}
	var to []peer.Peer
	for _, o := range c.members.others {
		if o.Peer != "" {
			to = append(to, peer.Peer{Incarnation: o.Incarnation, Address: o.Peer})
		}
	}
	c.opts.Peers.Reach(to)
}

// tell sends a message to one agent, if it can be reached.
func (c *core) tell(to siltstone.Incarnation, m peer.Message) {
	if o := c.member(to); o == nil || !o.up {
		return
	}
	b, err := peer.Encode(m)
	if err != nil {
		c.fail(err)
		return
	}
	c.opts.Peers.Send(to, peer.Control, b)
}

// tellAll sends a message to all that can be reached.
func (c *core) tellAll(m peer.Message) {
	for _, o := range c.members.others {
		c.tell(o.Incarnation, m)
	}
}

type linkUp struct{ to siltstone.Incarnation }

func (e *linkUp) handle(c *core) {
	if o := c.member(e.to); o != nil {
		o.up, o.wasUp, o.refused, o.dead = true, true, false, ""
		c.linksStale = true
		for _, s := range c.shards {
			if f := s.replicas.follower(e.to); f != nil {
				f.again = c.now
			}
		}
		c.tell(e.to, c.said)
	}
}

type linkDown struct {
	to      siltstone.Incarnation
	refused bool
}

func (e *linkDown) handle(c *core) {
	o := c.member(e.to)
	if o == nil {
		return
	}
	if o.up { // it may have left
		o.up, c.members.due, c.linksStale = false, c.now, true
		for _, s := range c.shards {
			if f := s.replicas.follower(e.to); f != nil && f.stream != 0 {
				c.endStream(f)
			}
		}
	}
	// One that was never reached may have an address that leads nowhere.
	if e.refused && o.wasUp && !o.refused {
		o.refused, c.members.due = true, c.now
	}
}

// heardFrom is a message of another agent.
type heardFrom struct {
	from    siltstone.Incarnation
	message peer.Message
}

func (e *heardFrom) handle(c *core) {
	switch m := e.message.(type) {
	case *peer.Status:
		c.heardStatus(e.from, m)
	case *peer.Entries:
		c.heardEntries(e.from, m)
	case *peer.Offer:
		c.heardOffer(e.from, m.Shard)
	case *peer.Accept:
		c.heardAccept(e.from, m.Shard)
	case *peer.Handed:
		c.heardHanded(m.Shard)
	case *peer.Open:
		c.heardOpen(e.from, m)
	case *peer.Batches:
		c.heardBatches(e.from, m)
	case *peer.Ack:
		c.heardAck(e.from, m)
	case *peer.Refuse:
		c.heardRefuse(e.from, m)
	}
}

// heardStatus notes what another agent leads.
func (c *core) heardStatus(from siltstone.Incarnation, s *peer.Status) {
	o := c.member(from)
	if o == nil {
		c.members.due = c.now // one that has come since the registers were read
		return
	}
	o.status, c.statusStale = s, true
	if c.cluster.ready && coordinator.Seq(s.Cluster) > c.cluster.log.Position().Seq {
		c.catchUpCluster()
	}
}

// heardEntries folds entries that another agent has settled.
func (c *core) heardEntries(from siltstone.Incarnation, m *peer.Entries) {
	if m.Ledger != topic.Ledger {
		c.heardShardEntries(from, m)
		return
	}
	l := &c.cluster
	if !l.ready || len(m.Entries) == 0 {
		return
	}
	if coordinator.Seq(m.Entries[0].Seq) > l.log.Position().Seq+1 {
		c.catchUpCluster()
		return
	}
	c.settleCluster(outcomeOf(m))
}

// entriesOf are settled entries, as they are sent.
func entriesOf(name string, entries []coordinator.Entry) *peer.Entries {
	m := &peer.Entries{Ledger: name}
	for _, e := range entries {
		m.Entries = append(m.Entries, peer.Entry{Seq: uint64(e.Seq), Nonce: e.Nonce[:], Data: e.Data})
	}
	return m
}

// outcomeOf is what another agent has settled, as if it had been read.
func outcomeOf(m *peer.Entries) (out ledger.Outcome) {
	for _, e := range m.Entries {
		in := coordinator.Entry{Seq: coordinator.Seq(e.Seq), Data: e.Data}
		copy(in.Nonce[:], e.Nonce)
		out.Entries = append(out.Entries, in)
	}
	return out
}

// pushCluster tells the others of entries of the cluster's ledger.
func (c *core) pushCluster(entries []coordinator.Entry) {
	c.tellAll(entriesOf(topic.Ledger, entries))
}

// say tells the others what this agent leads, if it is not what they know.
func (c *core) say() {
	s := &peer.Status{Cluster: uint64(c.cluster.log.Position().Seq), Opened: c.said.Opened}
	opened := true
	for _, sh := range c.shards {
		switch {
		case sh.leads() && c.members.on:
			s.Logs = append(s.Logs, peer.Led{Shard: sh.id, Epoch: sh.epoch})
		case sh.state == loading && sh.epoch != 0:
			opened = false
		}
		opened = opened && (!sh.leads() || len(sh.toOpen) == 0)
	}
	for i, g := range c.groups {
		if g.leads() && c.members.on {
			s.Groups = append(s.Groups, peer.Led{Shard: i, Epoch: g.log.Fold().Epoch()})
		}
	}
	if opened && c.cluster.ready {
		s.Opened = s.Cluster
	}
	if s.Cluster == c.said.Cluster && s.Opened == c.said.Opened && slices.Equal(s.Logs, c.said.Logs) && slices.Equal(s.Groups, c.said.Groups) {
		return
	}
	c.said = s
	c.tellAll(s)
}
