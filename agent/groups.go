package agent

import (
	"cmp"
	"context"
	"slices"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

// Group hands requests to the coordinators of their groups, in their order, and
// waits for the outcomes, which are then in them. An error says that there are
// none; the requests still belong to the coordinators.
func (a *Agent) Group(ctx context.Context, requests ...group.Request) error {
	for _, r := range requests {
		r.Common().Done = make(chan struct{})
	}
	if err := a.post(ctx, &groupOp{requests}); err != nil {
		return err
	}
	for _, r := range requests {
		if err := a.wait(ctx, r.Common().Done); err != nil {
			return err
		}
	}
	return nil
}

// A groupOp hands requests to the loop.
type groupOp struct{ requests []group.Request }

func (op *groupOp) handle(c *core) {
	for _, r := range op.requests {
		s := c.groups[group.Of(r.GroupID())]
		if err := s.notServing(c); err != nil {
			r.Common().Err = err
			close(r.Common().Done)
			continue
		}
		s.machine.Handle(r, c.now)
		s.answer()
	}
}

// ListGroups is every group, sorted by id, if this agent coordinates them all.
func (a *Agent) ListGroups(ctx context.Context) ([]group.Listed, error) {
	op := &listOp{done: make(chan struct{})}
	if err := a.do(ctx, op, op.done); err != nil {
		return nil, err
	}
	// Sorting many takes too long for the loop.
	slices.SortFunc(op.listed, func(a, b group.Listed) int { return cmp.Compare(a.ID, b.ID) })
	return op.listed, op.err
}

// A listOp asks the loop for all groups.
type listOp struct {
	done   chan struct{}
	listed []group.Listed
	err    error
}

func (op *listOp) handle(c *core) {
	defer close(op.done)
	for _, s := range c.groups {
		if op.err = s.notServing(c); op.err != nil {
			return
		}
	}
	for _, s := range c.groups {
		op.listed = append(op.listed, s.machine.List()...)
	}
}

// Coordinates says whether this agent coordinates a group.
func (a *Agent) Coordinates(id string) bool {
	groups := a.status.Load().Groups
	return len(groups) > 0 && groups[group.Of(id)]
}
