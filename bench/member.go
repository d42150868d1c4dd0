package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sessionTimeout is so long that members that nobody runs stay in their group.
const sessionTimeout = 25 * time.Minute

// groupTopic is what the members of a group read.
type groupTopic struct {
	name       string
	partitions int32
}

// member is one of a group, by the classic protocol and nothing else: it reads
// no records.
type member struct {
	group    string
	topic    groupTopic
	instance *string // of a static member
	conn     *connection

	id         string
	generation int32
	assigned   int // partitions
}

// enter joins until there is an assignment: as often as others come or go meanwhile.
func (m *member) enter(ctx context.Context) error {
	for {
		joined, err := m.join(ctx)
		if err == nil {
			err = m.sync(ctx, joined)
		}
		if err == nil || !m.again(err) {
			return err
		}
	}
}

// again says whether to join again on an error, and forgets an id that is not valid.
func (m *member) again(err error) bool {
	switch {
	case errors.Is(err, kerr.UnknownMemberID):
		m.id = ""
	case errors.Is(err, kerr.RebalanceInProgress), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.MemberIDRequired):
	case errors.Is(err, kerr.CoordinatorLoadInProgress), errors.Is(err, kerr.NotCoordinator), errors.Is(err, kerr.CoordinatorNotAvailable):
		time.Sleep(50 * time.Millisecond)
	default:
		return false
	}
	return true
}

func (m *member) join(ctx context.Context) (*kmsg.JoinGroupResponse, error) {
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = []string{m.topic.name}
	q := kmsg.NewPtrJoinGroupRequest()
	q.Version = 9
	q.Group, q.MemberID, q.InstanceID, q.ProtocolType = m.group, m.id, m.instance, "consumer"
	q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = int32(sessionTimeout.Milliseconds()), int32(answerTimeout.Milliseconds())
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", subscription.AppendTo(nil)
	q.Protocols = append(q.Protocols, protocol)
	resp, err := q.RequestWith(ctx, m.conn)
	if err != nil {
		return nil, err
	}
	err = kerr.ErrorForCode(resp.ErrorCode)
	if err == nil || errors.Is(err, kerr.MemberIDRequired) {
		m.id = resp.MemberID
	}
	m.generation = resp.Generation
	return resp, err
}

// sync takes the member's share; the leader brings all.
func (m *member) sync(ctx context.Context, joined *kmsg.JoinGroupResponse) error {
	q := kmsg.NewPtrSyncGroupRequest()
	q.Version = 5
	q.Group, q.MemberID, q.InstanceID, q.Generation = m.group, m.id, m.instance, m.generation
	q.ProtocolType, q.Protocol = joined.ProtocolType, joined.Protocol
	if joined.LeaderID == m.id && !joined.SkipAssignment {
		q.GroupAssignment = m.topic.assign(joined.Members)
	}
	resp, err := q.RequestWith(ctx, m.conn)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return err
	}
	var share kmsg.ConsumerMemberAssignment
	if err := share.ReadFrom(resp.MemberAssignment); err != nil {
		return fmt.Errorf("an assignment of %d bytes: %w", len(resp.MemberAssignment), err)
	}
	m.assigned = 0
	for _, t := range share.Topics {
		m.assigned += len(t.Partitions)
	}
	return nil
}

// assign shares a topic out in ranges.
func (t groupTopic) assign(to []kmsg.JoinGroupResponseMember) (all []kmsg.SyncGroupRequestGroupAssignment) {
	slices.SortFunc(to, func(a, b kmsg.JoinGroupResponseMember) int { return strings.Compare(a.MemberID, b.MemberID) })
	for i, m := range to {
		share := kmsg.NewConsumerMemberAssignmentTopic()
		share.Topic = t.name
		for p := t.partitions * int32(i) / int32(len(to)); p < t.partitions*int32(i+1)/int32(len(to)); p++ {
			share.Partitions = append(share.Partitions, p)
		}
		assignment := kmsg.NewConsumerMemberAssignment()
		assignment.Topics = append(assignment.Topics, share)
		one := kmsg.NewSyncGroupRequestGroupAssignment()
		one.MemberID, one.MemberAssignment = m.MemberID, assignment.AppendTo(nil)
		all = append(all, one)
	}
	return all
}

func (m *member) heartbeat(ctx context.Context) error {
	q := kmsg.NewPtrHeartbeatRequest()
	q.Version = 4
	q.Group, q.MemberID, q.InstanceID, q.Generation = m.group, m.id, m.instance, m.generation
	resp, err := q.RequestWith(ctx, m.conn)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

func (m *member) leave(ctx context.Context) error {
	q := kmsg.NewPtrLeaveGroupRequest()
	q.Version = 5
	q.Group = m.group
	one := kmsg.NewLeaveGroupRequestMember()
	one.MemberID, one.InstanceID = m.id, m.instance
	q.Members = append(q.Members, one)
	resp, err := q.RequestWith(ctx, m.conn)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Members[0].ErrorCode)
}

// commit stores an offset for n partitions of the topic, from first on.
func (m *member) commit(ctx context.Context, first int32, n int, offset int64) error {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version = 9
	q.Group, q.MemberID, q.InstanceID, q.Generation = m.group, m.id, m.instance, m.generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = m.topic.name
	for i := range int32(n) {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = (first+i)%m.topic.partitions, offset
		t.Partitions = append(t.Partitions, p)
	}
	q.Topics = append(q.Topics, t)
	resp, err := q.RequestWith(ctx, m.conn)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("group %s, partition %d: %w", m.group, p.Partition, err)
			}
		}
	}
	return nil
}
