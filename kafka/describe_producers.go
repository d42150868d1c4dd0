package kafka

// DescribeProducers (key 61), v0 (KIP-664).
//
// What the leader of a partition remembers of its idempotent producers: those
// that have written within producer.id.expiration.ms, sorted by id, each
// partition once. There are no transactions yet, so none is open.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (s *Server) describeProducers(ctx context.Context, q *kmsg.DescribeProducersRequest) *kmsg.DescribeProducersResponse {
	resp := kmsg.NewPtrDescribeProducersResponse()
	type named struct {
		topic     string
		partition int32
	}
	seen := map[named]bool{}
	for _, t := range q.Topics {
		rt := kmsg.NewDescribeProducersResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			if seen[named{t.Topic, p}] {
				continue
			}
			seen[named{t.Topic, p}] = true
			rp := kmsg.NewDescribeProducersResponseTopicPartition()
			rp.Partition = p
			producers, err := s.producersOf(ctx, t.Topic, p)
			rp.ErrorCode, rp.ErrorMessage, rp.ActiveProducers = s.refuse(err), message(err), producers
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (s *Server) producersOf(ctx context.Context, name string, partition int32) ([]kmsg.DescribeProducersResponseTopicPartitionActiveProducer, error) {
	if _, ok := s.topics.Topics().Topic(name); !ok {
		return nil, noTopic(name)
	}
	tp, err := s.partition(name, partition)
	if err != nil {
		return nil, err
	}
	producers, err := s.admin.Producers(ctx, tp)
	if err != nil {
		return nil, err
	}
	active := make([]kmsg.DescribeProducersResponseTopicPartitionActiveProducer, len(producers))
	for i, p := range producers {
		rp := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		rp.ProducerID, rp.ProducerEpoch, rp.LastSequence, rp.LastTimestamp = p.ID, int32(p.Epoch), p.LastSequence, p.LastTimestamp
		rp.CoordinatorEpoch, rp.CurrentTxnStartOffset = p.CoordinatorEpoch, int64(p.TxnStart)
		active[i] = rp
	}
	return active, nil
}
