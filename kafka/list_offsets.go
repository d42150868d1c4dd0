package kafka

// ListOffsets (key 2), v1 to v11. (v0 means something else and is not served.)
//
// For a time: the smallest offset whose record's timestamp is at or after it,
// with that timestamp; offset -1, timestamp -1 and no error where there is none.
// Special times: -1 latest (the last stable offset for read_committed, from v2
// on), -2 earliest, from v7 on -3 the record with the largest timestamp
// (KIP-734), from v8 on -4 the earliest local offset, here the log start, from
// v9 on -5 the latest tiered and from v11 on -6 the earliest pending upload,
// both here as in a Kafka without tiered storage: none. A special time in a
// version that does not have it, or that nobody has, is UNSUPPORTED_VERSION.
// From v4 on a leader epoch comes with both request and answer (KIP-320). The
// timeout of v10 bounds the search; REQUEST_TIMED_OUT after it, and 0, which
// clients send that leave it out, is none: Kafka does not wait for local data.

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

// specialTimes says since which version a negative time has a meaning.
var specialTimes = map[int64]int16{
	siltstone.TimeLatest: 0, siltstone.TimeEarliest: 0, siltstone.TimeMaxTimestamp: 7,
	timeEarliestLocal: 8, timeLatestTiered: 9, timeEarliestPendingUpload: 11,
}

const (
	timeEarliestLocal         = -4
	timeLatestTiered          = -5
	timeEarliestPendingUpload = -6
)

func (s *Server) listOffsets(ctx context.Context, q *kmsg.ListOffsetsRequest) *kmsg.ListOffsetsResponse {
	if q.Version >= 10 && q.TimeoutMillis > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, milliseconds(q.TimeoutMillis))
		defer cancel()
	}
	isolation := siltstone.ReadUncommitted
	if q.IsolationLevel == 1 {
		isolation = siltstone.ReadCommitted
	}
	resp := kmsg.NewPtrListOffsetsResponse()
	for _, t := range q.Topics {
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			found, err := s.offsetForTime(ctx, t.Topic, &p, q.Version, isolation)
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, s.refuse(err)
			if err == nil {
				rp.Offset, rp.Timestamp, rp.LeaderEpoch = int64(found.Offset), found.Timestamp, int32(found.Epoch)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (s *Server) offsetForTime(ctx context.Context, name string, p *kmsg.ListOffsetsRequestTopicPartition,
	version int16, isolation siltstone.Isolation) (siltstone.TimedOffset, error) {
	none := siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}
	at := p.Timestamp
	if at < 0 {
		since, known := specialTimes[at]
		if !known || version < since {
			return none, kerr.UnsupportedVersion
		}
	}
	tp, err := s.partition(name, p.Partition)
	if err != nil {
		return none, err
	}
	switch at {
	case timeEarliestLocal:
		at = siltstone.TimeEarliest
	case timeLatestTiered, timeEarliestPendingUpload:
		return none, nil
	}
	return s.log.OffsetForTime(ctx, tp, at, siltstone.Epoch(p.CurrentLeaderEpoch), isolation)
}

// partition finds a partition by its topic's name.
func (s *Server) partition(name string, partition int32) (siltstone.TopicPartition, error) {
	t, ok := s.topics.Topics().Topic(name)
	if !ok || partition < 0 || partition >= t.Partitions {
		return siltstone.TopicPartition{}, siltstone.ErrUnknownPartition
	}
	return siltstone.TopicPartition{Topic: t.ID, Partition: partition}, nil
}

// milliseconds is a timeout from a request.
func milliseconds(ms int32) time.Duration { return time.Duration(max(ms, 0)) * time.Millisecond }
