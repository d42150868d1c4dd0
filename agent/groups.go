package agent

import (
	"context"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
)

// Group hands a request to the coordinator of its group.
func (a *Agent) Group(ctx context.Context, r group.Request) error { return siltstone.ErrUnavailable }

// ListGroups is every group, sorted by id.
func (a *Agent) ListGroups(ctx context.Context) ([]group.Listed, error) {
	return nil, siltstone.ErrUnavailable
}

// Coordinates says whether this agent coordinates a group.
func (a *Agent) Coordinates(id string) bool { return false }
