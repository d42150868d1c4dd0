package kafka

// LeaveGroup (key 13), v0 to v5.
//
// Up to v2 one member, whose error is the answer's; from v3 on several, by
// member id or, with an empty one, by instance id, each with its own error
// (KIP-345). v5: the reason (KIP-800).

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

func (s *Server) leaveGroup(ctx context.Context, q *kmsg.LeaveGroupRequest) *kmsg.LeaveGroupResponse {
	resp := kmsg.NewPtrLeaveGroupResponse()
	if q.Version < 3 {
		leaving := []group.LeavingMember{{Member: q.MemberID}}
		left, err := s.leave(ctx, q.Group, leaving)
		if err == nil {
			err = left[0].Err
		}
		resp.ErrorCode = s.refuse(err)
		return resp
	}
	leaving := make([]group.LeavingMember, len(q.Members))
	for i, m := range q.Members {
		leaving[i] = group.LeavingMember{Member: m.MemberID, Instance: m.InstanceID}
		if m.Reason != nil {
			leaving[i].Reason = *m.Reason
		}
	}
	left, err := s.leave(ctx, q.Group, leaving)
	// In a group that is not there nobody is a member.
	missing := errors.Is(err, group.ErrUnknownMember)
	if err != nil && !missing {
		resp.ErrorCode = s.refuse(err)
		return resp
	}
	resp.Members = make([]kmsg.LeaveGroupResponseMember, len(q.Members))
	for i, m := range q.Members {
		rm := kmsg.NewLeaveGroupResponseMember()
		rm.MemberID, rm.InstanceID = m.MemberID, m.InstanceID
		if !missing {
			err = left[i].Err
		}
		rm.ErrorCode = s.refuse(err)
		resp.Members[i] = rm
	}
	return resp
}

// leave takes members out of a group, and gives them back with what became of each.
func (s *Server) leave(ctx context.Context, id string, members []group.LeavingMember) ([]group.LeavingMember, error) {
	r := &group.Leave{Call: group.Call{Group: id}, Members: members}
	if err := s.coordinate(ctx, r); err != nil {
		return nil, err
	}
	return r.Members, r.Err
}
