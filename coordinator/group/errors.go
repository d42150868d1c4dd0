package group

import "errors"

// Outcomes of requests; Kafka's errors of the same names.
var (
	ErrNotCoordinator        = errors.New("not the group's coordinator")             // or not any more: retryable
	ErrLoading               = errors.New("the group's coordinator is being loaded") // retryable
	ErrInvalidGroup          = errors.New("invalid group id")                        // empty, where it may not be
	ErrUnknownMember         = errors.New("unknown member")
	ErrMemberIDRequired      = errors.New("join again with the member id of this answer") // KIP-394
	ErrIllegalGeneration     = errors.New("the group is in another generation")
	ErrRebalanceInProgress   = errors.New("the group rebalances")
	ErrInconsistentProtocol  = errors.New("no protocol that all members have")
	ErrInvalidSessionTimeout = errors.New("session timeout out of bounds")
	ErrFencedInstance        = errors.New("another member has the instance id") // KIP-345
	ErrGroupFull             = errors.New("the group has no room")              // GROUP_MAX_SIZE_REACHED
	ErrTooLarge              = errors.New("more than one entry may hold")
	ErrInvalidRequest        = errors.New("invalid request")
	ErrMetadataTooLarge      = errors.New("metadata of an offset is too large") // OFFSET_METADATA_TOO_LARGE
	ErrUnknownPartition      = errors.New("no such topic or partition")
	ErrNotFound              = errors.New("no such group")
	ErrNotEmpty              = errors.New("the group has members")
	ErrSubscribed            = errors.New("the group is subscribed to the topic") // KIP-496
)
