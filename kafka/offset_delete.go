package kafka

// OffsetDelete (key 47), v0 (KIP-496).
//
// Forgets offsets, each partition by itself: UNKNOWN_TOPIC_OR_PARTITION,
// GROUP_SUBSCRIBED_TO_TOPIC while a member reads the topic. Nothing committed
// is no error. An error of the group is the answer's, without partitions.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

func (s *Server) offsetDelete(ctx context.Context, q *kmsg.OffsetDeleteRequest) *kmsg.OffsetDeleteResponse {
	view := s.topics.Topics()
	forget := &group.DeleteOffsets{Call: group.Call{Group: q.Group}}
	resp := kmsg.NewPtrOffsetDeleteResponse()
	resp.Topics = make([]kmsg.OffsetDeleteResponseTopic, len(q.Topics))
	var parts []*kmsg.OffsetDeleteResponseTopicPartition // of those in forget
	for i := range q.Topics {
		t, rt := &q.Topics[i], &resp.Topics[i]
		rt.Topic = t.Topic
		named := nameTopic(view, false, t.Topic, [16]byte{})
		rt.Partitions = make([]kmsg.OffsetDeleteResponseTopicPartition, len(t.Partitions))
		for j, p := range t.Partitions {
			rp := &rt.Partitions[j]
			rp.Partition = p.Partition
			tp, err := named.partition(p.Partition)
			if err != nil {
				rp.ErrorCode = s.refuse(err)
				continue
			}
			forget.Parts = append(forget.Parts, group.DeletePart{TopicPartition: tp})
			parts = append(parts, rp)
		}
	}
	err := s.coordinate(ctx, forget)
	if err == nil {
		err = forget.Err
	}
	if err != nil {
		resp.ErrorCode, resp.Topics = s.refuse(err), nil
		return resp
	}
	for i, rp := range parts {
		rp.ErrorCode = s.refuse(forget.Parts[i].Err)
	}
	return resp
}
