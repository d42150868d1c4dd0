package sim

import "time"

// A way is from one host to another.
type way struct{ from, to string }

// part keeps everything from passing that way, until it is mended. Connections
// on which nothing is heard for too long break: those of both ways, for what
// is sent on one is answered on the other.
func (w *world) part(from, to string) {
	if w.parted(from, to) {
		return
	}
	w.tracef("nothing passes from %s to %s", from, to)
	began := w.now
	w.partings[way{from, to}] = began
	w.after(silence, func() {
		if at, parted := w.partings[way{from, to}]; parted && at.Equal(began) {
			w.silent(from, to)
			w.silent(to, from)
		}
	})
}

func (w *world) mend(from, to string) {
	w.tracef("all passes from %s to %s", from, to)
	delete(w.partings, way{from, to})
}

func (w *world) parted(from, to string) bool {
	_, parted := w.partings[way{from, to}]
	return parted
}

// silent breaks what is connected from one host to another.
func (w *world) silent(from, to string) {
	n, sender := w.at(to), w.at(from)
	if n == nil || sender == nil {
		return
	}
	if c := n.peers.wires[sender.incarnation]; c != nil {
		c.lose(1)
	}
}

// drag makes everything that way take longer; none is none.
func (w *world) drag(from, to string, by time.Duration) { w.slowed[way{from, to}] = by }

// flight is how long something takes that way.
func (w *world) flight(d *dice, from, to string) time.Duration {
	return d.duration(w.weather.links.fast, w.weather.links.usual) + w.slowed[way{from, to}]
}
