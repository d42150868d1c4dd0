package gateway

import (
	"errors"
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// recordBytes is what a record takes in a batch at least.
const recordBytes = 7

// collector gathers the records of a request into one batch for each
// partition: what is in a batch is appended together or not at all.
type collector struct {
	topic  *topic.Topic
	only   int32 // the partition that the URL names; -1: none
	sticky int32 // of the records without a key
	most   int   // records
	now    int64
	count  int
	shares map[int32]*share
}

// share is the records of one partition.
type share struct {
	partition int32
	builder   *batch.Builder
	bytes     int     // of records, at least
	places    []int32 // of its records in the request
	timestamp int64   // the largest
}

func (c *collector) add(r *incoming) error {
	if c.count == c.most {
		return fmt.Errorf("%w: more than %d records", errBodyTooLarge, c.most)
	}
	p, err := c.choose(r)
	if err != nil {
		return err
	}
	config := c.topic.Config()
	s := c.shares[p]
	if s == nil {
		codec := batch.None
		if !config.AsProduced {
			codec = config.Codec
		}
		s = &share{partition: p, builder: batch.NewBuilder(codec, config.Level()), timestamp: batch.NoTimestamp}
		c.shares[p] = s
	}
	s.bytes += recordBytes + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		s.bytes += len(h.Key) + len(h.Value)
	}
	most := config.MaxMessageBytes
	if !config.AsProduced && config.Codec != batch.None {
		most = config.Rules(c.now).MaxDecompressedBytes
	}
	if s.bytes > most {
		return tooLarge(p, s.bytes, most)
	}
	s.builder.Append(r.Record)
	s.places = append(s.places, int32(c.count))
	s.timestamp = max(s.timestamp, r.Timestamp)
	c.count++
	return nil
}

func tooLarge(partition int32, bytes, most int) error {
	return &detailed{
		fmt.Errorf("%w: the records for partition %d make a batch of %d bytes or more, and max.message.bytes is %d; send fewer at a time",
			siltstone.ErrTooLarge, partition, bytes, most),
		map[string]any{"partition": partition, "max_bytes": most},
	}
}

// choose is the partition of a record: the one it is given, else that of its
// key, else one for all the others of the request.
func (c *collector) choose(r *incoming) (int32, error) {
	switch {
	case c.only >= 0 && r.partition >= 0 && r.partition != c.only:
		return 0, fieldErrorf("it is for partition %d, and the URL is of partition %d", r.partition, c.only)
	case c.only >= 0:
		return c.only, nil
	case r.partition >= c.topic.Partitions:
		return 0, fmt.Errorf("%w %d: topic %s has %d", errNoPartition, r.partition, c.topic.Name, c.topic.Partitions)
	case r.partition >= 0:
		return r.partition, nil
	case r.Key != nil:
		return partitionOf(r.Key, c.topic.Partitions), nil
	}
	return c.sticky, nil
}

// parts is one batch for each partition, in their order, as the topic wants
// it. An error names the first record of the request that is wrong.
func (c *collector) parts() ([]*share, []siltstone.AppendPart, error) {
	if c.count == 0 {
		return nil, nil, fieldErrorf("there are no records")
	}
	shares := make([]*share, 0, len(c.shares))
	for _, s := range c.shares {
		shares = append(shares, s)
	}
	slices.SortFunc(shares, func(a, b *share) int { return int(a.partition - b.partition) })
	parts := make([]siltstone.AppendPart, len(shares))
	for i, s := range shares {
		b, err := s.build(c.topic.Config(), c.now)
		if err != nil {
			return nil, nil, err
		}
		parts[i] = siltstone.AppendPart{
			Partition: siltstone.TopicPartition{Topic: c.topic.ID, Partition: s.partition},
			Batches:   b, Base: -1, LogStart: -1, RepeatedMS: -1,
		}
	}
	return shares, parts, nil
}

// build makes the batch, which is then checked as any producer's is.
func (s *share) build(config *topic.Config, now int64) ([]byte, error) {
	b, err := s.builder.Build()
	if err != nil {
		return nil, err
	}
	s.builder = nil // a copy
	if len(b) > config.MaxMessageBytes {
		return nil, tooLarge(s.partition, len(b), config.MaxMessageBytes)
	}
	if _, err := batch.Validate(b, config.Rules(now)); err != nil {
		if wrong, ok := errors.AsType[*batch.RecordError](err); ok && int(wrong.Index) < len(s.places) {
			return nil, wrongRecord(int(s.places[wrong.Index]), wrong.Err)
		}
		return nil, err
	}
	if config.AppendTime {
		batch.StampAppendTime(b, now)
		s.timestamp = now
	}
	return b, nil
}
