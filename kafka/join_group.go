package kafka

// JoinGroup (key 11), v0 to v9.
//
// Waits for the other members, at most for the longest rebalance timeout among
// them. v0 has none: its session timeout counts. From v4 on a new member
// without an instance id is told its member id first, with MEMBER_ID_REQUIRED
// (KIP-394). v5: instance ids (KIP-345). From v7 on the protocol's type comes
// back, and a refused join has null for type and protocol, before an empty
// protocol. v8: the reason (KIP-800). v9: a leader may be told to leave the
// assignment as it is (KIP-814). Metadata of members is the leader's alone.

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

// joinFactor bounds the memory of a waiting join, in lengths of its frame:
// three bytes make a protocol.
const joinFactor = 20

func startJoinGroup(c *conn, r *request) (answer, error) {
	q := kmsg.NewPtrJoinGroupRequest()
	if err := decode(q, r); err != nil {
		return nil, err
	}
	join := &group.Join{
		Call: group.Call{Group: q.Group}, Member: q.MemberID, Instance: q.InstanceID,
		ClientID: string(r.clientID), ClientHost: c.clientHost(), Type: q.ProtocolType,
		SessionMS: q.SessionTimeoutMillis, RebalanceMS: q.RebalanceTimeoutMillis,
		TwoSteps: r.version >= 4, MaySkip: r.version >= 9,
		Protocols: make([]group.Protocol, len(q.Protocols)),
	}
	if r.version == 0 || join.RebalanceMS < 0 {
		join.RebalanceMS = join.SessionMS
	}
	if q.Reason != nil {
		join.Reason = *q.Reason
	}
	for i, p := range q.Protocols {
		join.Protocols[i] = group.Protocol{Name: p.Name, Metadata: bytes.Clone(p.Metadata)}
	}
	r.shrink(joinFactor)
	member := join.Member
	return callAnswer(func(ctx context.Context, out *outbox) error {
		resp := kmsg.NewPtrJoinGroupResponse()
		resp.MemberID = member
		err := checkJoin(join)
		if err == nil {
			err = r.server.await(ctx, join)
		}
		if err != nil {
			resp.ErrorCode = r.server.refuse(err)
		} else {
			r.server.answerJoin(resp, join)
		}
		out.message(r, resp)
		return nil
	}), nil
}

// checkJoin refuses what could not be said of the member in every version.
func checkJoin(join *group.Join) error {
	switch {
	case tooLong(join.Group):
		return group.ErrInvalidGroup
	case tooLong(join.ClientID), join.Instance != nil && tooLong(*join.Instance), tooLong(join.Type),
		slices.ContainsFunc(join.Protocols, func(p group.Protocol) bool { return tooLong(p.Name) }):
		return fmt.Errorf("a name of more than %d bytes: %w", maxString, group.ErrInvalidRequest)
	}
	return nil
}

// answerJoin is what became of a join.
func (s *Server) answerJoin(resp *kmsg.JoinGroupResponse, join *group.Join) {
	resp.ErrorCode, resp.MemberID = s.refuse(join.Err), join.MemberID
	if join.Err != nil {
		return
	}
	resp.Generation, resp.ProtocolType, resp.Protocol = join.Generation, &join.Type, &join.Protocol
	resp.LeaderID, resp.SkipAssignment = join.Leader, join.SkipAssignment
	resp.Members = make([]kmsg.JoinGroupResponseMember, len(join.Members))
	for i, m := range join.Members {
		rm := kmsg.NewJoinGroupResponseMember()
		rm.MemberID, rm.InstanceID, rm.ProtocolMetadata = m.ID, m.Instance, m.Metadata
		resp.Members[i] = rm
	}
}
