package sim

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A commitRequest is an OffsetCommit.
type commitRequest struct {
	version int16
	as      standing
	commits []*commit
}

// message makes the request, which is about to be sent.
func (q *commitRequest) message(h *history, g *guide) kmsg.Request {
	if q.version >= 10 && slices.ContainsFunc(q.commits, func(c *commit) bool { return g.ids[c.partition.topic] == [16]byte{} }) {
		q.version = 9 // for want of an id
	}
	msg := kmsg.NewPtrOffsetCommitRequest()
	msg.Version, msg.Group, msg.Generation, msg.MemberID = q.version, q.as.group, q.as.generation, q.as.member
	msg.RetentionTimeMillis = -1
	if q.as.instance != "" {
		msg.InstanceID = &q.as.instance
	}
	sent := h.tick()
	for _, c := range q.commits {
		c.sent = sent
		h.groups.commits = append(h.groups.commits, c)
		if q.version < 6 {
			c.epoch = -1
		}
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset, part.LeaderEpoch, part.Metadata = c.partition.number, c.offset, c.epoch, &c.id
		if n := len(msg.Topics); n == 0 || msg.Topics[n-1].Topic != c.partition.topic {
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic, t.TopicID = c.partition.topic, g.ids[c.partition.topic]
			msg.Topics = append(msg.Topics, t)
		}
		t := &msg.Topics[len(msg.Topics)-1]
		t.Partitions = append(t.Partitions, part)
		g.world.tracef("%s commits %s at %d as %s: %s", g.client, c.partition, c.offset, q.as, c.id)
	}
	return msg
}

// refusals are the errors after which a commit has not happened, for certain.
var refusals = map[int16]bool{
	kerr.UnknownMemberID.Code: true, kerr.IllegalGeneration.Code: true, kerr.RebalanceInProgress.Code: true,
	kerr.FencedInstanceID.Code: true, kerr.OffsetMetadataTooLarge.Code: true, kerr.UnknownTopicOrPartition.Code: true,
	kerr.UnknownTopicID.Code: true, kerr.GroupIDNotFound.Code: true, kerr.NonEmptyGroup.Code: true,
	kerr.GroupSubscribedToTopic.Code: true, kerr.InvalidRequest.Code: true,
}

// answer notes what came of each commit. It returns an error code that the
// answer has, or 0.
func (q *commitRequest) answer(h *history, g *guide, resp *kmsg.OffsetCommitResponse) (code int16) {
	got := h.tick()
	waiting := map[partition]*commit{}
	for _, c := range q.commits {
		waiting[c.partition] = c
	}
	for _, t := range resp.Topics {
		topic := t.Topic
		if resp.Version >= 10 {
			topic = g.names[t.TopicID]
		}
		for _, part := range t.Partitions {
			c := waiting[partition{topic, part.Partition}]
			if c == nil {
				g.world.failf("%s: an answer for the commit of %s/%d, which was not asked for", g.client, topic, part.Partition)
				continue
			}
			delete(waiting, c.partition)
			c.got, c.acked, c.refused = got, part.ErrorCode == 0, refusals[part.ErrorCode]
			if g.world.refused(g.client, part.ErrorCode, "commit %s", c.id) {
				code = part.ErrorCode
			}
		}
	}
	if len(waiting) > 0 {
		g.world.failf("%s: no answer for the commit of %d partitions", g.client, len(waiting))
	}
	if code == 0 {
		g.world.heard()
	}
	if c := q.commits[0]; c.acked && c.generation >= 0 {
		h.groups.acts = append(h.groups.acts, act{standing: q.as, what: "commit " + c.id, sent: c.sent, got: got})
	}
	return code
}

// A recallRequest is an OffsetFetch; below v8 for one group.
type recallRequest struct {
	version int16
	asks    []*recallAsk
}

// A recallAsk is the share of one group.
type recallAsk struct {
	group      string
	partitions []partition // nil: all; then those that are not in the answer are none
	known      []partition // all that anybody commits
	as         standing    // whose it is; none for a stranger

	found []recall
	code  int16
}

