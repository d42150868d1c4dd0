package kafka

// DescribeGroups (key 15), v0 to v6.
//
// Each group by itself, and once. What members said and were assigned is shown
// of a stable group alone. A group that is not there is Dead, from v6 on with
// GROUP_ID_NOT_FOUND (KIP-1043). v3: what a client may do (KIP-430): all. v4:
// instance ids (KIP-345).

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

func (s *Server) describeGroups(ctx context.Context, q *kmsg.DescribeGroupsRequest) *kmsg.DescribeGroupsResponse {
	ids, _ := distinct(q.Groups, func(id *string) string { return *id })
	asked := make([]group.Describe, len(ids))
	requests := make([]group.Request, len(ids))
	for i, id := range ids {
		asked[i].Group, requests[i] = id, &asked[i]
	}
	err := s.coordinate(ctx, requests...)
	resp := kmsg.NewPtrDescribeGroupsResponse()
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(ids))
	for i, id := range ids {
		rg := kmsg.NewDescribeGroupsResponseGroup()
		rg.Group = id
		why := err
		if err == nil {
			why = describeGroup(&rg, &asked[i], q)
		}
		rg.ErrorCode, rg.ErrorMessage = s.refuse(why), message(why)
		resp.Groups[i] = rg
	}
	return resp
}

// describeGroup fills in what a coordinator says.
func describeGroup(rg *kmsg.DescribeGroupsResponseGroup, asked *group.Describe, q *kmsg.DescribeGroupsRequest) error {
	missing := errors.Is(asked.Err, group.ErrNotFound)
	if asked.Err != nil && !missing {
		return asked.Err
	}
	d := &asked.Description
	rg.State, rg.ProtocolType, rg.Protocol = string(d.Phase), d.Type, d.Protocol
	if missing && q.Version >= 6 {
		return fmt.Errorf("group %s: %w", asked.Group, asked.Err)
	}
	rg.AuthorizedOperations = operations(q.IncludeAuthorizedOperations, groupOperations)
	rg.Members = make([]kmsg.DescribeGroupsResponseGroupMember, len(d.Members))
	for i, m := range d.Members {
		rm := kmsg.NewDescribeGroupsResponseGroupMember()
		rm.MemberID, rm.InstanceID, rm.ClientID, rm.ClientHost = m.ID, m.Instance, m.ClientID, m.ClientHost
		rm.ProtocolMetadata, rm.MemberAssignment = m.Metadata, m.Assignment
		rg.Members[i] = rm
	}
	return nil
}
