package kafka

// DeleteRecords (key 21), v0 to v2 (KIP-107).
//
// A partition's log starts at the offset asked for, -1 its high watermark, and
// records below are gone: for readers at once, and once no other partition's
// records share their object, from the bucket. An offset above the high
// watermark, or below -1, is OFFSET_OUT_OF_RANGE; one at or below the log
// start changes nothing. The answer has the log start, which may be above what
// was asked for. A topic that is only compacted keeps its records
// (POLICY_VIOLATION). What no entry holds within the request's timeout is
// REQUEST_TIMED_OUT, and may come to be all the same.

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

func (s *Server) deleteRecords(ctx context.Context, q *kmsg.DeleteRecordsRequest) *kmsg.DeleteRecordsResponse {
	resp := kmsg.NewPtrDeleteRecordsResponse()
	trim := &siltstone.TrimRequest{Deadline: time.Now().Add(milliseconds(q.TimeoutMillis))}
	var places [][2]int // of the parts of trim, in the answer
	for i, t := range q.Topics {
		rt := kmsg.NewDeleteRecordsResponseTopic()
		rt.Topic = t.Topic
		for j, p := range t.Partitions {
			rp := kmsg.NewDeleteRecordsResponseTopicPartition()
			rp.Partition, rp.LowWatermark = p.Partition, -1
			tp, err := s.trimmable(t.Topic, p.Partition)
			if rp.ErrorCode = s.refuse(err); err == nil {
				trim.Parts = append(trim.Parts, siltstone.TrimPart{Partition: tp, Start: siltstone.Offset(p.Offset)})
				places = append(places, [2]int{i, j})
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	if len(trim.Parts) == 0 {
		return resp
	}
	err := s.admin.Trim(ctx, trim)
	for n, at := range places {
		rp := &resp.Topics[at[0]].Partitions[at[1]]
		if err != nil {
			rp.ErrorCode = s.refuse(err)
			continue
		}
		part := &trim.Parts[n]
		rp.ErrorCode, rp.LowWatermark = s.refuse(part.Err), int64(part.LogStart)
	}
	return resp
}

// trimmable finds a partition whose records may be deleted.
func (s *Server) trimmable(name string, partition int32) (siltstone.TopicPartition, error) {
	tp, err := s.partition(name, partition)
	if err != nil {
		return tp, err
	}
	if t, ok := s.topics.Topics().TopicByID(tp.Topic); ok && t.Config().Compact && !t.Config().Delete {
		return tp, fmt.Errorf("topic %s is only compacted: %w", name, kerr.PolicyViolation)
	}
	return tp, nil
}
