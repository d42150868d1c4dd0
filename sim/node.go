package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// A program is what a node runs, from its start to its end. It ends when its context does.
type program func(ctx context.Context, n *node) error

// A node is one run of a process: a restart makes another.
type node struct {
	world       *world
	index       int
	name        string
	host        string // its address; the next run has the same
	incarnation siltstone.Incarnation
	listener    *listener
	peers       *peers
	log         *slog.Logger
	cancel      context.CancelFunc
	cancelParts []context.CancelFunc // by world.mu
	ended       chan struct{}
	err         error // of the program; for who has seen ended closed

	asked   bool // to stop
	stopped bool // by pause
	pauses  int
	paused  bool     // stopped, or has not caught up since
	held    []func() // what waits while it is paused
	calls   []*call  // not answered
	conns   []*conn

	dead bool // by world.mu
}

// boot starts a program at a host.
func (w *world) boot(host string, run program) *node {
	n := &node{world: w, index: len(w.nodes), host: host, ended: make(chan struct{})}
	n.name = fmt.Sprintf("%s.%d", host, n.index)
	n.incarnation = siltstone.Incarnation(newDice(w.seed, w.identity(n), 0).next() | 1)
	n.listener = newListener(n)
	n.peers = newPeers(n)
	n.log = slog.New(&logHandler{node: n})
	w.nodes = append(w.nodes, n)
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	w.tracef("%s boots as %s", n.name, n.incarnation)
	go func() {
		defer close(n.ended)
		n.err = run(ctx, n)
		n.put(&ending{n})
	}()
	return n
}

// identity is what a node's incarnation follows from: each has one of its own,
// but for a planted bug.
func (w *world) identity(n *node) string {
	if w.plant.Is(planted.RestartedIsSame) {
		return n.host
	}
	return n.name
}

// ending is a program's own end.
type ending struct{ node *node }

func (e *ending) from() (*node, string, string) { return e.node, "end", "" }
func (e *ending) happen() {
	n := e.node
	n.world.tracef("%s ended: %v", n.name, n.err)
	if n.err != nil || !n.asked {
		n.world.failf("9: %s ended by itself: %v", n.name, n.err)
	}
	n.die()
}

// part is the context of one part of the program. When the node is asked to
// stop, its parts are told one after the other, in some order: told at once
// they would race.
func (n *node) part(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.cancelParts = append(n.cancelParts, cancel)
	return ctx
}

// stop asks the program to end in its own time.
func (n *node) stop() {
	w := n.world
	w.tracef("%s is asked to stop", n.name)
	n.resume()
	n.asked = true
	w.mu.Lock()
	parts := slices.Clone(n.cancelParts)
	w.mu.Unlock()
	for d := w.dice("stop " + n.name); len(parts) > 0; {
		i := d.below(len(parts))
		w.after(d.duration(0, 3*time.Millisecond), parts[i])
		parts = slices.Delete(parts, i, i+1)
	}
	w.after(5*time.Millisecond, n.cancel)
}

// crash ends the node as a power cut does: nothing that it does from here on
// has any effect, and it hears nothing any more. Writes under way may land yet.
func (n *node) crash() {
	if n.dead {
		return
	}
	n.world.tracef("%s crashes", n.name)
	n.die()
}

func (n *node) die() {
	w := n.world
	w.mu.Lock()
	n.dead = true
	w.mu.Unlock()
	n.stopped, n.paused, n.held = false, false, nil
	n.cancel()
	n.listener.close()
	n.peers.end()
	for _, c := range n.conns {
		c.serverDied()
	}
	n.conns = nil
	for _, c := range n.calls {
		c.abandon()
	}
	n.calls = nil
	w.died(n)
}

// gone says whether the program has returned.
func (n *node) gone() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// pause keeps everything from and to the node until resume. Its own timers go on.
func (n *node) pause() {
	n.world.tracef("%s pauses", n.name)
	n.stopped, n.paused = true, true
	if n.pauses++; len(n.peers.wires) == 0 {
		return
	}
	pause := n.pauses
	n.world.after(silence, func() {
		if n.stopped && n.pauses == pause {
			n.peers.silent()
		}
	})
}

// resume lets what was held happen, one thing at a time, before what comes now.
func (n *node) resume() {
	if !n.stopped {
		return
	}
	n.world.tracef("%s resumes", n.name)
	n.stopped = false
	n.catchUp()
}

func (n *node) catchUp() {
	if n.stopped {
		return
	}
	if n.dead || len(n.held) == 0 {
		n.paused = false
		return
	}
	do := n.held[0]
	n.held = n.held[1:]
	do()
	n.world.soon(n.catchUp)
}

// receive lets something reach the node, if it lives, and when it is awake.
func (n *node) receive(do func()) {
	switch {
	case n.dead:
	case n.paused:
		n.held = append(n.held, do)
	default:
		do()
	}
}

func (n *node) forget(c *call) {
	if i := slices.Index(n.calls, c); i >= 0 {
		n.calls = slices.Delete(n.calls, i, i+1)
	}
}

// logHandler puts what a node logs into the trace.
type logHandler struct {
	node  *node
	attrs string
}

func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s", r.Level, r.Message, h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.node.put(logLine{h.node, b.String()})
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	for _, a := range attrs {
		with.attrs += fmt.Sprintf(" %s=%v", a.Key, a.Value)
	}
	return &with
}

func (h *logHandler) WithGroup(string) slog.Handler { return h }
