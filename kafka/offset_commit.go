package kafka

// OffsetCommit (key 8), v1 to v10. (v0 stored in ZooKeeper, for clients that
// know no groups, and is not served.)
//
// Each partition by itself; what a topic or partition is not there for is
// UNKNOWN_TOPIC_OR_PARTITION, from v10 on, by id, UNKNOWN_TOPIC_ID. Of a
// partition that is named twice the last counts. An error of the group is put
// on each partition. v1 dates a commit: it expires offsets.retention.minutes
// after that; v2 to v4 say how long to keep it; -1, and later versions, leave
// that to the group (KIP-211). v6: leader epochs (KIP-320). v7: instance ids
// (KIP-345). From v9 on a member of a group that is not there is told
// GROUP_ID_NOT_FOUND, before ILLEGAL_GENERATION. The empty group id is one
// like others here, for old clients that have no group.

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

func (s *Server) offsetCommit(ctx context.Context, q *kmsg.OffsetCommitRequest) *kmsg.OffsetCommitResponse {
	view := s.topics.Topics()
	commit := &group.Commit{
		Call: group.Call{Group: q.Group}, Member: q.MemberID, Instance: q.InstanceID, Generation: q.Generation,
	}
	expire := expiry(q, time.Now().UnixMilli(), view.Cluster().OffsetsRetentionMS)
	resp := kmsg.NewPtrOffsetCommitResponse()
	resp.Topics = make([]kmsg.OffsetCommitResponseTopic, len(q.Topics))
	var parts []*kmsg.OffsetCommitResponseTopicPartition // of those in commit
	for i := range q.Topics {
		t, rt := &q.Topics[i], &resp.Topics[i]
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		named := nameTopic(view, q.Version >= 10, t.Topic, t.TopicID)
		rt.Partitions = make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			p, rp := &t.Partitions[j], &rt.Partitions[j]
			rp.Partition = p.Partition
			tp, err := named.partition(p.Partition)
			switch {
			case tooLong(q.Group):
				err = group.ErrInvalidGroup
			case err == nil && p.Metadata != nil && tooLong(*p.Metadata):
				err = group.ErrMetadataTooLarge
			}
			if err != nil {
				rp.ErrorCode = s.refuse(err)
				continue
			}
			commit.Parts = append(commit.Parts, group.CommitPart{Committed: committed(tp, p, expire)})
			parts = append(parts, rp)
		}
	}
	if len(parts) == 0 {
		return resp
	}
	err := s.coordinate(ctx, commit)
	if err == nil {
		err = commit.Err
	}
	for i, rp := range parts {
		why := err
		if err == nil {
			why = commit.Parts[i].Err
		}
		rp.ErrorCode = s.refuse(commitError(why, q.Version))
	}
	return resp
}

func committed(tp group.TopicPartition, p *kmsg.OffsetCommitRequestTopicPartition, expire func(stamp int64) int64) group.Committed {
	c := group.Committed{
		TopicPartition: tp, Offset: p.Offset, Epoch: max(-1, p.LeaderEpoch), ExpireMS: expire(p.Timestamp),
	}
	if p.Metadata != nil {
		c.Metadata = *p.Metadata
	}
	return c
}

// expiry says when what a request commits expires whatever else: -1 if that is not its to say.
func expiry(q *kmsg.OffsetCommitRequest, now, retention int64) func(stamp int64) int64 {
	return func(stamp int64) int64 {
		begin, length := now, q.RetentionTimeMillis
		if q.Version == 1 {
			begin, length = stamp, retention
		}
		switch {
		case begin < 0 || length < 0:
			return -1
		case length > math.MaxInt64-begin:
			return math.MaxInt64
		}
		return begin + length
	}
}

// commitError is what a version calls an error.
func commitError(err error, version int16) error {
	switch {
	case errors.Is(err, group.ErrTooLarge):
		return kerr.InvalidCommitOffsetSize
	case errors.Is(err, group.ErrNotFound) && version < 9:
		return group.ErrIllegalGeneration
	case errors.Is(err, group.ErrNotFound):
		return group.ErrNotFound // the coordinator says both
	}
	return err
}
