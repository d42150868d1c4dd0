package kafka

// OffsetForLeaderEpoch (key 23), v2 to v4.
//
// The largest leader epoch up to the one asked for, and where it ends
// (KIP-101): -1 and -1 where there is none. The reader's current leader epoch
// is checked (KIP-320): FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH. v3 adds a
// replica id, which means nothing here; v4 is flexible.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

func (s *Server) offsetForLeaderEpoch(ctx context.Context, q *kmsg.OffsetForLeaderEpochRequest) *kmsg.OffsetForLeaderEpochResponse {
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	for _, t := range q.Topics {
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			rp.Partition = p.Partition
			tp, err := s.partition(t.Topic, p.Partition)
			var end siltstone.EpochEnd
			if err == nil {
				end, err = s.log.EpochEnd(ctx, tp, siltstone.Epoch(p.LeaderEpoch), siltstone.Epoch(p.CurrentLeaderEpoch))
			}
			rp.ErrorCode = s.refuse(err)
			if err == nil {
				rp.LeaderEpoch, rp.EndOffset = int32(end.Epoch), int64(end.End)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}
