package kafka

// Produce (key 0), v0 to v13; v0 to v2 are answered UNSUPPORTED_VERSION,
// partition by partition (KAFKA-18659).
//
// Partitions are checked each by itself, and those that pass go to the log
// together. One has exactly one batch, of format v2 (INVALID_RECORD; v3 on).
// MESSAGE_TOO_LARGE above max.message.bytes. CORRUPT_MESSAGE where the CRC or
// the lengths do not fit, INVALID_RECORD where the records do not match their
// header, or have no key on a compacted topic, INVALID_TIMESTAMP outside
// message.timestamp.before.max.ms and .after.max.ms. From v8 on the answer
// names the record and says why. On a topic with LogAppendTime the batch is
// stamped, and the answer has the time (v2 on). On a topic with a compression
// type of its own a batch of another is compressed anew. zstd below v7 is
// UNSUPPORTED_COMPRESSION_TYPE.
//
// The batch of an idempotent producer (KIP-98) follows its last one, or repeats
// one of its last five: then the answer is the original's, once that is as safe
// as acks asks for, with the original's time where the topic has LogAppendTime.
// Otherwise it is OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_PRODUCER_EPOCH. A
// producer id with a negative epoch or sequence is INVALID_RECORD.
//
// Clients do not write markers: a control batch is INVALID_RECORD. There is no
// state for transactions yet, so a batch with the transactional bit is
// UNSUPPORTED_FOR_MESSAGE_FORMAT, which no client retries: that is Kafka's word
// for a log that cannot keep what the batch claims.
//
// acks are -1, 0 or 1 (INVALID_REQUIRED_ACKS). With 0 there is no answer; an
// error closes the connection, so that the client learns of it. From v10 on an
// answer with NOT_LEADER_OR_FOLLOWER says who leads (KIP-951). v13 names
// topics by id.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// produceAnswer is a Produce request under way.
type produceAnswer struct {
	request *request
	produceRequest
	appended siltstone.AppendRequest // Done is nil where nothing was submitted

	// Room for the usual request, of one partition.
	onePart  [1]producePart
	oneShare [1]siltstone.AppendPart
}

func startProduce(c *conn, r *request) (answer, error) {
	a := &produceAnswer{request: r}
	a.parts, a.appended.Parts = a.onePart[:0], a.oneShare[:0]
	if err := decodeProduce(&a.produceRequest, r.version, r.api.flexible, r.body); err != nil {
		return nil, err
	}
	view := r.server.topics.Topics()
	for i := range a.parts {
		p := &a.parts[i]
		p.appendTime = -1
		tp, err := a.check(view, p)
		if err != nil {
			p.err = err
			continue
		}
		p.submitted = len(a.appended.Parts)
		a.appended.Parts = append(a.appended.Parts, siltstone.AppendPart{
			Partition: tp, Batches: p.records, Base: -1, LogStart: -1, RepeatedMS: -1,
		})
	}
	if len(a.appended.Parts) == 0 {
		return a, nil
	}
	a.appended.Acks = a.acks
	a.appended.Deadline = r.arrived.Add(milliseconds(a.timeoutMS))
	a.appended.Done = make(chan struct{})
	if err := r.server.log.Append(c.ctx, &a.appended); err != nil {
		for i := range a.parts {
			if p := &a.parts[i]; p.err == nil {
				p.err = err
			}
		}
		a.appended.Done = nil
	}
	return a, nil
}

// check finds a part's partition and makes its batch ready for the log.
func (a *produceAnswer) check(view *topic.View, p *producePart) (siltstone.TopicPartition, error) {
	tp := siltstone.TopicPartition{Partition: p.partition}
	switch {
	case a.request.version < 3:
		return tp, kerr.UnsupportedVersion
	case a.acks < -1 || a.acks > 1:
		return tp, kerr.InvalidRequiredAcks
	}
	var t *topic.Topic
	var ok bool
	if a.request.version >= 13 {
		if t, ok = view.TopicByID(p.topicID); !ok {
			return tp, kerr.UnknownTopicID
		}
	} else if t, ok = view.Topic(p.topic); !ok {
		return tp, siltstone.ErrUnknownPartition
	}
	if tp.Topic = t.ID; p.partition < 0 || p.partition >= t.Partitions {
		return tp, siltstone.ErrUnknownPartition
	}
	return tp, p.checkBatch(t.Config(), a.request)
}

