package kafka

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

// TestGroupLife: two members join, are assigned, send heartbeats and leave, in
// each version of the APIs.
func TestGroupLife(t *testing.T) {
	for version := range int16(10) {
		inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
			syncVersion, otherVersion := min(version, 5), min(version, 4)
			one := &member{client: p.dial(t), group: "g", protocols: offering("range", "one", "sticky", "1")}
			two := &member{client: p.dial(t), group: "g", protocols: offering("other", "?", "range", "two")}
			if resp := one.enter(version); resp.ErrorCode != 0 || resp.Generation != 1 || resp.LeaderID != one.id || len(resp.Members) != 1 {
				t.Fatalf("v%d: %+v", version, resp)
			}
			// The second one's join waits for the first's.
			entered := make(chan *kmsg.JoinGroupResponse, 1)
			go func() { entered <- two.enter(version) }()
			synctest.Wait()
			if got := one.beat(otherVersion); got != "REBALANCE_IN_PROGRESS" {
				t.Errorf("v%d: %q, want REBALANCE_IN_PROGRESS", version, got)
			}
			lead, follow := one.enter(version), <-entered
			wantJoined(t, version, lead, one, one, "one", "two")
			wantJoined(t, version, follow, two, one)
			if lead.SkipAssignment {
				t.Errorf("v%d: %+v", version, lead)
			}

			given := make(chan *kmsg.SyncGroupResponse, 1)
			go func() { given <- ask[*kmsg.SyncGroupResponse](two.client, syncVersion, two.sync()) }()
			synctest.Wait()
			led := ask[*kmsg.SyncGroupResponse](one.client, syncVersion, one.sync(one.id, "first", two.id, "second"))
			wantSynced(t, syncVersion, led, "first")
			wantSynced(t, syncVersion, <-given, "second")
			for _, m := range []*member{one, two} {
				if got := m.beat(otherVersion); got != "" {
					t.Errorf("v%d: %q", version, got)
				}
			}
			two.generation--
			if got := two.beat(otherVersion); got != "ILLEGAL_GENERATION" {
				t.Errorf("v%d: %q, want ILLEGAL_GENERATION", version, got)
			}

			leaving := kmsg.NewLeaveGroupRequestMember()
			leaving.MemberID, leaving.Reason = two.id, kmsg.StringPtr("enough")
			resp := ask[*kmsg.LeaveGroupResponse](two.client, syncVersion, leaveOf("g", leaving))
			if resp.ErrorCode != 0 || syncVersion >= 3 && (resp.Members[0].ErrorCode != 0 || resp.Members[0].MemberID != two.id) {
				t.Errorf("v%d: %+v", version, resp)
			}
			if got := two.beat(otherVersion); got != "UNKNOWN_MEMBER_ID" {
				t.Errorf("v%d: %q, want UNKNOWN_MEMBER_ID", version, got)
			}
			if got := one.beat(otherVersion); got != "REBALANCE_IN_PROGRESS" {
				t.Errorf("v%d: %q, want REBALANCE_IN_PROGRESS", version, got)
			}
		})
	}
}

func wantJoined(t *testing.T, version int16, resp *kmsg.JoinGroupResponse, m, leader *member, metadata ...string) {
	t.Helper()
	if resp.ErrorCode != 0 || resp.Generation != 2 || *resp.Protocol != "range" || resp.MemberID != m.id || resp.LeaderID != leader.id {
		t.Errorf("v%d: %+v", version, resp)
	}
	if (resp.ProtocolType != nil) != (version >= 7) || version >= 7 && *resp.ProtocolType != "consumer" {
		t.Errorf("v%d: protocol type %v", version, resp.ProtocolType)
	}
	var got []string
	for _, rm := range resp.Members {
		got = append(got, string(rm.ProtocolMetadata))
	}
	if !slices.Equal(got, metadata) {
		t.Errorf("v%d: members' metadata %q, want %q", version, got, metadata)
	}
}

func wantSynced(t *testing.T, version int16, resp *kmsg.SyncGroupResponse, assignment string) {
	t.Helper()
	if resp.ErrorCode != 0 || string(resp.MemberAssignment) != assignment {
		t.Errorf("v%d: %+v", version, resp)
	}
	if version >= 5 && (*resp.ProtocolType != "consumer" || *resp.Protocol != "range") {
		t.Errorf("v%d: type %q, protocol %q", version, *resp.ProtocolType, *resp.Protocol)
	}
}

