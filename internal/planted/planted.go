// Package planted holds known bugs that the simulator must find: each breaks
// one ordering rule of the write path. They test the checker, not the product.
// The code that a bug would break asks Bug.Is where the rule stands; only a
// running test can make a Bug that answers yes, so no binary carries one awake.
package planted

import "testing"

// Name says which rule a bug breaks.
type Name uint8

// The bugs.
const (
	// AckBeforeFlush acknowledges a record that is only buffered.
	AckBeforeFlush Name = iota + 1
	// TimedOutIsFailed takes an append whose outcome is unknown for one that failed.
	TimedOutIsFailed
	// AppendWithoutFolding answers a lost slot by trying the next one, without
	// folding what is in the way.
	AppendWithoutFolding
	// TwoAppendsInFlight starts a ledger's next append before the last is settled.
	TwoAppendsInFlight
	// OldGenerationCommits accepts a commit of offsets from a generation that is over.
	OldGenerationCommits
	// DuplicateBeforeSafe answers what an idempotent producer sends again before
	// its original is safe.
	DuplicateBeforeSafe
	// SequencesNotCheckpointed forgets what is known of producers where a
	// checkpoint is stored.
	SequencesNotCheckpointed
	// GoOnAfterLoss goes on leading after others have taken the agent for dead.
	GoOnAfterLoss
	// AckBeforeHeld acknowledges a record once it is sent to a replica.
	AckBeforeHeld
	// NoEpochCheck takes batches of a leader whose epoch is over.
	NoEpochCheck
	// LeadWithoutTail takes over cleanly from an ISR that the agent is not in.
	LeadWithoutTail
	// TakeOverAlone names an ISR of one at a takeover from more.
	TakeOverAlone
	// JoinWithGap admits a replica to the ISR before it holds what is safe.
	JoinWithGap
	// AckByOldISR acknowledges by the ISR in office while a larger one is in flight.
	AckByOldISR
	// ShrinkUnflushed makes a leader its own ISR before what replication made safe is flushed.
	ShrinkUnflushed
	// LoneAcks: a leader that is its own ISR acknowledges what is not flushed.
	LoneAcks
	// DropBeforeAppend: a replica lets go of what is not flushed.
	DropBeforeAppend
	// RestartedIsSame: an agent that was started again has the name of the one before.
	RestartedIsSame
	// ReuseOffsets: an unclean takeover goes on at the next offset.
	ReuseOffsets
	// FetchAboveHigh gives readers what is not safe.
	FetchAboveHigh
	// DeposedAnswers: who leads no more says where its log ends.
	DeposedAnswers
	// DeposedCommits: a coordinator that has lost its shard accepts what it had not appended.
	DeposedCommits
	// UncleanWhileHeard takes over uncleanly by how long the leader has been
	// silent, however short a time ago another of the ISR lived.
	UncleanWhileHeard
)

// Names are those that the simulator finds.
var Names = []Name{
	AckBeforeFlush, TimedOutIsFailed, AppendWithoutFolding, TwoAppendsInFlight,
	OldGenerationCommits, DuplicateBeforeSafe, SequencesNotCheckpointed,
}

// Replication are those of agents that share shards. Each has its own drill.
var Replication = []Name{
	AckBeforeHeld, NoEpochCheck, LeadWithoutTail, TakeOverAlone, JoinWithGap, AckByOldISR, ShrinkUnflushed,
	LoneAcks, DropBeforeAppend, RestartedIsSame, ReuseOffsets, FetchAboveHigh, DeposedAnswers, DeposedCommits, GoOnAfterLoss,
	UncleanWhileHeard,
}

func (n Name) String() string {
	switch n {
	case AckBeforeFlush:
		return "acknowledge before the flush"
	case TimedOutIsFailed:
		return "treat a timed-out append as failed"
	case AppendWithoutFolding:
		return "append without folding"
	case TwoAppendsInFlight:
		return "two appends in flight"
	case OldGenerationCommits:
		return "accept commits of an old generation"
	case DuplicateBeforeSafe:
		return "answer a duplicate before its original is safe"
	case SequencesNotCheckpointed:
		return "sequences lost at a checkpoint"
	case GoOnAfterLoss:
		return "go on leading after being taken for dead"
	}
	return n.ofReplication()
}

func (n Name) ofReplication() string {
	switch n {
	case AckBeforeHeld:
		return "acknowledge before the replica has it"
	case NoEpochCheck:
		return "no epoch check at the replica"
	case LeadWithoutTail:
		return "lead without a tail from the ISR"
	case TakeOverAlone:
		return "a takeover names itself only"
	case JoinWithGap:
		return "join the ISR with a gap"
	case AckByOldISR:
		return "acknowledge by the old ISR"
	case ShrinkUnflushed:
		return "an ISR of one that is not flushed"
	case LoneAcks:
		return "a lone leader acknowledges what is not flushed"
	case DropBeforeAppend:
		return "a replica drops what is not flushed"
	case RestartedIsSame:
		return "a restarted replica counts as holding"
	case ReuseOffsets:
		return "offsets re-used after an unclean takeover"
	case FetchAboveHigh:
		return "fetch above the high watermark"
	case DeposedAnswers:
		return "a deposed leader answers ListOffsets"
	case DeposedCommits:
		return "a commit by a deposed group coordinator"
	case UncleanWhileHeard:
		return "an unclean takeover by the silence of the leader alone"
	}
	return "no bug"
}

// Bug is at most one planted bug. The zero Bug, all that production code can
// have, is none.
type Bug struct{ name Name }

// Is says whether the rule is to be broken here.
func (b Bug) Is(n Name) bool { return b.name != 0 && b.name == n }

// ForTest plants a bug for one test.
func ForTest(tb testing.TB, n Name) Bug {
	tb.Helper()
	if !testing.Testing() {
		panic("planted: not in a test")
	}
	tb.Logf("planted bug: %s", n)
	return Bug{name: n}
}
