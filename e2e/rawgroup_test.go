package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// rawMember is a member of a group that sends the requests of groups itself, at
// versions of its choice. It joins, is assigned its own id by the leader, beats,
// and joins again when it is told to.
type rawMember struct {
	cl      *kgo.Client
	group   string
	session time.Duration
	stop    context.CancelFunc
	done    chan struct{}

	mu          sync.Mutex
	id          string
	generations []int32 // that it was in
	beats       int     // answered without an error
	errors      []string
}

var groupRequests = []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup}

// raw starts a member, whose requests have at most this version.
func (s *server) raw(t *testing.T, group string, version int16, session time.Duration) *rawMember {
	t.Helper()
	versions := kversion.Stable()
	for _, key := range groupRequests {
		limit, _ := versions.LookupMaxKeyVersion(key.Int16())
		versions.SetMaxKeyVersion(key.Int16(), min(version, limit))
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.kafka), kgo.MaxVersions(versions), kgo.AlwaysRetryEOF())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := &rawMember{cl: cl, group: group, session: session, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		m.run(ctx)
	}()
	t.Cleanup(m.vanish)
	return m
}

// vanish ends a member, which does not leave its group.
func (m *rawMember) vanish() {
	m.stop()
	<-m.done
	m.cl.Close()
}

func (m *rawMember) run(ctx context.Context) {
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for joined := false; ctx.Err() == nil; <-pace.C {
		if !joined {
			joined = m.join(ctx)
		} else if code := m.beat(ctx); code != "" {
			joined = false
			m.failed(code, "REBALANCE_IN_PROGRESS")
		}
	}
}

// failed notes an error, unless it is in order.
func (m *rawMember) failed(code string, inOrder ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(inOrder, code) {
		m.errors = append(m.errors, code)
	}
}

func (m *rawMember) join(ctx context.Context) bool {
	q := kmsg.NewPtrJoinGroupRequest()
	q.Group, q.ProtocolType = m.group, "consumer"
	q.SessionTimeoutMillis = int32(m.session.Milliseconds())
	q.RebalanceTimeoutMillis = q.SessionTimeoutMillis
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name = "range"
	q.Protocols = append(q.Protocols, p)
	m.mu.Lock()
	q.MemberID = m.id
	m.mu.Unlock()
	resp := send[*kmsg.JoinGroupResponse](ctx, m, q)
	if resp == nil {
		return false
	}
	m.mu.Lock()
	m.id = resp.MemberID
	m.mu.Unlock()
	if code := errorName(resp.ErrorCode); code != "" {
		m.failed(code, "MEMBER_ID_REQUIRED")
		return false
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = m.group, resp.MemberID, resp.Generation
	if resp.LeaderID == resp.MemberID {
		for _, other := range resp.Members {
			a := kmsg.NewSyncGroupRequestGroupAssignment()
			a.MemberID, a.MemberAssignment = other.MemberID, []byte(other.MemberID)
			sync.GroupAssignment = append(sync.GroupAssignment, a)
		}
	}
	synced := send[*kmsg.SyncGroupResponse](ctx, m, sync)
	if synced == nil {
		return false
	}
	if code := errorName(synced.ErrorCode); code != "" {
		m.failed(code, "REBALANCE_IN_PROGRESS")
		return false
	}
	if string(synced.MemberAssignment) != resp.MemberID {
		m.failed(fmt.Sprintf("assigned %q", synced.MemberAssignment))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generations = append(m.generations, resp.Generation)
	return true
}

func (m *rawMember) beat(ctx context.Context) string {
	q := kmsg.NewPtrHeartbeatRequest()
	m.mu.Lock()
	q.Group, q.MemberID, q.Generation = m.group, m.id, m.generations[len(m.generations)-1]
	m.mu.Unlock()
	resp := send[*kmsg.HeartbeatResponse](ctx, m, q)
	if resp == nil {
		return "" // the server is gone for a moment
	}
	if resp.ErrorCode == 0 {
		m.mu.Lock()
		m.beats++
		m.mu.Unlock()
	}
	return errorName(resp.ErrorCode)
}

// send asks the one server; nil if it does not answer.
func send[R kmsg.Response](ctx context.Context, m *rawMember, q kmsg.Request) (r R) {
	resp, err := m.cl.SeedBrokers()[0].RetriableRequest(ctx, q)
	if err != nil {
		return r
	}
	return resp.(R)
}

// heard is how many heartbeats were answered.
func (m *rawMember) heard() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beats
}

// now is its latest generation, 0 for none, and what went wrong so far.
func (m *rawMember) now() (generation int32, errors []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.generations); n > 0 {
		generation = m.generations[n-1]
	}
	return generation, slices.Clone(m.errors)
}

// settle waits until all are in one generation.
func settle(t *testing.T, s *server, members ...*rawMember) (generation int32) {
	t.Helper()
	s.waitGroup(t, members[0].group, len(members))
	eventually(t, "all members are in one generation", func() bool {
		generation, _ = members[0].now()
		return generation > 0 && !slices.ContainsFunc(members, func(m *rawMember) bool {
			other, _ := m.now()
			return other != generation
		})
	})
	return generation
}
