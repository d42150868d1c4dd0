package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
)

// member is one of a group, on a connection of its own.
type member struct {
	*client
	group, id  string
	instance   *string
	generation int32
	protocols  []kmsg.JoinGroupRequestProtocol
}

// join is what the member sends to join, with what it knows.
func (m *member) join() *kmsg.JoinGroupRequest {
	q := kmsg.NewPtrJoinGroupRequest()
	q.Group, q.MemberID, q.InstanceID, q.ProtocolType = m.group, m.id, m.instance, "consumer"
	q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = 10_000, 60_000
	q.Protocols = m.protocols
	return q
}

// offering is a list of protocols, name, metadata, name, metadata.
func offering(s ...string) (list []kmsg.JoinGroupRequestProtocol) {
	for i := 0; i < len(s); i += 2 {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = s[i], []byte(s[i+1])
		list = append(list, p)
	}
	return list
}

// enter joins, in the two steps of v4 on if need be.
func (m *member) enter(version int16) *kmsg.JoinGroupResponse {
	m.t.Helper()
	resp := ask[*kmsg.JoinGroupResponse](m.client, version, m.join())
	if errorName(resp.ErrorCode) == "MEMBER_ID_REQUIRED" {
		m.id = resp.MemberID
		resp = ask[*kmsg.JoinGroupResponse](m.client, version, m.join())
	}
	m.id, m.generation = resp.MemberID, resp.Generation
	return resp
}

// sync asks for the assignment, as a leader with those of all: id, assignment, id, assignment.
func (m *member) sync(assignments ...string) *kmsg.SyncGroupRequest {
	q := kmsg.NewPtrSyncGroupRequest()
	q.Group, q.MemberID, q.InstanceID, q.Generation = m.group, m.id, m.instance, m.generation
	q.ProtocolType, q.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	for i := 0; i < len(assignments); i += 2 {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = assignments[i], []byte(assignments[i+1])
		q.GroupAssignment = append(q.GroupAssignment, a)
	}
	return q
}

// beat is what a heartbeat is answered.
func (m *member) beat(version int16) string {
	m.t.Helper()
	q := kmsg.NewPtrHeartbeatRequest()
	q.Group, q.MemberID, q.InstanceID, q.Generation = m.group, m.id, m.instance, m.generation
	return errorName(ask[*kmsg.HeartbeatResponse](m.client, version, q).ErrorCode)
}

func leaveOf(id string, members ...kmsg.LeaveGroupRequestMember) *kmsg.LeaveGroupRequest {
	q := kmsg.NewPtrLeaveGroupRequest()
	q.Group, q.Members = id, members
	if len(members) > 0 {
		q.MemberID = members[0].MemberID
	}
	return q
}

func describeOf(ids ...string) *kmsg.DescribeGroupsRequest {
	q := kmsg.NewPtrDescribeGroupsRequest()
	q.Groups = ids
	return q
}

func deleteOf(ids ...string) *kmsg.DeleteGroupsRequest {
	q := kmsg.NewPtrDeleteGroupsRequest()
	q.Groups = ids
	return q
}

// newMember is one that has the protocol "range".
func (f *fixture) newMember(id, metadata string) *member {
	return &member{client: f.dial(), group: id, protocols: offering("range", metadata)}
}

// alone makes a stable group of one member.
func (f *fixture) alone(id string) *member {
	f.t.Helper()
	m := f.newMember(id, "m")
	m.enter(4)
	if resp := ask[*kmsg.SyncGroupResponse](m.client, 3, m.sync(m.id, "a")); resp.ErrorCode != 0 {
		f.t.Fatal(errorName(resp.ErrorCode))
	}
	return m
}

// commitOf commits for partitions of a topic, which it names both ways, for
// every version: offset 100 + n of partition n.
func commitOf(id, name string, topic siltstone.TopicID, partitions ...int32) *kmsg.OffsetCommitRequest {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Group = id
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = name, topic
	for _, n := range partitions {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = n, 100+int64(n)
		t.Partitions = append(t.Partitions, p)
	}
	q.Topics = append(q.Topics, t)
	return q
}

// fetchOffsetsOf asks for the offsets of partitions of a topic, in the words of every version.
func fetchOffsetsOf(id, name string, topic siltstone.TopicID, partitions ...int32) *kmsg.OffsetFetchRequest {
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Group = id
	q.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: name, Partitions: partitions}}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = id
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: name, TopicID: topic, Partitions: partitions}}
	q.Groups = append(q.Groups, g)
	return q
}

