package kafka

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
)

func TestReport11JoinGroupV0(t *testing.T) {
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		members := make([]*member, 3)
		for i := range members {
			members[i] = &member{client: p.dial(t), group: "g", protocols: offering("range", "")}
		}
		members[0].enter(0)
		// The others join, and all that are there join again when they hear of it.
		joined := make(chan *kmsg.JoinGroupResponse, len(members))
		for _, m := range members[1:] {
			go func() { joined <- m.enter(0) }()
			synctest.Wait()
		}
		go func() { joined <- members[0].enter(0) }()
		synced := make(chan string, len(members))
		for range members {
			if resp := <-joined; resp.ErrorCode != 0 || resp.Generation != 2 {
				t.Fatalf("%+v", resp)
			}
		}
		for i, m := range slices.Backward(members) { // the leader last
			go func() {
				resp := ask[*kmsg.SyncGroupResponse](m.client, 0, m.sync(members[0].id, "0", members[1].id, "1", members[2].id, "2"))
				synced <- fmt.Sprint(i, errorName(resp.ErrorCode), string(resp.MemberAssignment))
			}()
			synctest.Wait()
		}
		got := []string{<-synced, <-synced, <-synced}
		if slices.Sort(got); !slices.Equal(got, []string{"00", "11", "22"}) {
			t.Errorf("%q", got)
		}
		// It stays as it is for longer than any timeout.
		for range 20 {
			time.Sleep(3 * time.Second)
			for i, m := range members {
				if got := m.beat(0); got != "" {
					t.Fatalf("member %d: %s", i, got)
				}
			}
		}
		// Who is late for a rebalance has the session timeout, and not none.
		go func() { joined <- members[0].enter(0) }() // the leader, who begins one by that
		synctest.Wait()
		go func() { joined <- members[1].enter(0) }()
		begin := time.Now()
		for range 2 {
			if resp := <-joined; resp.ErrorCode != 0 || resp.Generation != 3 {
				t.Errorf("%+v", resp)
			}
		}
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("the third was waited for %v, want 10s", took)
		}
	})
}

func TestReport12PendingMember(t *testing.T) {
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		state := func() kmsg.DescribeGroupsResponseGroup {
			return ask[*kmsg.DescribeGroupsResponse](p.dial(t), 6, describeOf("g")).Groups[0]
		}
		pending := func() *kmsg.JoinGroupResponse {
			m := &member{client: p.dial(t), group: "g", protocols: offering("range", "")}
			resp := ask[*kmsg.JoinGroupResponse](m.client, 4, m.join())
			if errorName(resp.ErrorCode) != "MEMBER_ID_REQUIRED" {
				t.Errorf("%+v", resp)
			}
			m.conn.Close()
			return resp
		}
		last := &member{client: p.dial(t), group: "g", protocols: offering("range", "")}
		last.enter(4)
		ask[*kmsg.SyncGroupResponse](last.client, 3, last.sync(last.id, ""))
		time.Sleep(5 * time.Second) // of a session of 10
		pending()
		last.conn.Close()
		time.Sleep(11 * time.Second)
		if got := state(); got.State != "Empty" || len(got.Members) != 0 {
			t.Errorf("%+v", got)
		}
		// And with a pending member that is still young.
		id := pending().MemberID
		begin := time.Now()
		next := &member{client: p.dial(t), group: "g", protocols: offering("range", "")}
		if resp := next.enter(4); resp.ErrorCode != 0 || time.Since(begin) != 0 {
			t.Errorf("%+v after %v", resp, time.Since(begin))
		}
		leaving := kmsg.NewLeaveGroupRequestMember()
		for i, want := range []string{"", "UNKNOWN_MEMBER_ID"} {
			leaving.MemberID = id
			if got := ask[*kmsg.LeaveGroupResponse](next.client, 3, leaveOf("g", leaving)).Members[0]; errorName(got.ErrorCode) != want {
				t.Errorf("leaving %d times: %q, want %q", i+1, errorName(got.ErrorCode), want)
			}
		}
	})
}