// TestJoinAsked: what a coordinator is asked by each version.
func TestJoinAsked(t *testing.T) {
	f := start(t)
	c := f.dial()
	f.groups.set(func(g *fakeGroups) { g.refused = group.ErrNotCoordinator })
	for version := range int16(10) {
		m := &member{client: c, group: "g", id: "m", instance: kmsg.StringPtr("i"), protocols: offering("b", "2", "a", "1")}
		q := m.join()
		q.Reason = kmsg.StringPtr("why")
		ask[*kmsg.JoinGroupResponse](c, version, q)
		got := f.groups.last().(*group.Join)
		want := group.Join{
			Call: got.Call, Member: "m", ClientID: "tests", ClientHost: "/127.0.0.1", Type: "consumer",
			Protocols: []group.Protocol{{Name: "b", Metadata: []byte("2")}, {Name: "a", Metadata: []byte("1")}},
			SessionMS: 10_000, RebalanceMS: 60_000, TwoSteps: version >= 4, MaySkip: version >= 9,
		}
		if version == 0 {
			want.RebalanceMS = 10_000
		}
		if version >= 5 {
			want.Instance = m.instance
		}
		if version >= 8 {
			want.Reason = "why"
		}
		if a, b := fmt.Sprintf("%+v", deref(got)), fmt.Sprintf("%+v", deref(&want)); a != b || got.Group != "g" {
			t.Errorf("v%d: %s, want %s", version, a, b)
		}
		q = m.join()
		if q.RebalanceTimeoutMillis = -1; version == 0 {
			continue
		}
		ask[*kmsg.JoinGroupResponse](c, version, q)
		if got := f.groups.last().(*group.Join); got.RebalanceMS != 10_000 {
			t.Errorf("v%d: rebalance timeout %d ms for -1, want the session's", version, got.RebalanceMS)
		}
	}
}

// deref is a join whose instance can be printed.
func deref(j *group.Join) any {
	instance := ""
	if j.Instance != nil {
		instance = *j.Instance
	}
	again := *j
	again.Instance = nil
	return struct {
		instance string
		join     group.Join
	}{instance, again}
}

// TestJoinTwoSteps: from v4 on a dynamic member gets its id first.
func TestJoinTwoSteps(t *testing.T) {
	for version := range int16(10) {
		f := start(t)
		m := f.newMember("g", "")
		resp := ask[*kmsg.JoinGroupResponse](m.client, version, m.join())
		if version < 4 {
			if resp.ErrorCode != 0 || resp.MemberID == "" {
				t.Errorf("v%d: %+v", version, resp)
			}
			continue
		}
		if errorName(resp.ErrorCode) != "MEMBER_ID_REQUIRED" || !strings.HasPrefix(resp.MemberID, "tests-") || resp.Generation != -1 {
			t.Errorf("v%d: %+v", version, resp)
		}
		static := f.newMember("h", "")
		static.instance = kmsg.StringPtr("i")
		if version >= 5 {
			if resp := ask[*kmsg.JoinGroupResponse](static.client, version, static.join()); resp.ErrorCode != 0 || !strings.HasPrefix(resp.MemberID, "i-") {
				t.Errorf("v%d, static: %+v", version, resp)
			}
		}
	}
}

// TestJoinRefused: whoever may not join is told so, and keeps its member id.
func TestJoinRefused(t *testing.T) {
	f := start(t)
	f.alone("g")
	c := f.dial()
	f.groups.set(func(g *fakeGroups) { g.settings.MaxMembers = 1 })
	tests := []struct {
		name   string
		change func(*kmsg.JoinGroupRequest)
		want   string
	}{
		{"no group", func(q *kmsg.JoinGroupRequest) { q.Group = "" }, "INVALID_GROUP_ID"},
		{"session too short", func(q *kmsg.JoinGroupRequest) { q.SessionTimeoutMillis = 5999 }, "INVALID_SESSION_TIMEOUT"},
		{"session too long", func(q *kmsg.JoinGroupRequest) { q.SessionTimeoutMillis = 1_800_001 }, "INVALID_SESSION_TIMEOUT"},
		{"stranger", func(q *kmsg.JoinGroupRequest) { q.Group = "new" }, "UNKNOWN_MEMBER_ID"},
		{"no protocol", func(q *kmsg.JoinGroupRequest) { q.Group, q.MemberID, q.Protocols = "new", "", nil }, "INCONSISTENT_GROUP_PROTOCOL"},
		{"no type", func(q *kmsg.JoinGroupRequest) { q.Group, q.MemberID, q.ProtocolType = "new", "", "" }, "INCONSISTENT_GROUP_PROTOCOL"},
		{"full", func(q *kmsg.JoinGroupRequest) { q.MemberID = "" }, "GROUP_MAX_SIZE_REACHED"},
	}
	for _, tt := range tests {
		for version := range int16(10) {
			m := &member{client: c, group: "g", id: "me", protocols: offering("range", "")}
			q := m.join()
			tt.change(q)
			resp := ask[*kmsg.JoinGroupResponse](c, version, q)
			if errorName(resp.ErrorCode) != tt.want || resp.MemberID != q.MemberID || resp.Generation != -1 || resp.LeaderID != "" {
				t.Errorf("%s, v%d: %s, %+v", tt.name, version, errorName(resp.ErrorCode), resp)
			}
		}
	}
}

