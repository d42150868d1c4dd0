package group

import (
	"container/list"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// Options of a Machine.
type Options struct {
	Epoch  siltstone.Epoch
	Writer siltstone.Incarnation
	// Rand makes member ids.
	Rand func() uint64
	// Wall says what time it is; nil: as the events do.
	Wall func() time.Time
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
//
// What it tells of a generation, of assignments or of offsets is folded. Until
// then what it has decided waits in the changes of its groups.
type Machine struct {
	o         Options
	fold      *State
	now       time.Time // of the present event
	groups    map[string]*classic
	pending   list.List // of *pendingMember, of all groups, oldest first
	deadlines deadlines
	retention deadline

	entryBytes int // that an entry's body may have; less in tests

	changed  []*classic // that have something to propose, each once
	inFlight []*classic // whose changes are, in part or whole, in the entry proposed
	answered []Request
	before   []Request // what Answered last gave
}

// NewMachine goes on from what is folded; sessions of members begin anew.
func NewMachine(fold *State, o Options, now time.Time) *Machine {
	m := &Machine{o: o, fold: fold, now: now, groups: map[string]*classic{}, entryBytes: ledger.MaxBodyBytes}
	m.retention.due = m.expireOffsets
	m.deadlines.set(&m.retention, m.in(o.Settings().RetentionCheckMS))
	for g := range fold.Groups() {
		m.group(g.ID).load(&g.Info)
	}
	return m
}

// wallMS is what time it is, in Unix milliseconds.
func (m *Machine) wallMS() int64 {
	if m.o.Wall == nil {
		return m.now.UnixMilli()
	}
	return m.o.Wall().UnixMilli()
}

// in is a time from now.
func (m *Machine) in(ms int64) time.Time { return m.now.Add(time.Duration(ms) * time.Millisecond) }

// group is the group with an id, made if there is none.
func (m *Machine) group(id string) *classic {
	g := m.groups[id]
	if g == nil {
		g = &classic{m: m, id: id, phase: Empty, members: map[string]*member{}, offers: map[string]int{}}
		g.due.due = g.phaseOver
		m.groups[id] = g
	}
	return g
}

// sorted is all groups, sorted by id.
func (m *Machine) sorted() []*classic {
	all := make([]*classic, 0, len(m.groups))
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		all = append(all, m.groups[id])
	}
	return all
}

// Handle takes a request.
func (m *Machine) Handle(r Request, now time.Time) {
	m.now = now
	g := m.groups[r.GroupID()]
	switch r := r.(type) {
	case *Join:
		m.join(g, r)
	case *Sync:
		m.sync(g, r)
	case *Heartbeat:
		m.heartbeat(g, r)
	case *Leave:
		m.leave(g, r)
	case *Commit:
		m.commit(g, r)
	case *Fetch:
		m.fetch(r)
	case *DeleteOffsets:
		m.deleteOffsets(g, r)
	case *Delete:
		m.delete(g, r)
	case *Describe:
		m.describe(g, r)
	default:
		panic(fmt.Sprintf("group: no request: %T", r))
	}
	if g = m.groups[r.GroupID()]; g != nil {
		g.leaveIfNothing()
	}
}

// answer gives a request back, with its outcome.
func (m *Machine) answer(r Request, err error) {
	r.Common().Err = err
	m.answered = append(m.answered, r)
}

// Answered are the requests whose outcomes are there, each once. The list is
// the caller's until the next call.
func (m *Machine) Answered() []Request {
	list := m.answered
	clear(m.before)
	m.answered, m.before = m.before[:0], list
	return list
}

// Tick does what is due.
func (m *Machine) Tick(now time.Time) {
	m.now = now
	m.deadlines.pass(now)
}

// PutOff has all that is due some time later.
func (m *Machine) PutOff(by time.Duration) { m.deadlines.putOff(by) }

// Due is when Tick is to be called; zero if never.
func (m *Machine) Due() time.Time { return m.deadlines.next() }

// Stop answers all that wait with err. The Machine is not used after it.
func (m *Machine) Stop(err error) {
	for _, g := range m.sorted() {
		for _, mem := range g.sorted() {
			g.refuseWaiting(mem, mem.id, err)
		}
		for _, c := range []*change{g.sending, g.next} {
			switch {
			case c != nil && m.o.Bug.Is(planted.DeposedCommits):
				c.answer(m, nil)
			case c != nil:
				c.answer(m, err)
			}
		}
	}
}

// List is every group that there is, in no order.
func (m *Machine) List() []Listed {
	list := make([]Listed, 0, len(m.groups))
	for _, g := range m.groups {
		list = append(list, Listed{ID: g.id, Type: g.typ, Phase: g.phase})
	}
	return list
}
