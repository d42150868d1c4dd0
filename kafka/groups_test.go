package kafka

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

// commitOf commits for partitions of a topic, which it names both ways, for
// every version: offset 100 + n of partition n.
func commitOf(id, name string, topic siltstone.TopicID, partitions ...int32) *kmsg.OffsetCommitRequest {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Group = id
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = name, topic
	for _, n := range partitions {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = n, 100+int64(n)
		t.Partitions = append(t.Partitions, p)
	}
	q.Topics = append(q.Topics, t)
	return q
}

// fetchOffsetsOf asks for the offsets of partitions of a topic, in the words of every version.
func fetchOffsetsOf(id, name string, topic siltstone.TopicID, partitions ...int32) *kmsg.OffsetFetchRequest {
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Group = id
	q.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: name, Partitions: partitions}}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = id
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: name, TopicID: topic, Partitions: partitions}}
	q.Groups = append(q.Groups, g)
	return q
}

func deleteOffsetsOf(id, name string, partitions ...int32) *kmsg.OffsetDeleteRequest {
	q := kmsg.NewPtrOffsetDeleteRequest()
	q.Group = id
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic = name
	for _, n := range partitions {
		t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: n})
	}
	q.Topics = append(q.Topics, t)
	return q
}
