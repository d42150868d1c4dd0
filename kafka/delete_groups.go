package kafka

// DeleteGroups (key 42), v0 to v3.
//
// Each group by itself, and once, with its offsets: NON_EMPTY_GROUP while it
// has members, GROUP_ID_NOT_FOUND if it is not there. v3: a message (KIP-1331).

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

func (s *Server) deleteGroups(ctx context.Context, q *kmsg.DeleteGroupsRequest) *kmsg.DeleteGroupsResponse {
	ids, _ := distinct(q.Groups, func(id *string) string { return *id })
	doomed := make([]group.Request, len(ids))
	for i, id := range ids {
		doomed[i] = &group.Delete{Call: group.Call{Group: id}}
	}
	err := s.coordinate(ctx, doomed...)
	resp := kmsg.NewPtrDeleteGroupsResponse()
	resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(ids))
	for i, id := range ids {
		why := err
		if err == nil {
			why = doomed[i].Common().Err
		}
		rg := kmsg.NewDeleteGroupsResponseGroup()
		rg.Group, rg.ErrorCode, rg.ErrorMessage = id, s.refuse(why), message(why)
		resp.Groups[i] = rg
	}
	return resp
}
