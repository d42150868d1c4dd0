package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestReport11JoinGroupV0: three members by JoinGroup v0, which has no rebalance
// timeout, settle in a generation and stay in it for longer than their session,
// through restarts of the server too. (kafka4beam/brod#465)
func TestReport11JoinGroupV0(t *testing.T) {
	session := time.Duration(count(6, 10)) * time.Second
	stay := time.Duration(count(7, 30)) * time.Second
	s := start(t, t.TempDir())
	members := make([]*rawMember, 3)
	for i := range members {
		members[i] = s.raw(t, "g", 0, session)
	}
	generation := settle(t, s, members...)
	heard := func(enough func() bool) {
		t.Helper()
		before := members[0].heard()
		eventually(t, "heartbeats", func() bool { return members[0].heard() > before+10 && enough() })
		if got := settle(t, s, members...); got != generation {
			t.Errorf("generation %d, %d before", got, generation)
		}
	}
	begin := time.Now()
	heard(func() bool { return time.Since(begin) > stay })
	for _, restart := range restarts {
		restart.end(s, t)
		s = s.again(t)
		heard(func() bool { return true })
	}
	for _, m := range members {
		if _, errors := m.now(); len(errors) > 0 {
			t.Errorf("%q", errors)
		}
	}
}

// TestReport12PendingMember: who was only given an id keeps no group from getting
// empty when its last real member is gone. (redpanda-data/redpanda#25270, KAFKA-7909)
func TestReport12PendingMember(t *testing.T) {
	session := time.Duration(count(2, 6)) * time.Second
	s := start(t, t.TempDir())
	s.setClusterConfig(t, "group.min.session.timeout.ms", fmt.Sprint(session.Milliseconds()))
	s.createTopic(t, "t", 1)
	s.kcat(t, []byte("x\n"), "-P", "-t", "t")
	for _, restart := range append(restarts, ending{"nothing", nil}) {
		group := "g after " + restart.name
		last := s.kcatJoin(t, group, "t", "-X", fmt.Sprintf("session.timeout.ms=%d", session.Milliseconds()))
		s.waitGroup(t, group, 1)
		w := s.dial(t)
		pending := w.pendingMember(group, session)
		_ = w.conn.Close()
		last.kill()
		if restart.end != nil {
			restart.end(s, t)
			s = s.again(t)
		}
		begin := time.Now()
		s.waitGroup(t, group, 0)
		if took := time.Since(begin); took > session+3*time.Second {
			t.Errorf("%s: empty after %v", group, took)
		}
		begin = time.Now()
		s.kcatJoin(t, group, "t", "-c", "1").wait(t)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: a new member has records after %v", group, took)
		}
		// Who still has only an id leaves by it; the old one's is gone.
		w = s.dial(t)
		for id, want := range map[string]string{pending: "UNKNOWN_MEMBER_ID", w.pendingMember(group, session): ""} {
			if got := w.leave(3, group, kmsg.LeaveGroupRequestMember{MemberID: id}); got[0] != want {
				t.Errorf("%s: leaving by the id %s: %q, want %q", group, id, got[0], want)
			}
		}
		s.waitGroup(t, group, 0)
	}
}

// pendingMember asks to join a group, and only gets a member id.
func (w *wire) pendingMember(group string, session time.Duration) string {
	w.t.Helper()
	q := kmsg.NewPtrJoinGroupRequest()
	q.Group, q.ProtocolType, q.SessionTimeoutMillis = group, "consumer", int32(session.Milliseconds())
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name = "range"
	q.Protocols = append(q.Protocols, p)
	resp := ask[*kmsg.JoinGroupResponse](w, 4, q)
	if errorName(resp.ErrorCode) != "MEMBER_ID_REQUIRED" || resp.MemberID == "" {
		w.t.Fatalf("joining without an id: %q %q", errorName(resp.ErrorCode), resp.MemberID)
	}
	return resp.MemberID
}

// leave has members leave, and returns the error of each.
func (w *wire) leave(version int16, group string, members ...kmsg.LeaveGroupRequestMember) (errs []string) {
	w.t.Helper()
	q := kmsg.NewPtrLeaveGroupRequest()
	q.Group, q.Members = group, members
	resp := ask[*kmsg.LeaveGroupResponse](w, version, q)
	for _, m := range resp.Members {
		errs = append(errs, errorName(m.ErrorCode))
	}
	if resp.ErrorCode != 0 || len(errs) != len(members) {
		w.t.Fatalf("%d members leave: %q %q", len(members), errorName(resp.ErrorCode), errs)
	}
	return errs
}

