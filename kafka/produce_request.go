package kafka

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// produceRequest is a Produce request in which nothing is copied: names and
// records alias the frame. Topics without partitions are left out.
type produceRequest struct {
	acks      int16
	timeoutMS int32
	parts     []producePart
}

// producePart is what one partition is sent, and what becomes of it.
type producePart struct {
	topic     string            // below v13
	topicID   siltstone.TopicID // v13 on
	partition int32
	records   []byte

	err        error // refused by the door
	submitted  int   // its place among what the log was given, if err is nil
	appendTime int64 // ms, or -1: the batch keeps its own times
}

// sameTopic says whether two parts stand under the same topic of an answer.
func (p *producePart) sameTopic(o *producePart) bool {
	return p.topic == o.topic && p.topicID == o.topicID
}

// fewParts is how many partitions a request may name whether or not it is
// long enough to have a batch for each.
const fewParts = 1000

// decodeProduce reads a request of any version. It is like kmsg's, and takes
// two allocations at most, neither larger than the frame.
func decodeProduce(q *produceRequest, version, flexible int16, body []byte) error {
	in := produceReader{Reader: kbin.Reader{Src: body}, compact: version >= flexible}
	if version >= 3 {
		if n := in.length(); n >= 0 {
			in.Span(n) // the transactional id; batches say themselves whether they are
		}
	}
	q.acks, q.timeoutMS = in.Int16(), in.Int32()
	for topics := in.array(); topics > 0 && in.Ok(); topics-- {
		var p producePart
		if version >= 13 {
			p.topicID = in.Uuid()
		} else {
			p.topic = kbin.UnsafeString(in.Span(in.length()))
		}
		for partitions := in.array(); partitions > 0 && in.Ok(); partitions-- {
			p.partition, p.records = in.Int32(), in.bytes()
			in.tags()
			if q.parts = append(q.parts, p); len(q.parts) > fewParts && len(q.parts) > len(body)/batch.HeaderBytes {
				return fmt.Errorf("%w: %d partitions in %d bytes", errMalformed, len(q.parts), len(body))
			}
		}
		in.tags()
	}
	in.tags()
	if !in.Ok() {
		return fmt.Errorf("%w: Produce v%d is cut short", errMalformed, version)
	}
	return nil
}

// produceReader reads the fields of both kinds of version.
type produceReader struct {
	kbin.Reader
	compact bool
}

func (in *produceReader) array() int32 {
	if in.compact {
		return in.CompactArrayLen()
	}
	return in.ArrayLen()
}

// length is a string's; -1 is null.
func (in *produceReader) length() int {
	if in.compact {
		return int(in.Uvarint()) - 1
	}
	return int(in.Int16())
}

func (in *produceReader) bytes() []byte {
	if in.compact {
		return in.CompactNullableBytes()
	}
	return in.NullableBytes()
}

func (in *produceReader) tags() {
	if in.compact {
		skipTags(&in.Reader)
	}
}
