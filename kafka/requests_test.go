package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// What tests send.

// oneBatch is a batch of values, stamped with 1, 2, 3... ms.
func oneBatch(t testing.TB, codec batch.Codec, values ...string) []byte {
	t.Helper()
	b := batch.NewBuilder(codec, 0)
	for i, v := range values {
		b.Append(batch.Record{Timestamp: int64(i + 1), Value: []byte(v)})
	}
	return build(t, b)
}

func build(t testing.TB, b *batch.Builder) []byte {
	t.Helper()
	made, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// produce asks for a batch to be appended to each partition of a topic from 0
// on. It names the topic both ways, for every version.
func produce(to *topic.Topic, acks int16, batches ...[]byte) *kmsg.ProduceRequest {
	q := kmsg.NewPtrProduceRequest()
	q.Acks, q.TimeoutMillis = acks, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = to.Name, to.ID
	for i, b := range batches {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i), b
		t.Partitions = append(t.Partitions, p)
	}
	q.Topics = append(q.Topics, t)
	return q
}

// fetchTopics asks for partitions from offset 0 on, 1 MiB each.
func fetchTopics(name string, id siltstone.TopicID, partitions ...int32) []kmsg.FetchRequestTopic {
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = name, id
	for _, n := range partitions {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.PartitionMaxBytes = n, 1<<20
		t.Partitions = append(t.Partitions, p)
	}
	return []kmsg.FetchRequestTopic{t}
}

// named is an ApiVersions request of a client with a name.
func named(software, version string) *kmsg.ApiVersionsRequest {
	q := kmsg.NewPtrApiVersionsRequest()
	q.ClientSoftwareName, q.ClientSoftwareVersion = software, version
	return q
}

// errorName is Kafka's name for a code; "" for none.
func errorName(code int16) string {
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	return ""
}

// newStranger is a topic that the server does not have.
func newStranger() *topic.Topic {
	return &topic.Topic{Name: "stranger", ID: siltstone.TopicID{0xff}}
}
