package kafka

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

func TestDescribeProducers(t *testing.T) {
	f := start(t)
	made := f.create("t", 2)
	f.admin.known = map[siltstone.TopicPartition][]siltstone.ProducerState{{Topic: made.ID}: {
		{ID: 5, Epoch: 2, LastSequence: 7, LastTimestamp: 1000, CoordinatorEpoch: -1, TxnStart: -1},
		{ID: 9, Epoch: 0, LastSequence: -1, LastTimestamp: 2000, CoordinatorEpoch: 3, TxnStart: 40},
	}}
	q := kmsg.NewPtrDescribeProducersRequest()
	for _, name := range []string{"t", "nowhere", "no name", "t"} {
		rt := kmsg.NewDescribeProducersRequestTopic()
		rt.Topic, rt.Partitions = name, []int32{0, 1, 7, 0}
		q.Topics = append(q.Topics, rt)
	}
	type producer = kmsg.DescribeProducersResponseTopicPartitionActiveProducer
	type part struct {
		Topic     string
		Partition int32
		Error     string
		Producers []producer
	}
	answer := func() (got []part) {
		for _, rt := range ask[*kmsg.DescribeProducersResponse](f.dial(), 0, q).Topics {
			for _, rp := range rt.Partitions {
				if (rp.ErrorMessage == nil) != (rp.ErrorCode == 0) {
					t.Errorf("%+v", rp)
				}
				got = append(got, part{rt.Topic, rp.Partition, errorName(rp.ErrorCode), rp.ActiveProducers})
			}
		}
		return got
	}
	const unknown, invalid = "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"
	want := []part{
		{"t", 0, "", []producer{
			{ProducerID: 5, ProducerEpoch: 2, LastSequence: 7, LastTimestamp: 1000, CoordinatorEpoch: -1, CurrentTxnStartOffset: -1},
			{ProducerID: 9, LastSequence: -1, LastTimestamp: 2000, CoordinatorEpoch: 3, CurrentTxnStartOffset: 40},
		}},
		{"t", 1, "", nil}, {"t", 7, unknown, nil},
		{"nowhere", 0, unknown, nil}, {"nowhere", 1, unknown, nil}, {"nowhere", 7, unknown, nil},
		{"no name", 0, invalid, nil}, {"no name", 1, invalid, nil}, {"no name", 7, invalid, nil},
	}
	if d := cmp.Diff(want, answer(), cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(kmsg.Tags{})); d != "" {
		t.Error(d)
	}
	f.admin.failWith(siltstone.ErrNotLeader)
	if got := answer()[0]; got.Error != "NOT_LEADER_FOR_PARTITION" || len(got.Producers) != 0 {
		t.Errorf("%+v", got)
	}
}
