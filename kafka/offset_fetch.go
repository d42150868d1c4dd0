package kafka

// OffsetFetch (key 9), v1 to v10. (v0 read from ZooKeeper and is not served.)
//
// Offset -1 and no error where nothing is committed, as for topics and
// partitions that are not there: consumers begin at auto.offset.reset, and give
// up at an error. From v2 on null asks for all of a group, but for topics that
// are not there any more; an empty list for none. A group that is not there is
// an empty one. An error of the group is put on each partition in v1, which has
// no other place, and no partition comes with it later. v5: leader epochs
// (KIP-320). v7: RequireStable (KIP-447); there are no transactions yet, so all
// is stable. v8: several groups, each by itself; one that is named again is
// INVALID_REQUEST. v9: a member may say who it is. v10: topics by id,
// UNKNOWN_TOPIC_ID. A partition that is named again is answered once. The empty
// group id is one like others, as in OffsetCommit.

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

func (s *Server) offsetFetch(ctx context.Context, q *kmsg.OffsetFetchRequest) *kmsg.OffsetFetchResponse {
	resp := kmsg.NewPtrOffsetFetchResponse()
	if q.Version < 8 {
		only := s.fetchOffsets(ctx, q, []kmsg.OffsetFetchRequestGroup{onlyGroup(q)})[0]
		resp.ErrorCode = only.ErrorCode
		resp.Topics = make([]kmsg.OffsetFetchResponseTopic, len(only.Topics))
		for i, t := range only.Topics {
			resp.Topics[i].Topic = t.Topic
			resp.Topics[i].Partitions = make([]kmsg.OffsetFetchResponseTopicPartition, len(t.Partitions))
			for j, p := range t.Partitions {
				resp.Topics[i].Partitions[j] = kmsg.OffsetFetchResponseTopicPartition(p)
			}
		}
		return resp
	}
	resp.Groups = s.fetchOffsets(ctx, q, q.Groups)
	return resp
}

// onlyGroup is the group of a version that has one, as later versions name it.
func onlyGroup(q *kmsg.OffsetFetchRequest) kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = q.Group
	if q.Topics == nil && q.Version >= 2 {
		return g
	}
	g.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, len(q.Topics))
	for i, t := range q.Topics {
		g.Topics[i].Topic, g.Topics[i].Partitions = t.Topic, t.Partitions
	}
	return g
}

// fetchOffsets answers for each group.
func (s *Server) fetchOffsets(ctx context.Context, q *kmsg.OffsetFetchRequest, groups []kmsg.OffsetFetchRequestGroup) []kmsg.OffsetFetchResponseGroup {
	answers := make([]kmsg.OffsetFetchResponseGroup, len(groups))
	fetches := make([]offsetFetch, len(groups))
	var requests []group.Request
	seen := map[string]bool{}
	for i := range groups {
		g := &groups[i]
		answers[i].Group = g.Group
		if seen[g.Group] {
			err := fmt.Errorf("group %q is named again: %w", g.Group, kerr.InvalidRequest)
			answers[i].ErrorCode = s.refuse(err)
			continue
		}
		seen[g.Group] = true
		fetches[i] = s.namedOffsets(q, g)
		answers[i].Topics = fetches[i].topics
		requests = append(requests, &fetches[i].Fetch)
	}
	err := s.coordinate(ctx, requests...)
	for i := range fetches {
		if answers[i].ErrorCode == 0 {
			s.answerOffsets(&answers[i], &fetches[i], q.Version, err)
		}
	}
	return answers
}

// offsetFetch asks for the offsets of one group.
type offsetFetch struct {
	group.Fetch
	topics []kmsg.OffsetFetchResponseGroupTopic // the answer if nothing were committed
	places []offsetPlace                        // in it, of Fetch.Parts
}

func (s *Server) answerOffsets(rg *kmsg.OffsetFetchResponseGroup, f *offsetFetch, version int16, err error) {
	if err == nil {
		err = f.Err
	}
	switch {
	case err == nil && f.All:
		rg.Topics = s.allOffsets(f.Parts)
	case err == nil:
		for i, at := range f.places {
			setOffset(&rg.Topics[at.topic].Partitions[at.partition], &f.Parts[i])
		}
	case version == 1:
		for i := range rg.Topics {
			for j := range rg.Topics[i].Partitions {
				rg.Topics[i].Partitions[j].ErrorCode = s.refuse(err)
			}
		}
	default:
		rg.Topics, rg.ErrorCode = nil, s.refuse(err)
	}
}

// offsetPlace is where in an answer a partition is.
type offsetPlace struct{ topic, partition int }

// namedOffsets asks for what a request names of one group.
func (s *Server) namedOffsets(q *kmsg.OffsetFetchRequest, g *kmsg.OffsetFetchRequestGroup) offsetFetch {
	var f offsetFetch
	f.Group, f.Generation, f.Stable, f.All = g.Group, g.MemberEpoch, q.RequireStable, g.Topics == nil
	if g.MemberID != nil {
		f.Member = *g.MemberID
	}
	byID, view := q.Version >= 10, s.topics.Topics()
	f.topics = make([]kmsg.OffsetFetchResponseGroupTopic, len(g.Topics))
	// Metadata may be long: a request gets each once, not as often as it likes.
	seen := map[group.TopicPartition]bool{}
	for i := range g.Topics {
		t, rt := &g.Topics[i], &f.topics[i]
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		named := nameTopic(view, byID, t.Topic, t.TopicID)
		rt.Partitions = make([]kmsg.OffsetFetchResponseGroupTopicPartition, 0, len(t.Partitions))
		for _, n := range t.Partitions {
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Partition, p.Offset, p.Metadata = n, -1, &noMetadata
			tp, err := named.partition(n)
			switch {
			case err == nil && seen[tp]:
				continue
			case err == nil:
				seen[tp] = true
				f.Parts = append(f.Parts, group.FetchPart{TopicPartition: tp})
				f.places = append(f.places, offsetPlace{i, len(rt.Partitions)})
			case byID && named.unknown != nil:
				p.ErrorCode = s.refuse(err)
			}
			rt.Partitions = append(rt.Partitions, p)
		}
	}
	return f
}

var noMetadata = ""

func setOffset(p *kmsg.OffsetFetchResponseGroupTopicPartition, found *group.FetchPart) {
	p.Partition = found.Partition
	p.Offset, p.LeaderEpoch, p.Metadata = found.Offset, found.Epoch, &found.Metadata
}

// allOffsets is the answer about all that a group has committed, sorted.
func (s *Server) allOffsets(parts []group.FetchPart) []kmsg.OffsetFetchResponseGroupTopic {
	view := s.topics.Topics()
	var topics []kmsg.OffsetFetchResponseGroupTopic
	for len(parts) > 0 {
		number, n := parts[0].Topic, 1
		for n < len(parts) && parts[n].Topic == number {
			n++
		}
		if t, ok := view.TopicByNumber(number); ok {
			rt := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Name, TopicID: t.ID}
			rt.Partitions = make([]kmsg.OffsetFetchResponseGroupTopicPartition, n)
			for i := range n {
				setOffset(&rt.Partitions[i], &parts[i])
			}
			topics = append(topics, rt)
		}
		parts = parts[n:]
	}
	return topics
}
