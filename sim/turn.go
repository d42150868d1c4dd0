package sim

import (
	"context"
	"fmt"
)

// A turn is what a fetch waits for before it goes on to the next object: of
// several that one load has woken, each goes on in an event of its own.
type turn struct {
	node   *node
	number uint64
	come   chan struct{}
}

func (t *turn) from() (*node, string, string) { return t.node, "turn", fmt.Sprintf("%020d", t.number) }

func (t *turn) happen() {
	n := t.node
	n.world.soon(func() { n.receive(func() { close(t.come) }) })
}

// turn waits.
func (n *node) turn(ctx context.Context, number uint64) {
	t := &turn{node: n, number: number, come: make(chan struct{})}
	if !n.put(t) {
		return
	}
	select {
	case <-t.come:
	case <-ctx.Done():
	}
}
