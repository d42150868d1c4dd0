package group

// A Request is handed to the Machine of its group's shard, which fills its
// outcome. From then on, until it is answered, nobody else touches it, and
// nothing in it is shared with others. Err is nil or wraps an error of this package.
type Request interface {
	GroupID() string
	Common() *Call
}

// Call is what all requests have.
type Call struct {
	Group string
	Err   error // outcome
	// Done is closed by who drives the Machine, when the request is answered.
	Done chan struct{}
}

// GroupID is the group that the request is about.
func (c *Call) GroupID() string { return c.Group }

// Common is the call itself.
func (c *Call) Common() *Call { return c }

// Protocol is one that a member offers.
type Protocol struct {
	Name     string
	Metadata []byte
}

// Join asks to be a member of the next generation (JoinGroup).
type Join struct {
	Call
	Member                 string // empty: a new one
	Instance               *string
	ClientID, ClientHost   string
	Type                   string     // protocol type
	Protocols              []Protocol // best first
	SessionMS, RebalanceMS int32
	// TwoSteps: a new dynamic member is told its id first, and joins with that (v4 on, KIP-394).
	TwoSteps bool
	// MaySkip: the client understands SkipAssignment (v9 on, KIP-814).
	MaySkip bool
	Reason  string

	// Outcome.
	MemberID       string // also with ErrMemberIDRequired
	Generation     int32  // -1 with an error
	Protocol       string
	Leader         string
	SkipAssignment bool
	Members        []JoinedMember // for the leader only
}

// JoinedMember is a member as its leader sees it.
type JoinedMember struct {
	ID       string
	Instance *string
	Metadata []byte
}

// Sync asks for the member's assignment; the leader's brings them all (SyncGroup).
type Sync struct {
	Call
	Member         string
	Instance       *string
	Generation     int32
	Type, Protocol *string           // nil: not checked (below v5)
	Assignments    map[string][]byte // by member id

	// Outcome.
	ProtocolType, ProtocolName string
	Assignment                 []byte
}

// Heartbeat keeps a member's session.
type Heartbeat struct {
	Call
	Member     string
	Instance   *string
	Generation int32
}

// Leave takes members out of the group.
type Leave struct {
	Call
	Members []LeavingMember
}

// LeavingMember is named by its id, or, with an empty id, by its instance.
type LeavingMember struct {
	Member   string
	Instance *string
	Reason   string
	Err      error // outcome
}

// Commit stores offsets (OffsetCommit). An empty Member with Generation -1 is
// somebody outside the group, who may commit while it has no members.
type Commit struct {
	Call
	Member     string
	Instance   *string
	Generation int32
	Parts      []CommitPart
}

// CommitPart is the share of one partition.
type CommitPart struct {
	Committed       // TimeMS is filled in
	Err       error // outcome
}

// Fetch asks for committed offsets (OffsetFetch).
type Fetch struct {
	Call
	// Member and Generation are those of a member of a KIP-848 group (v9 on); a
	// classic group does not check them, whatever its members send.
	Member     string
	Generation int32 // -1: none
	Stable     bool  // none that a transaction may still change (KIP-447)
	All        bool  // of all partitions: Parts is outcome, sorted
	Parts      []FetchPart
}

// FetchPart is one partition's committed offset; Offset -1 where there is none.
type FetchPart struct {
	TopicPartition
	Offset   int64
	Epoch    int32
	Metadata string
}

// DeleteOffsets forgets offsets (KIP-496).
type DeleteOffsets struct {
	Call
	Parts []DeletePart
}

// DeletePart is the share of one partition.
type DeletePart struct {
	TopicPartition
	Err error // outcome
}

// Delete deletes a group without members, and its offsets.
type Delete struct{ Call }

// Describe tells what a group is; a group that is not there is Dead, with ErrNotFound.
type Describe struct {
	Call
	Description Description
}

// Phase is the state of a group, by Kafka's names.
type Phase string

// Phases.
const (
	Empty               Phase = "Empty"
	PreparingRebalance  Phase = "PreparingRebalance"
	CompletingRebalance Phase = "CompletingRebalance"
	Stable              Phase = "Stable"
	Dead                Phase = "Dead"
)

// Description is a group as it stands.
type Description struct {
	Phase          Phase
	Type, Protocol string // Protocol only while it is chosen
	Generation     int32
	Members        []DescribedMember // those that wait to join included
}

// DescribedMember is a member as it stands; Metadata and Assignment are those
// of the chosen protocol while the group is stable.
type DescribedMember struct {
	ID                   string
	Instance             *string
	ClientID, ClientHost string
	Metadata, Assignment []byte
}

// Listed is a group in a list.
type Listed struct {
	ID, Type string
	Phase    Phase
}
