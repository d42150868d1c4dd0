package kafka

import (
	"context"
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// codes says which of Kafka's errors stands for one of ours. The first that
// matches counts.
var codes = []struct {
	err  error
	code *kerr.Error
}{
	// Of the log.
	{siltstone.ErrUnknownPartition, kerr.UnknownTopicOrPartition},
	{siltstone.ErrNotLeader, kerr.NotLeaderForPartition},
	{siltstone.ErrFencedEpoch, kerr.FencedLeaderEpoch},
	{siltstone.ErrUnknownEpoch, kerr.UnknownLeaderEpoch},
	{siltstone.ErrOffsetOutOfRange, kerr.OffsetOutOfRange},
	{siltstone.ErrTimedOut, kerr.RequestTimedOut},
	{siltstone.ErrOutOfOrderSequence, kerr.OutOfOrderSequenceNumber},
	{siltstone.ErrProducerEpoch, kerr.InvalidProducerEpoch},
	// Stored bytes that cannot be read: a client that retries elsewhere or
	// later may have more luck with a store or a release, none with damage.
	{siltstone.ErrUnavailable, kerr.KafkaStorageError},
	{siltstone.ErrNewerFormat, kerr.KafkaStorageError},
	{siltstone.ErrCorrupt, kerr.CorruptMessage},
	{context.DeadlineExceeded, kerr.RequestTimedOut},
	{context.Canceled, kerr.KafkaStorageError},

	// Of a producer's batch. ErrMagic is an invalid record since Kafka 4 has
	// no older format either.
	{batch.ErrCorrupt, kerr.CorruptMessage},
	{batch.ErrMagic, kerr.InvalidRecord},
	{batch.ErrInvalid, kerr.InvalidRecord},
	{batch.ErrTimestamp, kerr.InvalidTimestamp},
	{batch.ErrCodec, kerr.UnsupportedCompressionType},
	{batch.ErrTooLarge, kerr.MessageTooLarge},

	// Of a decision about topics.
	{topic.ErrInvalidName, kerr.InvalidTopicException},
	{topic.ErrExists, kerr.TopicAlreadyExists},
	{topic.ErrUnknown, kerr.UnknownTopicOrPartition},
	{topic.ErrInvalidPartitions, kerr.InvalidPartitions},
	{topic.ErrInvalidReplication, kerr.InvalidReplicationFactor},
	{topic.ErrInvalidConfig, kerr.InvalidConfig},
	{topic.ErrInvalidRequest, kerr.InvalidRequest},
	{topic.ErrTooMany, kerr.PolicyViolation},

	// Of a group. A generation that no entry holds is refused in words that no
	// client retries: Kafka's UNKNOWN_SERVER_ERROR says nothing.
	{group.ErrNotCoordinator, kerr.NotCoordinator},
	{group.ErrLoading, kerr.CoordinatorLoadInProgress},
	{group.ErrInvalidGroup, kerr.InvalidGroupID},
	{group.ErrUnknownMember, kerr.UnknownMemberID},
	{group.ErrMemberIDRequired, kerr.MemberIDRequired},
	{group.ErrIllegalGeneration, kerr.IllegalGeneration},
	{group.ErrRebalanceInProgress, kerr.RebalanceInProgress},
	{group.ErrInconsistentProtocol, kerr.InconsistentGroupProtocol},
	{group.ErrInvalidSessionTimeout, kerr.InvalidSessionTimeout},
	{group.ErrFencedInstance, kerr.FencedInstanceID},
	{group.ErrGroupFull, kerr.GroupMaxSizeReached},
	{group.ErrTooLarge, kerr.MessageTooLarge},
	{group.ErrInvalidRequest, kerr.InvalidRequest},
	{group.ErrMetadataTooLarge, kerr.OffsetMetadataTooLarge},
	{group.ErrUnknownPartition, kerr.UnknownTopicOrPartition},
	{group.ErrNotFound, kerr.GroupIDNotFound},
	{group.ErrNotEmpty, kerr.NonEmptyGroup},
	{group.ErrSubscribed, kerr.GroupSubscribedToTopic},
}

// kafkaError is Kafka's error for one of ours: nil for nil, one of Kafka's for
// itself, UNKNOWN_SERVER_ERROR for what nobody thought of.
func kafkaError(err error) *kerr.Error {
	if err == nil {
		return nil
	}
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return ke
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return kerr.UnknownServerError
}

// code is the number of kafkaError, 0 for nil.
func code(err error) int16 {
	if ke := kafkaError(err); ke != nil {
		return ke.Code
	}
	return 0
}

// message is what an answer's error message says: nil for nil. What Kafka says
// of the error's code is left out where there is more to say.
func message(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		if text == ke.Error() {
			return &ke.Description
		}
		text = strings.TrimPrefix(strings.TrimSuffix(text, ": "+ke.Error()), ke.Error()+": ")
	}
	return &text
}

// refuse is the code that an answer carries for an error, counted and, where
// what is stored is damaged or nobody thought of it, logged now and then.
func (s *Server) refuse(err error) int16 {
	ke := kafkaError(err)
	if ke == nil {
		return 0
	}
	s.metrics.errors.WithLabelValues(ke.Message).Inc()
	if (ke == kerr.UnknownServerError || errors.Is(err, siltstone.ErrCorrupt)) && s.seldom.may("error: "+err.Error()) {
		s.logger.Error("request failed", "err", err)
	}
	return ke.Code
}
