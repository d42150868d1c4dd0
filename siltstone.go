// Package siltstone holds the words that the parts of Siltstone share: what a
// partition, an offset and an epoch are, how a partition finds its shard, the
// requests that a door hands to the log, and the sentinels of their outcomes.
// It depends on the standard library alone and runs nothing.
package siltstone

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
)

// Constants of the formats.
const (
	// Slots is how many slots partitions are hashed into, for ever.
	Slots = 4096
	// UncleanJump is how far an unclean Lead moves the next offset of every
	// open partition; a leader gives out no offset at or past its folded
	// next offset plus this.
	UncleanJump = 1 << 20
)

// TopicID names a topic for ever; a topic made again under an old name has a new one (KIP-516).
type TopicID [16]byte

// String is the id as Kafka's tools print it: base64 for URLs, without padding.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ClusterID names a cluster for ever; its coordinator and its bucket both carry it.
type ClusterID [16]byte

// String is the id as Kafka's tools print it: base64 for URLs, without padding.
func (id ClusterID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseClusterID is the inverse of String.
func ParseClusterID(s string) (id ClusterID, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is not a cluster id", s)
	}
	return ClusterID(b), nil
}

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     TopicID
	Partition int32
}

func (tp TopicPartition) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

// Slot is the partition's place among Slots: FNV-1a (64 bit) of the id and the
// big-endian partition number, its halves XORed, modulo Slots.
func (tp TopicPartition) Slot() uint16 {
	h := fnv.New64a()
	p := uint32(tp.Partition)
	_, _ = h.Write(tp.Topic[:])
	_, _ = h.Write([]byte{byte(p >> 24), byte(p >> 16), byte(p >> 8), byte(p)})
	sum := h.Sum64()
	return uint16((sum ^ sum>>32) % Slots)
}

// Compare orders partitions by topic id, then number.
func (tp TopicPartition) Compare(o TopicPartition) int {
	for i := range tp.Topic {
		if tp.Topic[i] != o.Topic[i] {
			return int(tp.Topic[i]) - int(o.Topic[i])
		}
	}
	return int(tp.Partition) - int(o.Partition)
}

// Offset is a record's place in its partition.
type Offset int64

// Epoch is a leader epoch: it grows by at least one with every election of a shard.
type Epoch int32

// Incarnation is one run of an agent. A restarted process is another incarnation.
// The zero value is nobody.
type Incarnation uint64

// String is the incarnation as it stands in object keys: 16 hex digits.
func (i Incarnation) String() string {
	return hex.EncodeToString([]byte{byte(i >> 56), byte(i >> 48), byte(i >> 40), byte(i >> 32), byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
}

// ParseIncarnation reads what String gives.
func ParseIncarnation(s string) (Incarnation, error) {
	i, err := strconv.ParseUint(s, 16, 64)
	if err != nil || len(s) != 16 {
		return 0, fmt.Errorf("%q is no incarnation: %w", s, ErrCorrupt)
	}
	return Incarnation(i), nil
}

// Outcomes that a caller branches on. Wrap them with the operation.
var (
	// ErrUnknownPartition: no such topic or partition (any more, or yet).
	ErrUnknownPartition = errors.New("unknown topic or partition")
	// ErrNotLeader: this agent does not lead the partition's shard, or has lost it. Retryable.
	ErrNotLeader = errors.New("not the leader")
	// ErrFencedEpoch: the caller's leader epoch is older than the partition's.
	ErrFencedEpoch = errors.New("leader epoch is fenced")
	// ErrUnknownEpoch: the caller's leader epoch is newer than this agent's. Retryable.
	ErrUnknownEpoch = errors.New("leader epoch is not known yet")
	// ErrOffsetOutOfRange: the offset is below the log start or past the end.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrOutOfOrderSequence: a batch of an idempotent producer neither follows
	// its last one nor repeats one that is remembered.
	ErrOutOfOrderSequence = errors.New("out of order sequence number")
	// ErrProducerEpoch: a batch of an epoch that its producer has left.
	ErrProducerEpoch = errors.New("producer epoch is old")
	// ErrTimedOut: not acknowledged within the caller's time; it may yet be written.
	ErrTimedOut = errors.New("timed out before it was safe")
	// ErrTooLarge: more than one request or one batch may hold.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable: a store cannot be reached, or the agent is stopping. Retryable.
	ErrUnavailable = errors.New("unavailable")
	// ErrCorrupt: stored bytes fail their check.
	ErrCorrupt = errors.New("corrupt")
	// ErrForeign: not Siltstone's, or of another cluster.
	ErrForeign = errors.New("belongs to something else")
	// ErrNewerFormat: stored by a newer release than this one.
	ErrNewerFormat = errors.New("written by a newer format")
)