// TestLongNames: flexible versions can carry what older ones could not say to
// others; nothing so long is kept.
func TestLongNames(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	f.alone("g")
	f.groups.set(func(g *fakeGroups) { g.settings.MaxMetadataBytes = math.MaxInt32 })
	for n, fits := range map[int]bool{maxString: true, maxString + 1: false, 100_000: false} {
		long := strings.Repeat("n", n)
		joins := map[string]func(*kmsg.JoinGroupRequest){
			"INVALID_GROUP_ID": func(q *kmsg.JoinGroupRequest) { q.Group = long },
			"INVALID_REQUEST":  func(q *kmsg.JoinGroupRequest) { q.InstanceID = &long },
			"INVALID_REQUEST ": func(q *kmsg.JoinGroupRequest) { q.ProtocolType = long },
			"INVALID_REQUEST  ": func(q *kmsg.JoinGroupRequest) {
				q.Protocols = append(q.Protocols, offering(long, "")...)
			},
		}
		for want, change := range joins {
			q := (&member{group: "other" + want, protocols: offering("range", "")}).join()
			change(q)
			got := errorName(ask[*kmsg.JoinGroupResponse](f.dial(), 6, q).ErrorCode)
			if want = strings.TrimSpace(want); fits != (got == "MEMBER_ID_REQUIRED" || got == "") || !fits && got != want {
				t.Errorf("%d bytes: %q, want %q", n, got, want)
			}
		}
		commits := map[string]*kmsg.OffsetCommitRequest{
			"INVALID_GROUP_ID": commitOf(long, "t", topic.ID, 0), "OFFSET_METADATA_TOO_LARGE": commitOf("committed", "t", topic.ID, 0),
		}
		commits["OFFSET_METADATA_TOO_LARGE"].Topics[0].Partitions[0].Metadata = &long
		for want, q := range commits {
			if fits {
				want = ""
			}
			if got := errorNames(commitCodes(ask[*kmsg.OffsetCommitResponse](f.dial(), 8, q))); !slices.Equal(got, []string{want}) {
				t.Errorf("%d bytes: %q, want %q", n, got, want)
			}
		}
	}
	// All that is there can be said in the oldest versions.
	c := f.dial()
	for _, g := range ask[*kmsg.ListGroupsResponse](c, 0, kmsg.NewPtrListGroupsRequest()).Groups {
		if d := ask[*kmsg.DescribeGroupsResponse](c, 0, describeOf(g.Group)).Groups[0]; d.Group != g.Group {
			t.Errorf("%.20s is described as %.20s", g.Group, d.Group)
		}
		q := kmsg.NewPtrOffsetFetchRequest()
		q.Group = g.Group
		ask[*kmsg.OffsetFetchResponse](c, 2, q)
	}
}

// TestSyncProtocol: from v5 on a member says which protocol it means, and is held to it.
func TestSyncProtocol(t *testing.T) {
	f := start(t)
	m := f.alone("g")
	tests := []struct {
		name           string
		kind, protocol *string
		want           string // from v5 on
	}{
		{"right", kmsg.StringPtr("consumer"), kmsg.StringPtr("range"), ""},
		{"wrong type", kmsg.StringPtr("connect"), kmsg.StringPtr("range"), "INCONSISTENT_GROUP_PROTOCOL"},
		{"wrong protocol", kmsg.StringPtr("consumer"), kmsg.StringPtr("sticky"), "INCONSISTENT_GROUP_PROTOCOL"},
		{"no type", nil, kmsg.StringPtr("range"), "INCONSISTENT_GROUP_PROTOCOL"},
		{"no protocol", kmsg.StringPtr("consumer"), nil, "INCONSISTENT_GROUP_PROTOCOL"},
	}
	for _, tt := range tests {
		for version := range int16(6) {
			q := m.sync()
			q.ProtocolType, q.Protocol = tt.kind, tt.protocol
			want := tt.want
			if version < 5 {
				want = ""
			}
			resp := ask[*kmsg.SyncGroupResponse](m.client, version, q)
			if errorName(resp.ErrorCode) != want || (string(resp.MemberAssignment) == "a") != (want == "") {
				t.Errorf("%s, v%d: %s, %q", tt.name, version, errorName(resp.ErrorCode), resp.MemberAssignment)
			}
		}
	}
}