func (q *recallRequest) message(g *guide) kmsg.Request {
	msg := kmsg.NewPtrOffsetFetchRequest()
	msg.Version, msg.RequireStable = q.version, true
	for _, a := range q.asks {
		one := kmsg.NewOffsetFetchRequestGroup()
		one.Group, one.MemberEpoch = a.group, -1
		if a.as.member != "" {
			one.MemberID, one.MemberEpoch = &a.as.member, a.as.generation
		}
		for _, p := range a.partitions {
			if n := len(one.Topics); n == 0 || one.Topics[n-1].Topic != p.topic {
				one.Topics = append(one.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: p.topic, TopicID: g.ids[p.topic]})
			}
			t := &one.Topics[len(one.Topics)-1]
			t.Partitions = append(t.Partitions, p.number)
		}
		msg.Group = a.group
		for _, t := range one.Topics {
			msg.Topics = append(msg.Topics, kmsg.OffsetFetchRequestTopic{Topic: t.Topic, Partitions: t.Partitions})
		}
		msg.Groups = append(msg.Groups, one)
	}
	return msg
}

// answer notes for each group what the answer shows, or its error code. It
// returns an error code that the answer has, or 0.
func (q *recallRequest) answer(resp *kmsg.OffsetFetchResponse, g *guide) (code int16) {
	groups := resp.Groups
	if resp.Version < 8 {
		one := kmsg.OffsetFetchResponseGroup{Group: q.asks[0].group, ErrorCode: resp.ErrorCode}
		for _, t := range resp.Topics {
			to := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				to.Partitions = append(to.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition(p))
			}
			one.Topics = append(one.Topics, to)
		}
		groups = []kmsg.OffsetFetchResponseGroup{one}
	}
	if len(groups) != len(q.asks) {
		g.world.failf("%s: offsets of %d groups, and %d were asked for", g.client, len(groups), len(q.asks))
		return kerr.UnknownServerError.Code
	}
	for i, a := range q.asks {
		if groups[i].Group != a.group {
			g.world.failf("%s: offsets of %s, and those of %s were asked for", g.client, groups[i].Group, a.group)
		}
		a.learn(&groups[i], resp.Version, g)
		if g.world.refused(g.client, a.code, "fetch offsets of %s", a.group) {
			code = a.code
		}
	}
	return code
}

func (a *recallAsk) learn(one *kmsg.OffsetFetchResponseGroup, version int16, g *guide) {
	a.code = one.ErrorCode
	for _, t := range one.Topics {
		if version >= 10 {
			if t.Topic = g.names[t.TopicID]; t.Topic == "" { // a topic of which it has not heard yet
				a.code = kerr.UnknownTopicID.Code
			}
		}
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				a.code = p.ErrorCode
				continue
			}
			r := recall{group: a.group, partition: partition{t.Topic, p.Partition}, offset: p.Offset, epoch: -1}
			if version >= 5 {
				r.epoch = p.LeaderEpoch
			}
			if p.Metadata != nil {
				r.id = *p.Metadata
			}
			a.found = append(a.found, r)
		}
	}
	if a.code != 0 {
		a.found = nil
		return
	}
	there := map[partition]bool{}
	for _, r := range a.found {
		there[r.partition] = true
	}
	for _, p := range a.known {
		if !there[p] && a.partitions == nil {
			a.found = append(a.found, recall{group: a.group, partition: p, offset: -1, epoch: -1})
		}
	}
	for _, p := range a.partitions {
		if !there[p] {
			g.world.failf("%s: no answer for the offset of %s in %s", g.client, p, a.group)
		}
	}
}

// recalled notes what an OffsetFetch showed.
func (h *history) recalled(asker string, sent moment, q *recallRequest) {
	got := h.tick()
	for _, a := range q.asks {
		for _, r := range a.found {
			r.asker, r.sent, r.got = asker, sent, got
			h.groups.recalls = append(h.groups.recalls, r)
		}
	}
}
