package group

import (
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// Options of a Machine.
type Options struct {
	Epoch  siltstone.Epoch
	Writer siltstone.Incarnation
	// Rand makes member ids.
	Rand func() uint64
	// Settings are read anew with every event.
	Settings func() Settings
	// Topic finds the short number of a topic by its name, Exists says whether
	// a topic has so many partitions (that partition exists).
	Topic  func(name string) (number uint32, ok bool)
	Exists func(TopicPartition) bool
	Bug    planted.Bug // tests only
}

// Settings of groups: Kafka's broker configs of these names.
type Settings struct {
	InitialDelayMS             int32 // group.initial.rebalance.delay.ms
	MinSessionMS, MaxSessionMS int32 // group.min.session.timeout.ms, group.max.session.timeout.ms
	MaxMembers                 int   // group.max.size
	MaxMetadataBytes           int   // offset.metadata.max.bytes
	RetentionMS                int64 // offsets.retention.minutes
	RetentionCheckMS           int64 // offsets.retention.check.interval.ms
}

// Machine coordinates the groups of one shard, in one epoch.
type Machine struct{}

// NewMachine goes on from what is folded; sessions of members begin anew.
func NewMachine(fold *State, o Options, now time.Time) *Machine { return &Machine{} }

// Handle takes a request.
func (m *Machine) Handle(r Request, now time.Time) {}

// TopicsDeleted forgets the offsets of partitions that are not there any more.
func (m *Machine) TopicsDeleted(now time.Time) {}

// Tick does what is due. Due is when that is next; zero if never.
func (m *Machine) Tick(now time.Time) {}

// Due is when Tick is to be called.
func (m *Machine) Due() time.Time { return time.Time{} }

// Propose is the next entry, as much of what is decided as fits into one; nil
// if nothing is. The caller appends it, and calls Folded once it is folded;
// only then may it call Propose again.
func (m *Machine) Propose() *Update { return nil }

// Folded says that the proposed entry is in the fold.
func (m *Machine) Folded(now time.Time) {}

// Answered are the requests whose outcomes are there, each once.
func (m *Machine) Answered() []Request { return nil }

// Stop answers all that wait with err. The Machine is not used after it.
func (m *Machine) Stop(err error) {}

// List is every group that there is, sorted by id.
func (m *Machine) List() []Listed { return nil }