// checkBatch holds a batch against the topic's settings and makes of it what
// they ask for.
func (p *producePart) checkBatch(config *topic.Config, r *request) error {
	now := r.arrived.UnixMilli()
	if len(p.records) == 0 {
		return fmt.Errorf("no record batch: %w", kerr.InvalidRecord)
	}
	if h, err := batch.ParseHeader(p.records); err != nil {
		return err
	} else if h.SizeBytes() < len(p.records) {
		return fmt.Errorf("more than one record batch: %w", kerr.InvalidRecord)
	}
	if err := checkSize(p.records, config); err != nil {
		return err
	}
	rules := config.Rules(now)
	h, err := batch.Validate(p.records, rules)
	if wrong, ok := errors.AsType[*batch.MaxTimestampError](err); ok {
		batch.StampMaxTimestamp(p.records, wrong.Records)
	} else if err != nil {
		return err
	}
	if err := mayProduce(h, r.version); err != nil {
		return err
	}
	if !config.AsProduced && h.Attributes.Codec() != config.Codec {
		if err := p.recompress(config, r, rules.MaxDecompressedBytes); err != nil {
			return err
		}
	}
	if config.AppendTime {
		batch.StampAppendTime(p.records, now)
		p.appendTime = now
	}
	return nil
}

// recompress makes another batch of the part's, which counts as far as it is
// longer: a small request may have many that become large.
func (p *producePart) recompress(config *topic.Config, r *request, most int) error {
	r.server.recompressing <- struct{}{}
	defer func() { <-r.server.recompressing }()
	made, err := batch.Recompress(p.records, config.Codec, config.Level(), most)
	if err != nil {
		return err
	}
	if err := checkSize(made, config); err != nil {
		return err
	}
	if longer := len(made) - len(p.records); longer > 0 && !r.grow(int64(longer)) {
		return fmt.Errorf("no memory for a batch of %d bytes, compressed anew: %w", len(made), siltstone.ErrUnavailable)
	}
	p.records = made
	return nil
}

func checkSize(records []byte, config *topic.Config) error {
	if len(records) > config.MaxMessageBytes {
		return fmt.Errorf("a batch of %d bytes, and max.message.bytes is %d: %w",
			len(records), config.MaxMessageBytes, kerr.MessageTooLarge)
	}
	return nil
}

// mayProduce refuses what a client may not write, or not yet.
func mayProduce(h batch.Header, version int16) error {
	switch a := h.Attributes; {
	case a.Control():
		return fmt.Errorf("clients do not write control batches: %w", kerr.InvalidRecord)
	case a.DeleteHorizon():
		return fmt.Errorf("clients do not set a delete horizon: %w", kerr.InvalidRecord)
	case a.LogAppendTime():
		return fmt.Errorf("clients do not set the timestamp type to LogAppendTime: %w", kerr.InvalidTimestamp)
	case a.Transactional():
		return fmt.Errorf("transactions are not served yet: %w", kerr.UnsupportedForMessageFormat)
	case a.Codec() == batch.Zstd && version < 7:
		return fmt.Errorf("zstd needs Produce v7: %w", kerr.UnsupportedCompressionType)
	}
	return nil
}

func (a *produceAnswer) ready() bool {
	if a.appended.Done == nil {
		return true
	}
	select {
	case <-a.appended.Done:
		return true
	default:
		return false
	}
}