func TestReport13OffsetFetchAll(t *testing.T) {
	f := start(t)
	a, b := f.create("a", 2), f.create("b", 1)
	names := map[siltstone.TopicID]string{a.ID: "a", b.ID: "b"}
	c := f.dial()
	commit := commitOf("g", "a", a.ID, 0, 1)
	commit.Topics = append(commit.Topics, commitOf("g", "b", b.ID, 0).Topics...)
	commit.Topics[0].Partitions[1].LeaderEpoch = 7
	ask[*kmsg.OffsetCommitResponse](c, 8, commit)

	named := func(id string) *kmsg.OffsetFetchRequest { return fetchOffsetsOf(id, "a", a.ID, 1) }
	all := func(id string) *kmsg.OffsetFetchRequest {
		q := named(id)
		q.Topics, q.Groups[0].Topics = nil, nil
		return q
	}
	empty := func(id string) *kmsg.OffsetFetchRequest {
		q := named(id)
		q.Topics, q.Groups[0].Topics = q.Topics[:0], q.Groups[0].Topics[:0]
		return q
	}
	for version := int16(1); version <= 10; version++ {
		epoch := -1
		if version >= 5 {
			epoch = 7
		}
		every := []string{"a 0 100 -1  ", fmt.Sprintf("a 1 101 %d  ", epoch), "b 0 100 -1  "}
		tests := []struct {
			name  string
			q     *kmsg.OffsetFetchRequest
			since int16
			want  []string
		}{
			{"null", all("g"), 2, every},
			{"empty", empty("g"), 1, nil},
			{"named", named("g"), 1, every[1:2]},
			{"null, of no group", all("none"), 2, nil},
			{"named, of no group", named("none"), 1, []string{"a 1 -1 -1  "}},
		}
		for _, tt := range tests {
			if version < tt.since {
				continue
			}
			for _, stable := range []bool{false, true} {
				tt.q.RequireStable = stable
				if why, got := offsetsIn(ask[*kmsg.OffsetFetchResponse](c, version, tt.q), names); why != "" || !slices.Equal(got, tt.want) {
					t.Errorf("v%d, %s: %s, %q, want %q", version, tt.name, why, got, tt.want)
				}
			}
		}
		// An error of the coordinator is never an empty success.
		f.groups.set(func(g *fakeGroups) { g.refused = group.ErrLoading })
		why, got := offsetsIn(ask[*kmsg.OffsetFetchResponse](c, version, named("g")), names)
		if version == 1 {
			if why != "" || !slices.Equal(got, []string{"a 1 -1 -1  COORDINATOR_LOAD_IN_PROGRESS"}) {
				t.Errorf("v1, loading: %s, %q", why, got)
			}
		} else if why != "COORDINATOR_LOAD_IN_PROGRESS" || len(got) != 0 {
			t.Errorf("v%d, loading: %s, %q", version, why, got)
		}
		f.groups.set(func(g *fakeGroups) { g.refused = nil })
	}
	// v0 means something else: it is not listed, nor answered.
	for _, q := range []kmsg.Request{named("g"), commitOf("g", "a", a.ID, 0)} {
		q.SetVersion(0)
		old := f.dial()
		old.send(q)
		old.wantClosed()
	}
}

func TestReport15DeletedGroup(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	m := f.alone("g")
	c := f.dial()
	commit := commitOf("g", "t", topic.ID, 0)
	commit.MemberID, commit.Generation = m.id, m.generation
	ask[*kmsg.OffsetCommitResponse](c, 8, commit)
	deleted := func() string {
		return errorName(ask[*kmsg.DeleteGroupsResponse](c, 2, deleteOf("g")).Groups[0].ErrorCode)
	}
	offset := func() int64 {
		return ask[*kmsg.OffsetFetchResponse](c, 7, fetchOffsetsOf("g", "t", topic.ID, 0)).Topics[0].Partitions[0].Offset
	}
	if got := deleted(); got != "NON_EMPTY_GROUP" || offset() != 100 || m.beat(4) != "" {
		t.Errorf("with a member: %q, offset %d", got, offset())
	}
	leaving := kmsg.NewLeaveGroupRequestMember()
	leaving.MemberID = m.id
	ask[*kmsg.LeaveGroupResponse](c, 4, leaveOf("g", leaving))
	if got := deleted(); got != "" {
		t.Errorf("without one: %q", got)
	}
	for range 2 {
		if got := deleted(); got != "GROUP_ID_NOT_FOUND" || offset() != -1 {
			t.Errorf("again: %q, offset %d", got, offset())
		}
		d := ask[*kmsg.DescribeGroupsResponse](c, 5, describeOf("g")).Groups[0]
		l := ask[*kmsg.ListGroupsResponse](c, 5, kmsg.NewPtrListGroupsRequest()).Groups
		if d.State != "Dead" || d.ErrorCode != 0 || len(l) != 0 {
			t.Errorf("%+v, %+v", d, l)
		}
		f.groups.elect()
	}
	f.alone("g")
	if offset() != -1 {
		t.Errorf("made again, it has offset %d", offset())
	}
}

func TestReport16OneInstanceID(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	instance := kmsg.StringPtr("i")
	first := f.newMember("g", "")
	first.instance = instance
	first.enter(5)
	second := f.newMember("g", "")
	second.instance = instance
	if resp := second.enter(5); resp.ErrorCode != 0 || second.id == first.id {
		t.Fatalf("%+v", resp) // while the first has no assignment yet
	}
	third := f.newMember("g", "")
	third.instance = instance
	ask[*kmsg.SyncGroupResponse](second.client, 3, second.sync(second.id, "a"))
	generation := second.generation
	if third.enter(9); third.generation != generation {
		t.Errorf("a restart makes generation %d of %d", third.generation, generation)
	}
	for name, m := range map[string]*member{"first": first, "second": second} {
		m.generation = generation
		commit := commitOf("g", "t", topic.ID, 0)
		commit.MemberID, commit.Generation, commit.InstanceID = m.id, generation, instance
		got := []string{
			m.beat(4),
			errorName(ask[*kmsg.SyncGroupResponse](m.client, 5, m.sync()).ErrorCode),
			errorNames(commitCodes(ask[*kmsg.OffsetCommitResponse](m.client, 8, commit)))[0],
			errorName(ask[*kmsg.JoinGroupResponse](m.client, 5, m.join()).ErrorCode),
		}
		if got = slices.Compact(got); len(got) != 1 || got[0] != "FENCED_INSTANCE_ID" {
			t.Errorf("the %s: %q", name, got)
		}
	}
	wantSynced(t, 4, ask[*kmsg.SyncGroupResponse](third.client, 4, third.sync()), "a")
	leaving := kmsg.NewLeaveGroupRequestMember()
	leaving.InstanceID = instance
	if got := ask[*kmsg.LeaveGroupResponse](f.dial(), 3, leaveOf("g", leaving)).Members[0]; got.ErrorCode != 0 {
		t.Errorf("%+v", got)
	}
	if got := third.beat(4); got != "UNKNOWN_MEMBER_ID" {
		t.Errorf("the third, taken out: %q", got)
	}
}