func deleteOffsetsOf(id, name string, partitions ...int32) *kmsg.OffsetDeleteRequest {
	q := kmsg.NewPtrOffsetDeleteRequest()
	q.Group = id
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic = name
	for _, n := range partitions {
		t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: n})
	}
	q.Topics = append(q.Topics, t)
	return q
}

// groupOutcomes asks each API about a group, in a version, and says what each
// part of the answer has for an error.
var groupOutcomes = map[string]func(f *fixture, c *client, version int16) []int16{
	"JoinGroup": func(f *fixture, c *client, version int16) []int16 {
		m := &member{client: c, group: "g", id: "somebody", protocols: offering("range", "")}
		resp := ask[*kmsg.JoinGroupResponse](c, version, m.join())
		if resp.Generation != -1 || version >= 7 && (resp.Protocol != nil || resp.ProtocolType != nil) || version < 7 && *resp.Protocol != "" {
			c.t.Errorf("JoinGroup v%d: %+v", version, resp)
		}
		return []int16{resp.ErrorCode}
	},
	"SyncGroup": func(f *fixture, c *client, version int16) []int16 {
		m := &member{client: c, group: "g", id: "somebody"}
		resp := ask[*kmsg.SyncGroupResponse](c, version, m.sync())
		if resp.Protocol != nil || resp.ProtocolType != nil {
			c.t.Errorf("SyncGroup v%d: %+v", version, resp)
		}
		return []int16{resp.ErrorCode}
	},
	"Heartbeat": func(f *fixture, c *client, version int16) []int16 {
		q := kmsg.NewPtrHeartbeatRequest()
		q.Group, q.MemberID = "g", "somebody"
		return []int16{ask[*kmsg.HeartbeatResponse](c, version, q).ErrorCode}
	},
	"LeaveGroup": func(f *fixture, c *client, version int16) []int16 {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID = "somebody"
		resp := ask[*kmsg.LeaveGroupResponse](c, version, leaveOf("g", m))
		if len(resp.Members) != 0 {
			c.t.Errorf("LeaveGroup v%d: %+v", version, resp)
		}
		return []int16{resp.ErrorCode}
	},
	"OffsetCommit": func(f *fixture, c *client, version int16) []int16 {
		t, _ := f.topics.Topics().Topic("t")
		return commitCodes(ask[*kmsg.OffsetCommitResponse](c, version, commitOf("g", "t", t.ID, 0, 1)))
	},
	"OffsetFetch": func(f *fixture, c *client, version int16) []int16 {
		t, _ := f.topics.Topics().Topic("t")
		resp := ask[*kmsg.OffsetFetchResponse](c, version, fetchOffsetsOf("g", "t", t.ID, 0, 1))
		switch {
		case version >= 8:
			if len(resp.Groups[0].Topics) != 0 {
				c.t.Errorf("OffsetFetch v%d: %+v", version, resp)
			}
			return []int16{resp.Groups[0].ErrorCode}
		case version >= 2:
			if len(resp.Topics) != 0 {
				c.t.Errorf("OffsetFetch v%d: %+v", version, resp)
			}
			return []int16{resp.ErrorCode}
		}
		var codes []int16
		for _, p := range resp.Topics[0].Partitions {
			if p.Offset != -1 || p.Metadata == nil || *p.Metadata != "" {
				c.t.Errorf("OffsetFetch v%d: %+v", version, p)
			}
			codes = append(codes, p.ErrorCode)
		}
		return codes
	},
	"OffsetDelete": func(f *fixture, c *client, version int16) []int16 {
		resp := ask[*kmsg.OffsetDeleteResponse](c, version, deleteOffsetsOf("g", "t", 0))
		if len(resp.Topics) != 0 {
			c.t.Errorf("OffsetDelete v%d: %+v", version, resp)
		}
		return []int16{resp.ErrorCode}
	},
	"DescribeGroups": func(f *fixture, c *client, version int16) []int16 {
		q := describeOf("g", "h")
		q.IncludeAuthorizedOperations = true
		var codes []int16
		for _, g := range ask[*kmsg.DescribeGroupsResponse](c, version, q).Groups {
			if g.State != "" || version >= 6 && g.ErrorMessage == nil || g.AuthorizedOperations != notAsked {
				c.t.Errorf("DescribeGroups v%d: %+v", version, g)
			}
			codes = append(codes, g.ErrorCode)
		}
		return codes
	},
	"ListGroups": func(f *fixture, c *client, version int16) []int16 {
		return []int16{ask[*kmsg.ListGroupsResponse](c, version, kmsg.NewPtrListGroupsRequest()).ErrorCode}
	},
	"DeleteGroups": func(f *fixture, c *client, version int16) []int16 {
		var codes []int16
		for _, g := range ask[*kmsg.DeleteGroupsResponse](c, version, deleteOf("g", "h")).Groups {
			if version >= 3 && g.ErrorMessage == nil {
				c.t.Errorf("DeleteGroups v%d: %+v", version, g)
			}
			codes = append(codes, g.ErrorCode)
		}
		return codes
	},
}

