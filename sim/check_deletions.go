package sim

import "math"

// learnDeletions notes how far deletions may have gone. One that failed, or
// was not answered, may have happened too.
func (c *checker) learnDeletions() {
	for _, d := range c.deletions {
		if d.refused {
			continue
		}
		to := d.offset
		if to < 0 {
			to = d.low
		}
		if to < 0 {
			to = math.MaxInt64
		}
		c.deleted[d.partition] = max(c.deleted[d.partition], to)
	}
}

// checkStarts: a log starts where somebody has had it start.
func (c *checker) checkStarts() {
	see := func(s sight) {
		if s.start > c.deleted[s.partition] {
			c.failf("1: %s starts at %d, and nobody had its records deleted beyond %d (moments %d to %d)",
				s.partition, s.start, c.deleted[s.partition], s.sent, s.got)
		}
	}
	for _, s := range c.sights {
		see(s)
	}
	for _, r := range c.reads {
		see(r.sight)
	}
}
