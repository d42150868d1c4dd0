package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A groupAdmin looks at groups, as tools do; of fragile ones it deletes offsets
// and members and the whole, and sets offsets while nobody is in them.
type groupAdmin struct {
	world   *world
	history *history
	guide   *guide
	line    *groupLine // to the coordinator of whichever group: all are one agent's
	dice    *dice
	name    string
	teams   []*team
	pace    time.Duration
	stopped bool
}

func (a *groupAdmin) begin() { a.guide.refresh(a.next) }

// next does one thing, and comes again.
func (a *groupAdmin) next() {
	if a.stopped {
		return
	}
	t := a.teams[a.dice.below(len(a.teams))]
	roll := a.dice.below(14)
	if roll > 7 && !t.fragile {
		roll %= 8
	}
	switch roll {
	case 0, 1:
		a.describe()
	case 2:
		a.list()
	case 8, 9, 10:
		a.commit(t)
	case 11:
		a.deleteOffsets(t)
	case 12:
		a.remove(t)
	case 13:
		a.deleteGroup(t)
	default:
		a.recall(t)
	}
}

// ask sends a request, and goes on to the next thing after what came of it.
func (a *groupAdmin) ask(request func() kmsg.Request, answered func(kmsg.Response)) {
	a.line.ask(requestTimeout, request, func(resp kmsg.Response, err error) {
		if err != nil {
			a.world.tracef("%s: %v", a.name, err)
		} else {
			answered(resp)
		}
		a.world.after(a.dice.duration(a.pace/2, a.pace*3/2), func() { a.guide.refresh(a.next) })
	})
}

// recall asks for all offsets or some, of one group or, in a version that can,
// of all.
func (a *groupAdmin) recall(t *team) {
	q := &recallRequest{version: int16(a.dice.between(1, 10))}
	teams := []*team{t}
	if q.version >= 8 {
		teams = a.teams
	}
	for _, t := range teams {
		ask := &recallAsk{group: t.group, known: t.parts}
		if q.version == 1 || a.dice.chance(0.3) {
			ask.partitions = t.parts[:a.dice.between(1, len(t.parts))]
		}
		q.asks = append(q.asks, ask)
	}
	var sent moment
	a.ask(func() kmsg.Request {
		sent = a.history.tick()
		return q.message(a.guide)
	}, func(resp kmsg.Response) {
		a.line.moved(q.answer(resp.(*kmsg.OffsetFetchResponse), a.guide))
		a.history.recalled(a.name, sent, q)
	})
}

func (a *groupAdmin) describe() {
	msg := kmsg.NewPtrDescribeGroupsRequest()
	msg.Version = int16(a.dice.between(0, 6))
	for _, t := range a.teams {
		msg.Groups = append(msg.Groups, t.group)
	}
	var sent moment
	a.ask(func() kmsg.Request {
		sent = a.history.tick()
		return msg
	}, func(resp kmsg.Response) {
		got := a.history.tick()
		for _, g := range resp.(*kmsg.DescribeGroupsResponse).Groups {
			if a.world.refused(a.name, g.ErrorCode, "describe %s", g.Group) {
				a.line.moved(g.ErrorCode)
				continue
			}
			d := description{group: g.Group, sent: sent, got: got, state: g.State}
			for _, m := range g.Members {
				share, mark, err := sharesIn(m.MemberAssignment)
				if err != nil {
					a.world.failf("9: %s was shown an assignment of %s that it cannot read: %v", a.name, m.MemberID, err)
				}
				d.members = append(d.members, described{m.MemberID, mark, share})
			}
			a.history.groups.descriptions = append(a.history.groups.descriptions, d)
			a.world.tracef("%s sees %s %s: %v", a.name, g.Group, g.State, d.members)
		}
	})
}

func (a *groupAdmin) list() {
	msg := kmsg.NewPtrListGroupsRequest()
	msg.Version = int16(a.dice.between(0, 5))
	var sent moment
	a.ask(func() kmsg.Request {
		sent = a.history.tick()
		return msg
	}, func(resp kmsg.Response) {
		r := resp.(*kmsg.ListGroupsResponse)
		if a.world.refused(a.name, r.ErrorCode, "list groups") {
			a.line.moved(r.ErrorCode)
			return
		}
		l := listing{sent: sent, got: a.history.tick(), groups: map[string]bool{}}
		for _, g := range r.Groups {
			l.groups[g.Group] = true
		}
		a.history.groups.listings = append(a.history.groups.listings, l)
		a.world.tracef("%s sees %d groups", a.name, len(l.groups))
	})
}

