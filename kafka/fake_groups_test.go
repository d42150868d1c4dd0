package kafka

import (
	"context"
	"sync"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

// fakeGroups answers as a test says, and keeps what it was asked.
type fakeGroups struct {
	mu     sync.Mutex
	serve  func(group.Request) error // nil: an empty outcome
	asked  []group.Request
	listed []group.Listed
	err    error // of ListGroups
}

func (g *fakeGroups) Group(_ context.Context, r group.Request) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, r)
	if g.serve == nil {
		return nil
	}
	return g.serve(r)
}

func (g *fakeGroups) ListGroups(context.Context) ([]group.Listed, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listed, g.err
}
