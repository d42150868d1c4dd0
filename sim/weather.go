package sim

import "time"

// weather is how things go at present: what chance each fate has, and how
// long things take. The nemesis changes it.
type weather struct {
	bucket, coordinator trouble
	network             rough
	links               rough // between agents; nothing is split
	// crash is the chance that a node dies at the instant at which a write of it lands.
	crash float64
	// shock is the chance that it dies at the instant at which a client hears
	// what is to last.
	shock float64
}

// trouble is what a store does to calls, each with its chance; the rest goes well.
type trouble struct {
	fast, usual time.Duration // how long a call takes
	slow        float64       // it takes seconds
	fail        float64       // nothing happens, and the node is told so
	lost        float64       // a write happens, the answer is lost
	late        float64       // no answer; a write happens later, perhaps after its sender's death
	never       float64       // no answer, and nothing happens
	stall       float64       // no answer for a long time, whatever happens
}

// rough is what the network does.
type rough struct {
	fast, usual time.Duration // how long bytes take
	cut         float64       // the connection breaks
	stall       float64       // the connection is silent for a while
	split       float64       // bytes arrive in two pieces
	refuse      float64       // a connection cannot be made
}

// fair is weather in which nothing goes wrong.
func fair() weather {
	return weather{
		bucket:      trouble{fast: 4 * time.Millisecond, usual: 30 * time.Millisecond},
		coordinator: trouble{fast: time.Millisecond, usual: 6 * time.Millisecond},
		network:     rough{fast: 0, usual: 2 * time.Millisecond, split: 0.02},
		links:       rough{fast: 0, usual: 2 * time.Millisecond},
	}
}

// A fate is what becomes of one call.
type fate struct {
	name    string
	lands   time.Duration // until a write happens or a read looks; never if negative
	answers time.Duration // until the node is told
	told    verdict
}

// verdict is what a node is told.
type verdict int

const (
	toldResult  verdict = iota // what came of it
	toldFailed                 // that nothing happened
	toldUnknown                // nothing certain
)

// fateOf draws the fate of a call.
func (t trouble) fateOf(d *dice, write bool) fate {
	f := fate{name: "ok"}
	f.lands = d.duration(t.fast, t.usual)
	f.answers = f.lands + d.duration(0, t.fast)
	roll := float64(d.next()>>11) / (1 << 53)
	within := func(p float64) bool {
		hit := roll < p
		roll -= p
		return hit
	}
	switch {
	case within(t.slow):
		f.name = "slow"
		f.lands = d.duration(200*time.Millisecond, 4*time.Second)
		f.answers = f.lands + d.duration(0, 2*time.Second)
	case within(t.fail):
		f.name, f.lands, f.told = "fails", -1, toldFailed
	case within(t.stall):
		f.name, f.told = "stalls", toldUnknown
		f.answers = d.duration(5*time.Second, 20*time.Second)
		if d.chance(0.5) {
			f.lands = -1
		}
	case within(t.lost):
		f.name, f.told = "answer lost", toldUnknown
		f.answers += d.duration(0, time.Second)
	case within(t.late):
		f.name, f.told = "lands late", toldUnknown
		f.lands = f.answers + d.duration(0, 10*time.Second)
		if d.chance(0.1) {
			f.lands += d.duration(0, time.Minute)
		}
	case within(t.never):
		f.name, f.lands, f.told = "never lands", -1, toldUnknown
	}
	if !write && f.told == toldUnknown {
		f.told = toldFailed // a read that is not answered has failed
	}
	return f
}
