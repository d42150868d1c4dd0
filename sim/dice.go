package sim

import "time"

// dice are the random choices of one thing in a world. They depend on the
// seed and the thing's name only, never on what else happens.
type dice struct{ state uint64 }

func newDice(seed uint64, thing string, number uint64) *dice {
	// Mixed after each part, or near seeds would give the same numbers, shifted.
	d := &dice{state: seed}
	d.state = d.next()
	for _, b := range []byte(thing) {
		d.state = (d.state ^ uint64(b)) * 0x100000001b3 // FNV-1a
	}
	d.state = d.next() ^ number
	d.state = d.next()
	return d
}

// next is splitmix64.
func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

// between includes both ends.
func (d *dice) between(lo, hi int) int { return lo + d.below(hi-lo+1) }

func (d *dice) chance(p float64) bool { return float64(d.next()>>11)/(1<<53) < p }

func (d *dice) duration(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.next()%uint64(hi-lo+1))
}
