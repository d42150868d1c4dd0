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

// ListGroups is every group that this agent coordinates, sorted by id.
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
		err := s.notServing(c)
		if err == nil {
			op.listed = append(op.listed, s.machine.List()...)
			continue
		}
		// What another coordinates is asked of that one, if it says that it does:
		// a register may be of one that has died.
		if by, _ := c.claimed(s); by == 0 || !c.members.on || c.draining {
			op.listed, op.err = nil, err
			return
		}
	}
}
