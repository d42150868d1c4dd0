package sim

import (
	"cmp"
	"slices"
)

// An output is something that a node did and the world has yet to see.
type output interface {
	// from is the node, the link, and what tells apart two outputs that come
	// on one link at once.
	from() (n *node, link, detail string)
	// happen gives it its fate. It runs in the driver.
	happen()
}

// put hands an output of a living node to the driver; it says whether the node
// lives. Any goroutine may call it.
func (n *node) put(o output) bool {
	w := n.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.dead {
		return false
	}
	w.outputs = append(w.outputs, o)
	w.poke()
	return true
}

// collect gives all outputs that have appeared their fates, in an order that
// does not depend on the goroutines that made them. Those of a paused node
// wait for its resumption.
func (w *world) collect() bool {
	w.mu.Lock()
	outputs := w.outputs
	w.outputs = nil
	w.mu.Unlock()
	slices.SortStableFunc(outputs, func(a, b output) int {
		an, al, ad := a.from()
		bn, bl, bd := b.from()
		return cmp.Or(cmp.Compare(an.index, bn.index), cmp.Compare(al, bl), cmp.Compare(ad, bd))
	})
	for _, o := range outputs {
		n, _, _ := o.from()
		c, isCall := o.(*call)
		switch {
		case n.dead && isCall: // it died since
			c.abandon()
		case isCall:
			n.calls = append(n.calls, c)
		}
		switch {
		case n.dead:
		case n.paused:
			n.held = append(n.held, o.happen)
		default:
			o.happen()
		}
	}
	return len(outputs) > 0
}

// A logLine is what a node logged.
type logLine struct {
	node *node
	text string
}

func (l logLine) from() (*node, string, string) { return l.node, "log", l.text }
func (l logLine) happen()                       { l.node.world.tracef("%s log %s", l.node.name, l.text) }