// commit sets an offset as nobody's member: for a group that has some it is refused.
func (a *groupAdmin) commit(t *team) {
	there := slices.DeleteFunc(slices.Clone(t.parts), func(p partition) bool { return a.guide.leaders[p] == "" })
	if len(there) == 0 {
		a.recall(t)
		return
	}
	as := standing{group: t.group, generation: -1}
	q := commitRequest{version: int16(a.dice.between(2, 10)), as: as}
	p := there[a.dice.below(len(there))]
	q.commits = []*commit{{standing: as, partition: p, id: t.commitID(), offset: int64(a.dice.below(int(a.history.shownHigh(p)) + 1)), epoch: -1}}
	a.ask(func() kmsg.Request { return q.message(a.history, a.guide) }, func(resp kmsg.Response) {
		a.line.moved(q.answer(a.history, a.guide, resp.(*kmsg.OffsetCommitResponse)))
	})
}

// lose makes a request by which offsets may be lost; code is of its answer.
func (a *groupAdmin) lose(l *loss, msg kmsg.Request, code func(kmsg.Response) int16) {
	a.ask(func() kmsg.Request {
		a.world.tracef("%s asks: %s", a.name, l.what)
		l.sent = a.history.tick()
		a.history.groups.losses = append(a.history.groups.losses, l)
		return msg
	}, func(resp kmsg.Response) {
		c := code(resp)
		l.got, l.acked, l.refused = a.history.tick(), c == 0, refusals[c]
		if a.world.refused(a.name, c, "%s", l.what) {
			a.line.moved(c)
		} else {
			a.world.tracef("%s: done: %s", a.name, l.what)
			a.world.heard()
		}
	})
}

func (a *groupAdmin) deleteOffsets(t *team) {
	p := t.parts[a.dice.below(len(t.parts))]
	msg := kmsg.NewPtrOffsetDeleteRequest()
	msg.Group = t.group
	one := kmsg.NewOffsetDeleteRequestTopic()
	one.Topic = p.topic
	part := kmsg.NewOffsetDeleteRequestTopicPartition()
	part.Partition = p.number
	one.Partitions = append(one.Partitions, part)
	msg.Topics = append(msg.Topics, one)
	l := &loss{what: "delete the offset of " + p.String() + " in " + t.group, group: t.group, topic: p.topic, partition: p.number}
	a.lose(l, msg, func(resp kmsg.Response) int16 {
		r := resp.(*kmsg.OffsetDeleteResponse)
		if r.ErrorCode != 0 || len(r.Topics) == 0 {
			return r.ErrorCode
		}
		return r.Topics[0].Partitions[0].ErrorCode
	})
}

func (a *groupAdmin) deleteGroup(t *team) {
	msg := kmsg.NewPtrDeleteGroupsRequest()
	msg.Version, msg.Groups = int16(a.dice.between(0, 3)), []string{t.group}
	l := &loss{what: "delete " + t.group, group: t.group, partition: -1, ends: true}
	a.lose(l, msg, func(resp kmsg.Response) int16 { return resp.(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode })
}

// remove takes a static member out, by its instance id.
func (a *groupAdmin) remove(t *team) {
	static := slices.DeleteFunc(slices.Clone(t.members), func(m *member) bool { return m.habits.instance == "" })
	if len(static) == 0 {
		a.recall(t)
		return
	}
	m := static[a.dice.below(len(static))]
	msg := kmsg.NewPtrLeaveGroupRequest()
	msg.Version, msg.Group = int16(a.dice.between(3, 5)), t.group
	one := kmsg.NewLeaveGroupRequestMember()
	one.InstanceID = m.instance()
	msg.Members = append(msg.Members, one)
	a.ask(func() kmsg.Request {
		a.world.tracef("%s removes %s from %s", a.name, m.habits.instance, t.group)
		return msg
	}, func(resp kmsg.Response) {
		a.line.moved(resp.(*kmsg.LeaveGroupResponse).ErrorCode)
	})
}
