package kafka

// Heartbeat (key 12), v0 to v4.
//
// Keeps a member's session, and tells it that its group rebalances. v3:
// instance ids (KIP-345). While the coordinator is being loaded the answer is
// no error, as in Kafka: sessions begin anew when it is done, and consumers
// know no COORDINATOR_LOAD_IN_PROGRESS here.

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

func (s *Server) heartbeat(ctx context.Context, q *kmsg.HeartbeatRequest) *kmsg.HeartbeatResponse {
	beat := &group.Heartbeat{
		Call: group.Call{Group: q.Group}, Member: q.MemberID, Instance: q.InstanceID, Generation: q.Generation,
	}
	err := s.coordinate(ctx, beat)
	if err == nil {
		err = beat.Err
	}
	if errors.Is(err, group.ErrLoading) {
		err = nil
	}
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.ErrorCode = s.refuse(err)
	return resp
}
