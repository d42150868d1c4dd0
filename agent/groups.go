package agent

import (
	"cmp"
	"context"
	"slices"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

// Group hands a request to the coordinator of its group and waits for the
// outcome, which is then in the request. An error says that there is none;
// the request still belongs to the coordinator.
func (a *Agent) Group(ctx context.Context, r group.Request) error {
	done := make(chan struct{})
	r.Common().Done = done
	return a.do(ctx, &groupOp{r}, done)
}

// A groupOp hands a request to the loop.
type groupOp struct{ r group.Request }

func (op *groupOp) handle(c *core) {
	s := c.groups[group.Of(op.r.GroupID())]
	if err := s.notServing(c); err != nil {
		op.r.Common().Err = err
		close(op.r.Common().Done)
		return
	}
	s.machine.Handle(op.r, c.now)
	s.answer()
}

// ListGroups is every group, sorted by id, if this agent coordinates them all.
func (a *Agent) ListGroups(ctx context.Context) ([]group.Listed, error) {
	op := &listOp{done: make(chan struct{})}
	if err := a.do(ctx, op, op.done); err != nil {
		return nil, err
	}
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
	slices.SortFunc(op.listed, func(a, b group.Listed) int { return cmp.Compare(a.ID, b.ID) })
}

// Coordinates says whether this agent coordinates a group.
func (a *Agent) Coordinates(id string) bool {
	groups := a.status.Load().Groups
	return len(groups) > 0 && groups[group.Of(id)]
}
