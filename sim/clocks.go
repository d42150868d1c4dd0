package sim

import (
	"sync"
	"time"
)

// Clocks of hosts. Each runs a little fast or slow, so what takes an agent 6 s by its
// own takes others up to a hundredth more or less; and what time it is there
// jumps, forward and back, while its agents run.
type clocks struct {
	drift float64
	mu    sync.Mutex
	walls map[string]time.Duration // ahead of the world's, by host
}

const (
	// mostDrift is far beyond what machines do (NTP steers 0.05 %).
	mostDrift = 0.01
	// mostJump, twice, is less than what monthOff leaves over producer.id.expiration.ms.
	mostJump = 29 * time.Minute
)

// clockOf is a node's clock that never jumps.
func (w *world) clockOf(n *node) func() time.Time {
	begun := w.now
	rate := w.clocks.drift * float64(newDice(w.seed, n.host, 3).between(-100, 100)) / 100
	return func() time.Time {
		now := time.Now()
		return now.Add(time.Duration(rate * float64(now.Sub(begun))))
	}
}

// wallOf is what time it is at a node.
func (w *world) wallOf(n *node) func() time.Time {
	return func() time.Time {
		w.clocks.mu.Lock()
		defer w.clocks.mu.Unlock()
		return time.Now().Add(w.clocks.walls[n.host])
	}
}

// jump sets the clock of a host.
func (w *world) jump(host string, ahead time.Duration) {
	w.tracef("at %s it is %v later than it is", host, ahead)
	w.clocks.mu.Lock()
	defer w.clocks.mu.Unlock()
	if w.clocks.walls == nil {
		w.clocks.walls = map[string]time.Duration{}
	}
	w.clocks.walls[host] = ahead
}
