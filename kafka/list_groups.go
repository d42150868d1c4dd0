package kafka

// ListGroups (key 16), v0 to v5.
//
// Every group, sorted by id: of all agents that coordinate any, while there is
// one agent. v4: its state, and a filter by states (KIP-518). v5: its type, and
// a filter by types (KIP-848); all are classic. Filters know no case, and that of
// states no space around a name; what names no state or type lets nothing pass. Where a
// coordinator is not there, or being loaded, there is no list: clients ask
// again on COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

// classicGroup is the type of groups of the classic protocol.
const classicGroup = "classic"

func (s *Server) listGroups(ctx context.Context, q *kmsg.ListGroupsRequest) *kmsg.ListGroupsResponse {
	ctx, cancel := context.WithTimeout(ctx, coordinatorTime)
	defer cancel()
	resp := kmsg.NewPtrListGroupsResponse()
	listed, err := s.groups.ListGroups(ctx)
	if errors.Is(err, group.ErrNotCoordinator) {
		err = fmt.Errorf("%w: %w", kerr.CoordinatorNotAvailable, err)
	}
	if err = coordinatorError(err, kerr.CoordinatorNotAvailable); err != nil {
		resp.ErrorCode = s.refuse(err)
		return resp
	}
	if !filtered(q.TypesFilter, classicGroup) {
		return resp
	}
	states := make([]string, len(q.StatesFilter))
	for i, state := range q.StatesFilter {
		states[i] = strings.TrimSpace(state)
	}
	for _, g := range listed {
		if !filtered(states, string(g.Phase)) {
			continue
		}
		rg := kmsg.NewListGroupsResponseGroup()
		rg.Group, rg.ProtocolType, rg.GroupState, rg.GroupType = g.ID, g.Type, string(g.Phase), classicGroup
		resp.Groups = append(resp.Groups, rg)
	}
	return resp
}

// filtered says whether a filter lets something pass; an empty one does.
func filtered(filter []string, name string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(wanted string) bool {
		return strings.EqualFold(wanted, name)
	})
}
