package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A groupLine is a client's way to the coordinator of one group.
type groupLine struct {
	guide   *guide
	dice    *dice
	group   string
	version int16 // of FindCoordinator
	number  int   // of the guide's connection
	host    string
	closed  bool
}

// ask sends a request to the coordinator, once it is known. The request is
// made when it is sent.
func (g *groupLine) ask(timeout time.Duration, request func() kmsg.Request, done func(kmsg.Response, error)) {
	if g.closed {
		return
	}
	if g.host == "" {
		g.find(func() { g.ask(timeout, request, done) })
		return
	}
	g.guide.to(g.host, g.number).askWithin(timeout, request(), true, func(resp kmsg.Response, err error) {
		if err != nil {
			g.host = ""
		}
		done(resp, err)
	})
}

// moved says whether an error code tells to look for the coordinator again.
func (g *groupLine) moved(code int16) bool {
	switch code {
	case kerr.CoordinatorLoadInProgress.Code, kerr.CoordinatorNotAvailable.Code, kerr.NotCoordinator.Code:
		g.host = ""
		return true
	}
	return false
}

// find asks until somebody names the coordinator.
func (g *groupLine) find(then func()) {
	if g.closed {
		return
	}
	msg := kmsg.NewPtrFindCoordinatorRequest()
	msg.Version = g.version
	if g.version >= 4 {
		msg.CoordinatorKeys = []string{g.group}
	} else {
		msg.CoordinatorKey = g.group
	}
	g.guide.to(g.guide.first(), 0).ask(msg, true, func(resp kmsg.Response, err error) {
		if err == nil {
			g.host = g.found(resp.(*kmsg.FindCoordinatorResponse))
		}
		if g.host == "" {
			g.guide.turn++
			g.guide.world.after(g.dice.duration(50*time.Millisecond, 200*time.Millisecond), func() { g.find(then) })
			return
		}
		then()
	})
}

func (g *groupLine) found(r *kmsg.FindCoordinatorResponse) (host string) {
	w, client := g.guide.world, g.guide.client
	if g.version < 4 {
		if w.refused(client, r.ErrorCode, "coordinator of %s", g.group) {
			return ""
		}
		return r.Host
	}
	for _, c := range r.Coordinators {
		if c.Key == g.group && !w.refused(client, c.ErrorCode, "coordinator of %s", g.group) {
			return c.Host
		}
	}
	return ""
}