// TestLongAssignments: what no entry holds is refused in so many words.
func TestLongAssignments(t *testing.T) {
	f := start(t)
	m := f.newMember("g", "")
	m.enter(4)
	resp := ask[*kmsg.SyncGroupResponse](m.client, 3, m.sync(m.id, strings.Repeat("x", 400_000)))
	if errorName(resp.ErrorCode) != "MESSAGE_TOO_LARGE" {
		t.Errorf("%q, want MESSAGE_TOO_LARGE", errorName(resp.ErrorCode))
	}
}

// TestLeaveSeveral: from v3 on each has its own outcome, by either name.
func TestLeaveSeveral(t *testing.T) {
	for version := int16(3); version <= 5; version++ {
		f := start(t)
		static := f.newMember("g", "")
		static.instance = kmsg.StringPtr("i")
		static.enter(5)
		name := func(id string, instance *string) kmsg.LeaveGroupRequestMember {
			m := kmsg.NewLeaveGroupRequestMember()
			m.MemberID, m.InstanceID = id, instance
			return m
		}
		members := []kmsg.LeaveGroupRequestMember{
			name("nobody", nil), name("", kmsg.StringPtr("else")), name("wrong", static.instance), name("", static.instance), name("", static.instance),
		}
		want := []string{"UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "", "UNKNOWN_MEMBER_ID"}
		resp := ask[*kmsg.LeaveGroupResponse](f.dial(), version, leaveOf("g", members...))
		var got []string
		for i, m := range resp.Members {
			got = append(got, errorName(m.ErrorCode))
			if m.MemberID != members[i].MemberID || (m.InstanceID == nil) != (members[i].InstanceID == nil) {
				t.Errorf("v%d: %+v", version, m)
			}
		}
		if resp.ErrorCode != 0 || !slices.Equal(got, want) {
			t.Errorf("v%d: %s, %q, want %q", version, errorName(resp.ErrorCode), got, want)
		}
		resp = ask[*kmsg.LeaveGroupResponse](f.dial(), version, leaveOf("nowhere", members[0]))
		if resp.ErrorCode != 0 || errorName(resp.Members[0].ErrorCode) != "UNKNOWN_MEMBER_ID" {
			t.Errorf("v%d: %+v", version, resp)
		}
	}
	f := start(t)
	for version := range int16(6) {
		resp := ask[*kmsg.LeaveGroupResponse](f.dial(), version, leaveOf("", kmsg.NewLeaveGroupRequestMember()))
		if errorName(resp.ErrorCode) != "INVALID_GROUP_ID" {
			t.Errorf("v%d, no group: %+v", version, resp)
		}
	}
}

// TestWaitingKeepsItsOwn: what a join or a sync brought outlives its frame,
// which is used again while it waits.
func TestWaitingKeepsItsOwn(t *testing.T) {
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		metadata := strings.Repeat("metadata of the first ", 20)
		one := &member{client: p.dial(t), group: "g", protocols: offering("range", metadata)}
		two := &member{client: p.dial(t), group: "g", protocols: offering("range", "2")}
		two.enter(3)
		entered := make(chan *kmsg.JoinGroupResponse, 1)
		go func() { entered <- one.enter(3) }()
		synctest.Wait()
		noise := p.dial(t)
		q := commitOf(strings.Repeat("#", 500), "t", [16]byte{})
		for range 20 {
			ask[*kmsg.OffsetCommitResponse](noise, 7, q)
		}
		lead := two.enter(3)
		<-entered
		if !slices.ContainsFunc(lead.Members, func(m kmsg.JoinGroupResponseMember) bool {
			return bytes.Equal(m.ProtocolMetadata, []byte(metadata))
		}) {
			t.Errorf("the leader is told %+v", lead.Members)
		}
		assigned := strings.Repeat("the first's ", 40)
		resp := ask[*kmsg.SyncGroupResponse](two.client, 3, two.sync(one.id, assigned, two.id, "2"))
		wantSynced(t, 3, resp, "2")
		for range 20 {
			ask[*kmsg.OffsetCommitResponse](noise, 7, q)
		}
		wantSynced(t, 3, ask[*kmsg.SyncGroupResponse](one.client, 3, one.sync()), assigned)
	})
}