func (a *produceAnswer) respond(_ context.Context, out *outbox) error {
	// The log has the frame until Done closes, so there is no other way out
	// than the end of the server, and then the frame is left alone.
	if a.appended.Done != nil {
		select {
		case <-a.appended.Done:
		case <-a.request.server.stopped:
			a.request.abandon()
			return errStopping
		}
	}
	if a.acks != 0 {
		a.encode(out)
		return nil
	}
	a.request.api.seconds.Observe(time.Since(a.request.arrived).Seconds())
	for i := range a.parts {
		if err := a.outcome(&a.parts[i]); err != nil {
			a.request.server.refuse(err)
			return fmt.Errorf("%w: %w", errNoReply, err)
		}
	}
	return nil
}

// outcome is a part's error.
func (a *produceAnswer) outcome(p *producePart) error {
	if p.err != nil {
		return p.err
	}
	return a.appended.Parts[p.submitted].Err
}

// encode writes the answer, in memory that the outbox keeps.
func (a *produceAnswer) encode(out *outbox) {
	s, version := a.request.server, a.request.version
	resp := &out.produce
	resp.Default()
	topics, partitions := resp.Topics[:0], out.partitions[:0]
	resp.Brokers = resp.Brokers[:0]
	for i := range a.parts {
		partitions = append(partitions, a.encodePart(&a.parts[i]))
		if version >= 10 && partitions[i].ErrorCode == kerr.NotLeaderForPartition.Code {
			share := &a.appended.Parts[a.parts[i].submitted]
			partitions[i].CurrentLeader, resp.Brokers = s.currentLeader(share.Partition, resp.Brokers)
		}
	}
	for first := 0; first < len(partitions); {
		end := first + 1
		for end < len(partitions) && a.parts[end].sameTopic(&a.parts[first]) {
			end++
		}
		t := kmsg.NewProduceResponseTopic()
		t.Topic, t.TopicID, t.Partitions = a.parts[first].topic, a.parts[first].topicID, partitions[first:end]
		topics = append(topics, t)
		first = end
	}
	resp.Topics, out.partitions = topics, partitions
	out.message(a.request, resp)
	clear(topics) // the names alias the frame
}

func (a *produceAnswer) encodePart(p *producePart) kmsg.ProduceResponseTopicPartition {
	rp := kmsg.NewProduceResponseTopicPartition()
	rp.Partition, rp.BaseOffset = p.partition, -1
	if err := a.outcome(p); err != nil {
		code := a.request.server.refuse(err)
		if a.request.version < 4 && code == kerr.KafkaStorageError.Code { // came with v4
			code = kerr.NotLeaderForPartition.Code
		}
		rp.ErrorCode, rp.ErrorMessage = code, message(err)
		if record, ok := errors.AsType[*batch.RecordError](err); ok {
			er := kmsg.NewProduceResponseTopicPartitionErrorRecord()
			er.RelativeOffset, er.ErrorMessage = record.Index, message(record.Err)
			rp.ErrorRecords = append(rp.ErrorRecords, er)
		}
		return rp
	}
	share := &a.appended.Parts[p.submitted]
	rp.BaseOffset, rp.LogStartOffset, rp.LogAppendTime = int64(share.Base), int64(share.LogStart), p.appendTime
	if p.appendTime >= 0 && share.RepeatedMS >= 0 {
		rp.LogAppendTime = share.RepeatedMS
	}
	return rp
}

// currentLeader is who leads a partition, and its node among the others that
// the answer names (KIP-951).
func (s *Server) currentLeader(tp siltstone.TopicPartition, nodes []kmsg.ProduceResponseBroker) (kmsg.ProduceResponseTopicPartitionCurrentLeader, []kmsg.ProduceResponseBroker) {
	leader := kmsg.NewProduceResponseTopicPartitionCurrentLeader()
	info := s.cluster.Describe()
	id, epoch, err := s.leader(&info, tp)
	if err != nil {
		return leader, nodes
	}
	leader.LeaderID, leader.LeaderEpoch = id, int32(epoch)
	for i := range nodes {
		if nodes[i].NodeID == id {
			return leader, nodes
		}
	}
	n, _ := info.node(id)
	b := kmsg.NewProduceResponseBroker()
	b.NodeID, b.Host, b.Port, b.Rack = n.ID, n.Host, n.Port, n.rack()
	return leader, append(nodes, b)
}
