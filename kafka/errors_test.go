package kafka

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

func TestKafkaError(t *testing.T) {
	tests := []struct {
		err  error
		want string
		code int16
	}{
		{nil, "", 0},
		{siltstone.ErrUnknownPartition, "UNKNOWN_TOPIC_OR_PARTITION", 3},
		{siltstone.ErrNotLeader, "NOT_LEADER_FOR_PARTITION", 6},
		{siltstone.ErrFencedEpoch, "FENCED_LEADER_EPOCH", 74},
		{siltstone.ErrUnknownEpoch, "UNKNOWN_LEADER_EPOCH", 75},
		{siltstone.ErrOffsetOutOfRange, "OFFSET_OUT_OF_RANGE", 1},
		{siltstone.ErrTimedOut, "REQUEST_TIMED_OUT", 7},
		{siltstone.ErrOutOfOrderSequence, "OUT_OF_ORDER_SEQUENCE_NUMBER", 45},
		{siltstone.ErrProducerEpoch, "INVALID_PRODUCER_EPOCH", 47},
		{siltstone.ErrUnavailable, "KAFKA_STORAGE_ERROR", 56},
		{siltstone.ErrNewerFormat, "KAFKA_STORAGE_ERROR", 56},
		{siltstone.ErrCorrupt, "CORRUPT_MESSAGE", 2},
		{context.DeadlineExceeded, "REQUEST_TIMED_OUT", 7},
		{context.Canceled, "KAFKA_STORAGE_ERROR", 56},
		{batch.ErrCorrupt, "CORRUPT_MESSAGE", 2},
		{batch.ErrMagic, "INVALID_RECORD", 87},
		{batch.ErrInvalid, "INVALID_RECORD", 87},
		{&batch.RecordError{Index: 1, Err: batch.ErrInvalid}, "INVALID_RECORD", 87},
		{batch.ErrTimestamp, "INVALID_TIMESTAMP", 32},
		{batch.ErrCodec, "UNSUPPORTED_COMPRESSION_TYPE", 76},
		{batch.ErrTooLarge, "MESSAGE_TOO_LARGE", 10},
		{topic.ErrInvalidName, "INVALID_TOPIC_EXCEPTION", 17},
		{topic.ErrExists, "TOPIC_ALREADY_EXISTS", 36},
		{topic.ErrUnknown, "UNKNOWN_TOPIC_OR_PARTITION", 3},
		{topic.ErrInvalidPartitions, "INVALID_PARTITIONS", 37},
		{topic.ErrInvalidReplication, "INVALID_REPLICATION_FACTOR", 38},
		{topic.ErrInvalidConfig, "INVALID_CONFIG", 40},
		{&topic.ConfigError{Name: "x", Reason: "y"}, "INVALID_CONFIG", 40},
		{topic.ErrInvalidRequest, "INVALID_REQUEST", 42},
		{topic.ErrTooMany, "POLICY_VIOLATION", 44},
		{group.ErrNotCoordinator, "NOT_COORDINATOR", 16},
		{group.ErrLoading, "COORDINATOR_LOAD_IN_PROGRESS", 14},
		{group.ErrInvalidGroup, "INVALID_GROUP_ID", 24},
		{group.ErrUnknownMember, "UNKNOWN_MEMBER_ID", 25},
		{group.ErrMemberIDRequired, "MEMBER_ID_REQUIRED", 79},
		{group.ErrIllegalGeneration, "ILLEGAL_GENERATION", 22},
		{group.ErrRebalanceInProgress, "REBALANCE_IN_PROGRESS", 27},
		{group.ErrInconsistentProtocol, "INCONSISTENT_GROUP_PROTOCOL", 23},
		{group.ErrInvalidSessionTimeout, "INVALID_SESSION_TIMEOUT", 26},
		{group.ErrFencedInstance, "FENCED_INSTANCE_ID", 82},
		{group.ErrGroupFull, "GROUP_MAX_SIZE_REACHED", 81},
		{group.ErrTooLarge, "MESSAGE_TOO_LARGE", 10},
		{group.ErrInvalidRequest, "INVALID_REQUEST", 42},
		{group.ErrMetadataTooLarge, "OFFSET_METADATA_TOO_LARGE", 12},
		{group.ErrUnknownPartition, "UNKNOWN_TOPIC_OR_PARTITION", 3},
		{group.ErrNotFound, "GROUP_ID_NOT_FOUND", 69},
		{group.ErrNotEmpty, "NON_EMPTY_GROUP", 68},
		{group.ErrSubscribed, "GROUP_SUBSCRIBED_TO_TOPIC", 86},
		{kerr.InvalidRecord, "INVALID_RECORD", 87},
		{fmt.Errorf("ours: %w", kerr.InvalidRecord), "INVALID_RECORD", 87},
		{errors.New("what nobody thought of"), "UNKNOWN_SERVER_ERROR", -1},
	}
	for _, tt := range tests {
		wrapped := tt.err
		if wrapped != nil {
			wrapped = fmt.Errorf("while reading: %w", tt.err)
		}
		for _, err := range []error{tt.err, wrapped} {
			got := ""
			if ke := kafkaError(err); ke != nil {
				got = ke.Message
			}
			if got != tt.want || code(err) != tt.code {
				t.Errorf("%v: %s %d, want %s %d", err, got, code(err), tt.want, tt.code)
			}
		}
	}
}

// TestRefuse: errors are counted by name.
func TestRefuse(t *testing.T) {
	out, _ := newOutbox(t)
	s := out.server
	if s.refuse(nil) != 0 || s.refuse(siltstone.ErrTimedOut) != 7 || s.refuse(siltstone.ErrTimedOut) != 7 {
		t.Error("wrong codes")
	}
	if got := metric(s.metrics.errors.WithLabelValues("REQUEST_TIMED_OUT")); got != 2 {
		t.Errorf("counted %v times, want 2", got)
	}
}

func TestMessage(t *testing.T) {
	if message(nil) != nil {
		t.Error("a message for no error")
	}
	if got := *message(kerr.InvalidRecord); got != kerr.InvalidRecord.Description {
		t.Errorf("%q", got)
	}
	for _, err := range []error{fmt.Errorf("no such thing: %w", kerr.InvalidRequest), fmt.Errorf("%w: no such thing", kerr.InvalidRequest)} {
		if got := *message(err); got != "no such thing" {
			t.Errorf("%q", got)
		}
	}
	if got := *message(&topic.ConfigError{Name: "a", Reason: "b"}); got != "a: b" {
		t.Errorf("%q", got)
	}
}
