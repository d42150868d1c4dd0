package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A member is a consumer in a group, by the classic protocol: it joins, gets
// its share from the leader, or is the leader and gives the shares, reads its
// partitions, commits how far it has read, and joins again whenever it is told to.
type member struct {
	world   *world
	history *history
	guide   *guide
	line    *groupLine
	late    *groupLine // for what it sends late
	team    *team
	name    string
	dice    *dice
	habits  habits

	// life counts what it has given up: what comes for an older life is too late.
	life       int
	id         string
	generation int32  // -1: none
	stable     moment // since when it has its share of generation; 0: it has not
	owned      []partition
	reader     *consumer           // of owned; nil while it knows not from where on
	lastCommit moment              // that was acknowledged
	committed  map[partition]int64 // acknowledged, since it has owned it
	committing bool
	asleep     bool
	held       []func() // what waits while it sleeps
	stopped    bool
}

// habits are how a member is made.
type habits struct {
	instance  string // group.instance.id; empty: a dynamic member
	protocols []string
	versions  memberVersions
	session   time.Duration
	rebalance time.Duration
	heartbeat time.Duration
	pace      time.Duration // of commits
	wild      bool          // it stalls, leaves, commits late
}

// memberVersions are those of its requests: of one client of some age.
type memberVersions struct{ find, join, sync, heartbeat, leave, commit, fetch int16 }

func (m *member) begin() {
	m.generation, m.committed = -1, map[partition]int64{}
	m.guide.refresh(func() { m.now(m.join) })
}

// now lets it do something, when it is awake.
func (m *member) now(do func()) {
	switch {
	case m.stopped:
	case m.asleep:
		m.held = append(m.held, do)
	default:
		do()
	}
}

// later lets it do something after d, if it is the same life then.
func (m *member) later(d time.Duration, do func()) {
	life := m.life
	m.world.after(d, func() {
		m.now(func() {
			if m.life == life {
				do()
			}
		})
	})
}

// ask sends a request to the coordinator; the answer is heard in the same life only.
func (m *member) ask(timeout time.Duration, request func() kmsg.Request, done func(kmsg.Response, error)) {
	life := m.life
	m.line.ask(timeout, request, func(resp kmsg.Response, err error) {
		m.now(func() {
			if m.life == life {
				done(resp, err)
			}
		})
	})
}

func (m *member) standing() standing {
	return standing{group: m.team.group, member: m.id, instance: m.habits.instance, generation: m.generation}
}

func (m *member) instance() *string {
	if m.habits.instance == "" {
		return nil
	}
	return &m.habits.instance
}

// patience is how long it waits for an answer that waits for others.
func (m *member) patience() time.Duration {
	return max(m.habits.session, m.habits.rebalance) + 5*time.Second
}

// join asks to be in the next generation.
func (m *member) join() {
	m.life++
	m.stable = 0
	if !m.team.cooperative {
		m.drop()
	}
	a := &attempt{group: m.team.group}
	m.ask(m.patience(), func() kmsg.Request {
		a.sent = m.history.tick()
		m.history.groups.attempts = append(m.history.groups.attempts, a)
		return m.joinRequest()
	}, func(resp kmsg.Response, err error) {
		if err != nil {
			m.world.tracef("%s: join %s: %v", m.name, m.team.group, err)
			m.again()
			return
		}
		a.got = m.history.tick()
		m.joined(resp.(*kmsg.JoinGroupResponse), a.sent)
	})
}

func (m *member) joinRequest() kmsg.Request {
	msg := kmsg.NewPtrJoinGroupRequest()
	msg.Version, msg.Group, msg.MemberID, msg.ProtocolType = m.habits.versions.join, m.team.group, m.id, "consumer"
	msg.SessionTimeoutMillis = int32(m.habits.session / time.Millisecond)
	msg.RebalanceTimeoutMillis = int32(m.habits.rebalance / time.Millisecond)
	msg.InstanceID = m.instance()
	for _, name := range m.habits.protocols {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = name, m.team.subscription(m.owned, m.generation)
		msg.Protocols = append(msg.Protocols, p)
	}
	m.world.tracef("%s joins %s as %q, owns %v", m.name, m.team.group, m.id, m.owned)
	return msg
}

// again joins after a moment.
func (m *member) again() {
	m.later(m.dice.duration(50*time.Millisecond, 200*time.Millisecond), m.join)
}

// joined goes on after the answer to a join.
func (m *member) joined(r *kmsg.JoinGroupResponse, sent moment) {
	if r.ErrorCode == kerr.MemberIDRequired.Code {
		m.id = r.MemberID
		if m.habits.wild && m.dice.chance(0.1) {
			m.vanish() // an id that nobody ever joins with
			return
		}
		m.join()
		return
	}
	if m.refused(r.ErrorCode, "join") {
		return
	}
	m.id, m.generation = r.MemberID, r.Generation
	j := joining{
		standing: m.standing(), sent: sent, got: m.history.tick(),
		leader: r.LeaderID, offered: m.habits.protocols,
	}
	if r.Protocol != nil {
		j.protocol = *r.Protocol
	}
	for _, o := range r.Members {
		j.members = append(j.members, o.MemberID)
	}
	m.history.groups.joinings = append(m.history.groups.joinings, j)
	m.world.heard()
	m.world.tracef("%s is %s by %s, leader %s", m.name, j.standing, j.protocol, j.leader)
	m.sync(r, j)
}

