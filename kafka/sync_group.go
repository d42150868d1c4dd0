package kafka

// SyncGroup (key 14), v0 to v5.
//
// Waits for the leader's assignments, which come with its own SyncGroup. v3:
// instance ids (KIP-345). From v5 on a member says which protocol it takes the
// group to have, and must: INCONSISTENT_GROUP_PROTOCOL. The answer says it too.
// While the coordinator is being loaded it is REBALANCE_IN_PROGRESS: the member
// joins again, where it is told to wait. Consumers know no
// COORDINATOR_LOAD_IN_PROGRESS here, and give up at it.

import (
	"bytes"
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

// syncFactor bounds the memory of a waiting sync, in lengths of its frame:
// few bytes make an assignment.
const syncFactor = 20

func startSyncGroup(_ *conn, r *request) (answer, error) {
	q := kmsg.NewPtrSyncGroupRequest()
	if err := decode(q, r); err != nil {
		return nil, err
	}
	sync := &group.Sync{
		Call: group.Call{Group: q.Group}, Member: q.MemberID, Instance: q.InstanceID,
		Generation: q.Generation, Type: q.ProtocolType, Protocol: q.Protocol,
		Assignments: make(map[string][]byte, len(q.GroupAssignment)),
	}
	for _, a := range q.GroupAssignment {
		sync.Assignments[a.MemberID] = bytes.Clone(a.MemberAssignment)
	}
	r.shrink(syncFactor)
	return callAnswer(func(ctx context.Context, out *outbox) error {
		out.message(r, r.server.syncGroup(ctx, sync, r.version))
		return nil
	}), nil
}

func (s *Server) syncGroup(ctx context.Context, sync *group.Sync, version int16) *kmsg.SyncGroupResponse {
	resp := kmsg.NewPtrSyncGroupResponse()
	if version >= 5 && (sync.Type == nil || sync.Protocol == nil) {
		resp.ErrorCode = s.refuse(kerr.InconsistentGroupProtocol)
		return resp
	}
	err := s.await(ctx, sync)
	if err == nil {
		err = sync.Err
	}
	if errors.Is(err, group.ErrLoading) {
		err = group.ErrRebalanceInProgress
	}
	if resp.ErrorCode = s.refuse(err); err == nil {
		resp.ProtocolType, resp.Protocol, resp.MemberAssignment = &sync.ProtocolType, &sync.ProtocolName, sync.Assignment
	}
	return resp
}
