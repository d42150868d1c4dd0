package kafka

// DescribeLogDirs (key 35), v1 to v5.
//
// There is one log dir, the bucket, by its URL, with the partitions that this
// node leads: all of them, or those of the named that it leads, as in Kafka
// without an error for others. A partition's size is that of its record
// batches: the bytes in the bucket that readers may be sent to, and those that
// are in memory only. It counts records once, however many copies there are,
// and not what the jobs have yet to delete. How large a bucket is, and how much
// of it is free (v4), nobody knows: -1. Nothing moves to another log dir, and
// none is cordoned (v5).

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

func (s *Server) describeLogDirs(ctx context.Context, q *kmsg.DescribeLogDirsRequest) *kmsg.DescribeLogDirsResponse {
	var named []siltstone.TopicPartition // nil: all
	if q.Topics != nil {
		named = []siltstone.TopicPartition{}
		seen := map[siltstone.TopicPartition]bool{}
		for _, t := range q.Topics {
			for _, p := range t.Partitions {
				if tp, err := s.partition(t.Topic, p); err == nil && !seen[tp] {
					seen[tp] = true
					named = append(named, tp)
				}
			}
		}
	}
	sizes, err := s.admin.Sizes(ctx, named)
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir, dir.ErrorCode = s.logDir, s.refuse(err)
	dir.Topics = s.sizesByTopic(sizes)
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	resp.Dirs = []kmsg.DescribeLogDirsResponseDir{dir}
	return resp
}

// sizesByTopic sorts by the topics' names; what has no topic any more is left out.
func (s *Server) sizesByTopic(sizes []siltstone.PartitionSize) (topics []kmsg.DescribeLogDirsResponseDirTopic) {
	slices.SortFunc(sizes, func(a, b siltstone.PartitionSize) int { return a.Partition.Compare(b.Partition) })
	view := s.topics.Topics()
	for len(sizes) > 0 {
		id := sizes[0].Partition.Topic
		n := slices.IndexFunc(sizes, func(p siltstone.PartitionSize) bool { return p.Partition.Topic != id })
		if n < 0 {
			n = len(sizes)
		}
		if t, ok := view.TopicByID(id); ok {
			topics = append(topics, sizedTopic(t.Name, sizes[:n]))
		}
		sizes = sizes[n:]
	}
	slices.SortFunc(topics, func(a, b kmsg.DescribeLogDirsResponseDirTopic) int { return strings.Compare(a.Topic, b.Topic) })
	return topics
}

func sizedTopic(name string, sizes []siltstone.PartitionSize) kmsg.DescribeLogDirsResponseDirTopic {
	rt := kmsg.NewDescribeLogDirsResponseDirTopic()
	rt.Topic, rt.Partitions = name, make([]kmsg.DescribeLogDirsResponseDirTopicPartition, len(sizes))
	for i, size := range sizes {
		rp := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		rp.Partition, rp.Size = size.Partition.Partition, size.Stored+size.Buffered
		rt.Partitions[i] = rp
	}
	return rt
}
