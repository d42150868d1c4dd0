package main

import (
	"errors"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/siltstone-io/siltstone"
)

// TestAnswersOfOthers: what another agent says means here what it means there.
func TestAnswersOfOthers(t *testing.T) {
	if err := answered(0, nil); err != nil {
		t.Error(err)
	}
	for theirs, ours := range map[*kerr.Error]error{
		kerr.NotLeaderForPartition:   siltstone.ErrNotLeader,
		kerr.UnknownTopicOrPartition: siltstone.ErrUnknownPartition,
		kerr.UnknownTopicID:          siltstone.ErrUnknownPartition,
		kerr.OffsetOutOfRange:        siltstone.ErrOffsetOutOfRange,
		kerr.RequestTimedOut:         siltstone.ErrTimedOut,
		kerr.MessageTooLarge:         siltstone.ErrTooLarge,
		kerr.CorruptMessage:          siltstone.ErrCorrupt,
		kerr.KafkaStorageError:       siltstone.ErrUnavailable,
		kerr.UnknownServerError:      siltstone.ErrUnavailable,
	} {
		if err := answered(theirs.Code, nil); !errors.Is(err, ours) {
			t.Errorf("%s: %v", theirs.Message, err)
		}
		why := "why"
		if err := answered(theirs.Code, &why); !errors.Is(err, ours) {
			t.Errorf("%s with a message: %v", theirs.Message, err)
		}
	}
	// What was not sent is not done; of anything else nobody knows.
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	if err := unanswered(dial, siltstone.ErrTimedOut); !errors.Is(err, siltstone.ErrNotLeader) || errors.Is(err, siltstone.ErrTimedOut) {
		t.Error(err)
	}
	read := &net.OpError{Op: "read", Err: errors.New("reset")}
	if err := unanswered(read, siltstone.ErrTimedOut); !errors.Is(err, siltstone.ErrTimedOut) {
		t.Error(err)
	}
}