// TestReport13OffsetFetchAll: an empty list of topics and none at all are not the
// same, in no version. (apache/kafka#13295, redpanda-data/redpanda#9850)
func TestReport13OffsetFetchAll(t *testing.T) {
	s := start(t, t.TempDir())
	s.createTopic(t, "a", 2)
	s.createTopic(t, "b", 1)
	w := s.dial(t)
	w.commit("g", "a", 0, 5, "first")
	w.commit("g", "a", 1, 6, "")
	w.commit("g", "b", 0, 7, "last")
	all := []string{`a-0 5 3 "first"`, `a-1 6 3 ""`, `b-0 7 3 "last"`}
	inEveryState(t, s, func(t *testing.T, s *server) {
		w := s.dial(t)
		for version := int16(1); version <= 10; version++ {
			want := all
			if version < 5 { // which have no epoch
				want = []string{`a-0 5 -1 "first"`, `a-1 6 -1 ""`, `b-0 7 -1 "last"`}
			}
			got := map[string][]string{
				"named": w.fetchOffsets(version, "g", map[string][]int32{"a": {0, 1}, "b": {0}}),
				"empty": w.fetchOffsets(version, "g", map[string][]int32{}),
			}
			wanted := map[string][]string{"named": want, "empty": nil}
			if version >= 2 { // v1 has no null
				got["null"], wanted["null"] = w.fetchOffsets(version, "g", nil), want
				got["unknown group"], wanted["unknown group"] = w.fetchOffsets(version, "nosuch", nil), nil
			}
			got["without an offset"] = w.fetchOffsets(version, "nosuch", map[string][]int32{"a": {1}})
			wanted["without an offset"] = []string{`a-1 -1 -1 ""`}
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("v%d (-want +got):\n%s", version, diff)
			}
		}
		several := w.offsetsOf(9, map[string]map[string][]int32{"g": {"b": {0}}, "nosuch": nil, "": {"a": {0}}})
		if diff := cmp.Diff(map[string][]string{"g": {`b-0 7 3 "last"`}, "nosuch": nil, "": {`a-0 -1 -1 ""`}}, several); diff != "" {
			t.Errorf("several groups (-want +got):\n%s", diff)
		}
	})
}

// commit commits an offset, with leader epoch 3, as somebody who is no member.
func (w *wire) commit(group, topic string, partition int32, offset int64, metadata string) {
	w.t.Helper()
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Group, q.Generation = group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = topic, w.topic(topic).TopicID
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = partition, offset, 3, &metadata
	t.Partitions = append(t.Partitions, p)
	q.Topics = append(q.Topics, t)
	resp := ask[*kmsg.OffsetCommitResponse](w, 10, q)
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
		w.t.Fatalf("commit %s-%d of %s: %s", topic, partition, group, errorName(code))
	}
}

// fetchOffsets is what a version says that a group has committed: of the
// partitions that are named, or of all if of is nil, one line each.
func (w *wire) fetchOffsets(version int16, group string, of map[string][]int32) []string {
	w.t.Helper()
	if version >= 8 {
		return w.offsetsOf(version, map[string]map[string][]int32{group: of})[group]
	}
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Group, q.Topics = group, nil
	if of != nil {
		q.Topics = []kmsg.OffsetFetchRequestTopic{}
	}
	for name, partitions := range of {
		t := kmsg.NewOffsetFetchRequestTopic()
		t.Topic, t.Partitions = name, partitions
		q.Topics = append(q.Topics, t)
	}
	resp := ask[*kmsg.OffsetFetchResponse](w, version, q)
	if resp.ErrorCode != 0 {
		w.t.Fatalf("v%d: %s", version, errorName(resp.ErrorCode))
	}
	var lines []string
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			lines = append(lines, offsetLine(w, t.Topic, p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode))
		}
	}
	slices.Sort(lines)
	return lines
}

// offsetsOf is fetchOffsets of several groups, from v8 on.
func (w *wire) offsetsOf(version int16, of map[string]map[string][]int32) map[string][]string {
	w.t.Helper()
	q := kmsg.NewPtrOffsetFetchRequest()
	names := map[[16]byte]string{}
	for group, topics := range of {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.Topics = group, nil
		if topics != nil {
			g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
		}
		for name, partitions := range topics {
			t := kmsg.NewOffsetFetchRequestGroupTopic()
			t.Topic, t.TopicID, t.Partitions = name, w.topic(name).TopicID, partitions
			g.Topics = append(g.Topics, t)
		}
		q.Groups = append(q.Groups, g)
	}
	for _, name := range w.topicNames() {
		names[w.topic(name).TopicID] = name
	}
	all := map[string][]string{}
	for _, g := range ask[*kmsg.OffsetFetchResponse](w, version, q).Groups {
		if g.ErrorCode != 0 {
			w.t.Fatalf("v%d, group %s: %s", version, g.Group, errorName(g.ErrorCode))
		}
		all[g.Group] = nil
		for _, t := range g.Topics {
			name := t.Topic
			if version >= 10 {
				name = names[t.TopicID]
			}
			for _, p := range t.Partitions {
				all[g.Group] = append(all[g.Group], offsetLine(w, name, p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode))
			}
		}
		slices.Sort(all[g.Group])
	}
	return all
}

func offsetLine(w *wire, topic string, partition int32, offset int64, epoch int32, metadata *string, code int16) string {
	w.t.Helper()
	if code != 0 || metadata == nil {
		w.t.Fatalf("%s-%d: %s, metadata %v", topic, partition, errorName(code), metadata)
	}
	return fmt.Sprintf("%s-%d %d %d %q", topic, partition, offset, epoch, *metadata)
}

