package kafka

// DescribeTopicPartitions (key 75), v0 (KIP-966).
//
// Metadata's topics page by page: sorted by name, from the cursor on, at most
// as many partitions as the request allows (2,000 at most, 1 at least), with a
// cursor to go on from where there are more. An empty list of topics is all of
// them. A cursor whose topic is not in the list, or with a negative partition,
// is INVALID_REQUEST. There are no eligible leader replicas to report.

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// maxDescribed is Kafka's max.request.partition.size.limit.
const maxDescribed = 2000

func (s *Server) describeTopicPartitions(_ context.Context, q *kmsg.DescribeTopicPartitionsRequest) *kmsg.DescribeTopicPartitionsResponse {
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	view := s.topics.Topics()
	names := describedNames(view, q)
	from, first := "", int32(0)
	if c := q.Cursor; c != nil {
		if !slices.Contains(names, c.Topic) && len(q.Topics) > 0 || c.Partition < 0 {
			for _, name := range names {
				resp.Topics = append(resp.Topics, s.describedError(name, kerr.InvalidRequest))
			}
			return resp
		}
		from, first = c.Topic, c.Partition
	}
	info := s.cluster.Describe()
	left := max(1, min(maxDescribed, q.ResponsePartitionLimit))
	at, _ := slices.BinarySearch(names, from)
	for _, name := range names[at:] {
		if left == 0 {
			resp.NextCursor = describeCursor(name, 0)
			break
		}
		t, ok := view.Topic(name)
		if !ok {
			resp.Topics = append(resp.Topics, s.describedError(name, noTopic(name)))
			continue
		}
		begin := int32(0)
		if name == from {
			begin = min(first, t.Partitions)
		}
		end := min(begin+left, t.Partitions)
		resp.Topics = append(resp.Topics, s.describedTopic(&info, t, begin, end))
		if end < t.Partitions {
			resp.NextCursor = describeCursor(name, end)
			break
		}
		left -= end - begin
	}
	return resp
}

// describedNames are the topics asked for, sorted, each once.
func describedNames(v *topic.View, q *kmsg.DescribeTopicPartitionsRequest) []string {
	var names []string
	for _, t := range q.Topics {
		names = append(names, t.Topic)
	}
	if len(q.Topics) == 0 {
		for _, t := range v.All() {
			names = append(names, t.Name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return slices.Compact(names)
}

func (s *Server) describedError(name string, err error) kmsg.DescribeTopicPartitionsResponseTopic {
	rt := kmsg.NewDescribeTopicPartitionsResponseTopic()
	rt.Topic, rt.ErrorCode = &name, s.refuse(err)
	return rt
}

func (s *Server) describedTopic(info *ClusterInfo, t *topic.Topic, begin, end int32) kmsg.DescribeTopicPartitionsResponseTopic {
	rt := kmsg.NewDescribeTopicPartitionsResponseTopic()
	rt.Topic, rt.TopicID, rt.AuthorizedOperations = &t.Name, t.ID, topicOperations
	var replicas []int32
	for i := begin; i < end; i++ {
		rp := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		leader, epoch, err := s.leader(info, siltstone.TopicPartition{Topic: t.ID, Partition: i})
		rp.Partition, rp.LeaderID, rp.LeaderEpoch, rp.ErrorCode = i, leader, int32(epoch), code(err)
		// They may be null in the protocol, and Java's client breaks if they are.
		rp.EligibleLeaderReplicas, rp.LastKnownELR = []int32{}, []int32{}
		if err == nil {
			replicas = alone(replicas, leader)
			rp.Replicas, rp.ISR = replicas, replicas
		}
		rt.Partitions = append(rt.Partitions, rp)
	}
	return rt
}

func describeCursor(name string, partition int32) *kmsg.DescribeTopicPartitionsResponseNextCursor {
	c := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	c.Topic, c.Partition = name, partition
	return &c
}
