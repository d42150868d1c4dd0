// Package peer is the port through which the agents of a cluster send messages
// to each other, and the messages themselves. Adapters are in its
// sub-packages; the simulator has one of its own.
//
// A message says one thing, and stands for itself: it may come late, more than
// once, or not at all, and the protocol above it is right all the same
// (docs/design.md, section 3). What the port adds is for the usual case: on
// one connection messages of a lane come in order, each once.
package peer

import (
	"context"

	"github.com/siltstone-io/siltstone"
)

// MaxMessageBytes bounds one message, on either lane.
const MaxMessageBytes = 32 << 20

// A Peer is an agent as others reach it.
type Peer struct {
	Incarnation siltstone.Incarnation
	Address     string // host:port of its peer port
}

// Lane is one of two ways to a peer, so that what is urgent does not wait
// behind data. Messages on different lanes are in no order.
type Lane uint8

// The lanes.
const (
	Control Lane = iota
	Bulk
	Lanes = 2
)

func (l Lane) String() string { return [...]string{"control", "bulk"}[l] }

// Transport sends messages to other agents, over connections that it makes and
// makes again.
type Transport interface {
	// Reach says to whom connections are to be kept; those to others end, and
	// nothing is said of them any more, save by a call of the handler that is
	// under way. A peer whose address has changed is connected to anew. It never
	// blocks, and may be called before Run, and by the handler.
	Reach(peers []Peer)
	// Send queues a message, which is the pieces one after the other. It never
	// blocks, and the pieces are not to be changed until the agent ends: they
	// may be sent much later. False: there is no connection, or more waits to
	// be sent to the peer on this lane than it is allowed to, or the message has
	// no bytes or more than MaxMessageBytes; nothing is sent, and what was sent
	// before still is. A message is not too much where nothing else waits.
	Send(to siltstone.Incarnation, lane Lane, pieces ...[]byte) bool
	// Run serves connections that others make, and keeps those that Reach asks
	// for, until ctx ends; then it ends them without a word to the handler, and
	// returns when the handler's calls have. It is called once.
	Run(ctx context.Context, h Handler) error
}

// Handler hears what comes, on goroutines of the transport. Calls of Up and Down
// about one peer come one at a time, in order; so do those of Received from one
// peer on one lane, also where one connection has taken the place of another.
// All others come at once.
type Handler interface {
	// Up: both lanes to a peer of Reach are connected, and Send may succeed.
	// What was sent on an earlier connection has arrived, or never will.
	Up(to siltstone.Incarnation)
	// Down: they are not any more; what was sent last may not have arrived.
	// Refused: the peer cannot be connected to again, as nobody listens where
	// it was, or somebody else does. This is said after each attempt that ends
	// so, be it the first to the peer; such attempts are a second apart at most
	// and go on until Reach says otherwise.
	Down(to siltstone.Incarnation, refused bool)
	// Received gives a message that a peer has sent, on its connections to this
	// agent. While it blocks, nothing more of that lane is read; when so much
	// waits that the peer can send none of it for some seconds, the peer's
	// connection breaks. The message is the handler's.
	Received(from siltstone.Incarnation, lane Lane, message []byte)
}
