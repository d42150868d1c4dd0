package kafka

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// ofProducer is a batch of an idempotent producer.
func ofProducer(t testing.TB) []byte {
	return headed(t, func(h *batch.Header) { h.ProducerID, h.ProducerEpoch, h.BaseSequence = 4000, 2, 17 })
}

// TestProduceIdempotent: the log gets the producer's fields as they are, also
// where a batch is stamped or compressed anew.
func TestProduceIdempotent(t *testing.T) {
	f := start(t)
	c := f.dial()
	for i, settings := range [][]string{nil, {"compression.type", "gzip"}, {"message.timestamp.type", "LogAppendTime"}} {
		topic := f.create(fmt.Sprint("t", i), 1, settings...)
		for version := int16(3); version <= 13; version++ {
			wantNoError(t, ask[*kmsg.ProduceResponse](c, version, produce(topic, -1, ofProducer(t))))
		}
		for _, b := range f.stored(topic.ID) {
			h, err := batch.Validate(b, batch.Rules{Walk: true})
			if err != nil || h.ProducerID != 4000 || h.ProducerEpoch != 2 || h.BaseSequence != 17 {
				t.Errorf("%v: %+v, %v", settings, h, err)
			}
		}
	}
}

// TestProduceRepeated: the answer is the original's, its time too where the
// topic gives times.
func TestProduceRepeated(t *testing.T) {
	f := start(t)
	c := f.dial()
	f.log.repeatedMS = 1234
	for kind, want := range map[string]int64{"CreateTime": -1, "LogAppendTime": 1234} {
		topic := f.create(kind, 1, "message.timestamp.type", kind)
		resp := ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, ofProducer(t)))
		p := resp.Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.BaseOffset != 5 || p.LogAppendTime != want {
			t.Errorf("%s: %s, base offset %d, append time %d; want %d", kind, errorName(p.ErrorCode), p.BaseOffset, p.LogAppendTime, want)
		}
	}
}

func TestProduceOutOfSequence(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	c := f.dial()
	for want, err := range map[string]error{
		"OUT_OF_ORDER_SEQUENCE_NUMBER": siltstone.ErrOutOfOrderSequence,
		"INVALID_PRODUCER_EPOCH":       siltstone.ErrProducerEpoch,
	} {
		f.log.failWith(func(siltstone.TopicPartition) error { return err })
		resp := ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, ofProducer(t)))
		if p := resp.Topics[0].Partitions[0]; errorName(p.ErrorCode) != want || p.BaseOffset != -1 {
			t.Errorf("%s, base offset %d; want %s", errorName(p.ErrorCode), p.BaseOffset, want)
		}
	}
}