// TestReport15DeletedGroup: a deleted group stays deleted through restarts, and a
// live one is not deleted. (redpanda-data/redpanda#4900)
func TestReport15DeletedGroup(t *testing.T) {
	s := start(t, t.TempDir())
	s.createTopic(t, "t", 1)
	s.kcat(t, []byte(lines(10, "%d")), "-P", "-t", "t")
	for _, restart := range restarts {
		group := "g after " + restart.name
		member := s.kcatJoin(t, group, "t", "-X", "auto.commit.interval.ms=50")
		s.waitGroup(t, group, 1)
		eventually(t, "a commit", func() bool { return s.lag(t, group) == 0 })
		_, stderr, code := run(t, "", "group", "delete", group, "--kafka", s.kafka)
		oneClearLine(t, "group delete", stderr, code, group)
		if got := s.deleteGroups(t, group, "nosuch"); !slices.Equal(got, []string{"NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"}) {
			t.Errorf("deleting a live group and an unknown one: %q", got)
		}
		if s.waitGroup(t, group, 1); s.lag(t, group) != 0 {
			t.Error("its offsets are deleted, and the deletion was refused")
		}
		member.leave(t)
		s.waitGroup(t, group, 0)
		if got := s.deleteGroups(t, group); got[0] != "" {
			t.Fatalf("deleting an empty group: %s", got[0])
		}
		for range 2 {
			s.wantNoGroup(t, group)
			restart.end(s, t)
			s = s.again(t)
		}
		s.wantNoGroup(t, group)
		// One of the same name begins at the beginning.
		m := s.kcatJoin(t, group, "t", "-c", "10")
		m.wait(t)
		if got := m.read(); len(got) != 10 {
			t.Errorf("a group made again reads %q", got)
		}
	}
}

// deleteGroups deletes groups, and returns the error of each.
func (s *server) deleteGroups(t *testing.T, groups ...string) []string {
	t.Helper()
	q := kmsg.NewPtrDeleteGroupsRequest()
	q.Groups = groups
	errs := make([]string, len(groups))
	for _, g := range ask[*kmsg.DeleteGroupsResponse](s.dial(t), 2, q).Groups {
		errs[slices.Index(groups, g.Group)] = errorName(g.ErrorCode)
	}
	return errs
}

// wantNoGroup checks that nothing is known of a group, in any version.
func (s *server) wantNoGroup(t *testing.T, group string) {
	t.Helper()
	w := s.dial(t)
	for version := range int16(6) {
		q := kmsg.NewPtrListGroupsRequest()
		for _, g := range ask[*kmsg.ListGroupsResponse](w, version, q).Groups {
			if g.Group == group {
				t.Errorf("ListGroups v%d has the deleted group", version)
			}
		}
	}
	for version := range int16(7) {
		q := kmsg.NewPtrDescribeGroupsRequest()
		q.Groups = []string{group}
		g := ask[*kmsg.DescribeGroupsResponse](w, version, q).Groups[0]
		if want := map[bool]string{true: "GROUP_ID_NOT_FOUND"}[version >= 6]; g.State != "Dead" || errorName(g.ErrorCode) != want || len(g.Members) > 0 {
			t.Errorf("DescribeGroups v%d: %+v", version, g)
		}
	}
	if got := w.fetchOffsets(7, group, nil); len(got) > 0 {
		t.Errorf("offsets of the deleted group: %q", got)
	}
	if got := w.fetchOffsets(8, group, map[string][]int32{"t": {0}}); !slices.Equal(got, []string{`t-0 -1 -1 ""`}) {
		t.Errorf("offset of the deleted group: %q", got)
	}
}

// TestReport16OneInstanceID: of two members with one instance id the newer has it,
// in every state of the group, and through restarts of the server.
// (KAFKA-8500, twmb/franz-go#931)
func TestReport16OneInstanceID(t *testing.T) {
	s := start(t, t.TempDir())
	s.python(t, "instances.py", "twenty")

	// Who is static is told to leave by that.
	w := s.dial(t)
	instance := "one"
	if got := w.leave(3, "instances", kmsg.LeaveGroupRequestMember{InstanceID: &instance}, kmsg.LeaveGroupRequestMember{InstanceID: &instance}); !slices.Equal(got, []string{"", "UNKNOWN_MEMBER_ID"}) {
		t.Errorf("leaving by instance id, twice: %q", got)
	}
	s.waitGroup(t, "instances", 0)

	// Again, while the server restarts.
	s = start(t, t.TempDir())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.python(t, "instances.py", "eight")
	}()
	// The times between restarts grow. A member that could not say that it leaves
	// has its session, of 6 s, anew after each; and a client that was unlucky
	// waits longer each time before it connects again.
	pace := 1500 * time.Millisecond
	if clusterIn(t, s.dir) != nil { // where each kill is followed by the lease
		pace += lease / 2
	}
	for i := 0; ; i, pace = i+1, pace+pace/2 {
		select {
		case <-ended:
			t.Logf("%d restarts", i)
			return
		case <-time.After(pace):
			restarts[i%2].end(s, t)
			s = s.again(t)
		}
	}
}