func commitCodes(resp *kmsg.OffsetCommitResponse) (codes []int16) {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			codes = append(codes, p.ErrorCode)
		}
	}
	return codes
}

// TestCoordinatorErrors: what a coordinator cannot answer has an error, in each
// API and version, on which every client asks again.
func TestCoordinatorErrors(t *testing.T) {
	f := start(t)
	f.create("t", 2)
	c := f.dial()
	tests := []struct {
		name                                string
		down, refused                       error
		want, wantList, wantBeats, wantSync string
	}{
		{"store away", siltstone.ErrUnavailable, nil, "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "NOT_COORDINATOR"},
		{"time over", context.DeadlineExceeded, nil, "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "NOT_COORDINATOR"},
		{"stopping", context.Canceled, nil, "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "NOT_COORDINATOR"},
		{"unthought of", errors.New("?"), nil, "UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR"},
		{"elsewhere", nil, group.ErrNotCoordinator, "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "NOT_COORDINATOR"},
		{"loading", nil, fmt.Errorf("shard 3: %w", group.ErrLoading), "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS", "", "REBALANCE_IN_PROGRESS"},
	}
	for _, tt := range tests {
		f.groups.set(func(g *fakeGroups) { g.down, g.refused = tt.down, tt.refused })
		for name, outcomes := range groupOutcomes {
			want := tt.want
			switch name {
			case "ListGroups":
				want = tt.wantList
			case "Heartbeat":
				want = tt.wantBeats
			case "SyncGroup":
				want = tt.wantSync
			}
			a := f.apiNamed(name)
			for version := a.min; version <= a.max; version++ {
				codes := outcomes(f, c, version)
				for _, code := range codes {
					if errorName(code) != want {
						t.Errorf("%s, %s v%d: %q, want %q", tt.name, name, version, errorName(code), want)
					}
				}
				if len(codes) == 0 {
					t.Errorf("%s v%d: nothing is said", name, version)
				}
			}
		}
	}
}

// TestCoordinatorSilent: who waits for no other member hears of it when the
// coordinator says nothing; who does waits on.
func TestCoordinatorSilent(t *testing.T) {
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		f.create("t", 2)
		f.groups.set(func(g *fakeGroups) { g.silent = true })
		for name, outcomes := range groupOutcomes {
			if strings.HasPrefix(name, "Join") || strings.HasPrefix(name, "Sync") || name == "ListGroups" {
				continue
			}
			begin := time.Now()
			codes := outcomes(f, p.dial(t), f.apiNamed(name).max)
			if errorName(codes[0]) != "NOT_COORDINATOR" || time.Since(begin) != coordinatorTime {
				t.Errorf("%s: %q after %v", name, errorName(codes[0]), time.Since(begin))
			}
		}
		m := &member{client: p.dial(t), group: "g", protocols: offering("range", "")}
		q := m.join()
		q.SetVersion(3)
		m.send(q)
		time.Sleep(time.Hour)
		if open, held := metric(f.server.metrics.connections), metric(f.server.metrics.held); open != 1 || held == 0 {
			t.Errorf("%v connections are open, and %v bytes held, while a join waits", open, held)
		}
		m.conn.Close() // nobody waits any more, but the coordinator still has it
		synctest.Wait()
		if open, held := metric(f.server.metrics.connections), metric(f.server.metrics.held); open != 0 || held != 0 {
			t.Errorf("%v connections are open, and %v bytes held, when its client has gone", open, held)
		}
	})
}

func (f *fixture) apiNamed(name string) *api {
	f.t.Helper()
	for _, a := range f.server.apis {
		if a != nil && a.name == name {
			return a
		}
	}
	f.t.Fatalf("there is no %s", name)
	return nil
}