// refused goes on after an error code of the coordinator: it joins again, as
// somebody else if need be. It says whether there was an error.
func (m *member) refused(code int16, what string) bool {
	if !m.world.refused(m.name, code, "%s %s", what, m.standing()) {
		return false
	}
	m.line.moved(code)
	switch code {
	case kerr.FencedInstanceID.Code:
		m.vanish()
		return true
	case kerr.UnknownMemberID.Code:
		m.expelled()
		m.id = ""
		m.lose()
	case kerr.IllegalGeneration.Code:
		m.expelled()
		m.lose()
	}
	m.life++
	m.again()
	return true
}

func (m *member) expelled() {
	if m.id != "" && m.history.groups.settled > 0 {
		m.history.groups.expulsions = append(m.history.groups.expulsions, m.standing())
	}
}

// lose is for partitions that may be another's by now.
func (m *member) lose() {
	m.generation = -1
	m.drop()
}

// drop stops reading.
func (m *member) drop() {
	m.owned = nil
	m.stopReading()
}

func (m *member) stopReading() {
	if m.reader != nil {
		m.reader.stopped = true
		m.reader = nil
	}
}

// vanish is an end without a word, as kill -9 makes it.
func (m *member) vanish() {
	m.world.tracef("%s is gone", m.name)
	m.end()
	if m.dice.chance(0.5) {
		m.guide.hangUp()
	}
}

func (m *member) end() {
	m.stopped, m.line.closed, m.late.closed = true, true, true
	m.stopReading()
}

// sync brings the shares, if it is the leader, and asks for its own.
func (m *member) sync(r *kmsg.JoinGroupResponse, j joining) {
	msg := kmsg.NewPtrSyncGroupRequest()
	msg.Version, msg.Group, msg.Generation, msg.MemberID = m.habits.versions.sync, m.team.group, m.generation, m.id
	msg.InstanceID = m.instance()
	kind := "consumer"
	msg.ProtocolType, msg.Protocol = &kind, &j.protocol
	if j.leader == m.id && !r.SkipAssignment {
		m.allot(msg, r)
	}
	var sent moment
	m.ask(m.patience(), func() kmsg.Request {
		sent = m.history.tick()
		return msg
	}, func(resp kmsg.Response, err error) {
		if err != nil {
			m.world.tracef("%s: sync %s: %v", m.name, m.standing(), err)
			m.again()
			return
		}
		m.synced(resp.(*kmsg.SyncGroupResponse), sent)
	})
}

// allot makes the shares of a new generation.
func (m *member) allot(msg *kmsg.SyncGroupRequest, r *kmsg.JoinGroupResponse) {
	var members []candidate
	for _, o := range r.Members {
		owned, err := ownedIn(o.ProtocolMetadata)
		if err != nil {
			m.world.failf("9: %s was given a subscription of %s that it cannot read: %v", m.name, o.MemberID, err)
		}
		members = append(members, candidate{o.MemberID, owned})
	}
	a := allotment{standing: m.standing(), sent: m.history.tick(), mark: m.team.mark(), shares: m.team.allot(members)}
	m.history.groups.allotments = append(m.history.groups.allotments, a)
	for _, c := range members {
		out := kmsg.NewSyncGroupRequestGroupAssignment()
		out.MemberID, out.MemberAssignment = c.id, assignment(a.shares[c.id], a.mark)
		msg.GroupAssignment = append(msg.GroupAssignment, out)
		m.world.tracef("%s gives %v to %s, %s", m.name, a.shares[c.id], c.id, a.mark)
	}
}

func (m *member) synced(r *kmsg.SyncGroupResponse, sent moment) {
	if m.refused(r.ErrorCode, "sync") {
		return
	}
	share, mark, err := sharesIn(r.MemberAssignment)
	if err != nil {
		m.world.failf("9: %s was given an assignment that it cannot read: %v", m.name, err)
	}
	got := m.history.tick()
	m.history.groups.sharings = append(m.history.groups.sharings, sharing{standing: m.standing(), sent: sent, got: got, mark: mark, partitions: share})
	m.accepted(m.standing(), "a sync", sent)
	m.world.heard()
	m.stable = got
	m.world.tracef("%s has %v, %s", m.name, share, mark)
	m.take(share)
	m.later(m.habits.heartbeat, m.heartbeat)
	m.later(m.habits.pace, m.commitNow)
}

// accepted notes that the coordinator took something from it.
func (m *member) accepted(as standing, what string, sent moment) {
	m.history.groups.acts = append(m.history.groups.acts, act{standing: as, what: what, sent: sent, got: m.history.tick()})
}

// heartbeat keeps its session, and comes again.
func (m *member) heartbeat() {
	if m.habits.wild && m.misbehave() {
		return
	}
	as := m.standing()
	var sent moment
	m.ask(m.guide.timeout, func() kmsg.Request {
		sent = m.history.tick()
		return m.beat(as)
	}, func(resp kmsg.Response, err error) {
		switch {
		case err != nil: // it finds the coordinator, and goes on as it was
		case m.line.moved(resp.(*kmsg.HeartbeatResponse).ErrorCode):
		case resp.(*kmsg.HeartbeatResponse).ErrorCode == kerr.RebalanceInProgress.Code:
			m.rejoin()
			return
		case m.refused(resp.(*kmsg.HeartbeatResponse).ErrorCode, "heartbeat of"):
			return
		default:
			m.accepted(as, "a heartbeat", sent)
		}
		m.later(m.habits.heartbeat, m.heartbeat)
	})
}

func (m *member) beat(as standing) kmsg.Request {
	msg := kmsg.NewPtrHeartbeatRequest()
	msg.Version, msg.Group, msg.Generation, msg.MemberID = m.habits.versions.heartbeat, as.group, as.generation, as.member
	msg.InstanceID = m.instance()
	return msg
}
