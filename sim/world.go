package sim

import (
	"bytes"
	"container/heap"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone/internal/planted"
)

// A world is what one seed gives. Its driver is the goroutine that calls run;
// what is not marked otherwise belongs to the driver.
type world struct {
	seed  uint64
	start time.Time
	now   time.Time

	events events
	count  uint64 // of events scheduled
	wake   chan struct{}
	timer  *time.Timer

	nodes     []*node
	store     *store
	weather   weather
	numbers   map[string]uint64   // of the last thing on each link
	ghosts    map[string][]func() // writes of dead nodes, by link, that may land yet
	partings  map[way]time.Time   // since when
	slowed    map[way]time.Duration
	offline   map[string]bool // hosts that cannot reach the stores
	throttled map[string]bool // hosts that cannot append: the registers are elsewhere
	clocks    clocks
	died      func(*node) // is told of every node's end
	heard     func()      // is told when a client hears what is to last

	plant planted.Bug
	trace bytes.Buffer
	wrong []string // what must not happen, beyond what the history shows

	mu      sync.Mutex
	outputs []output // of nodes, since the last collect
}

func newWorld(seed uint64) *world {
	now := time.Now()
	w := &world{
		seed: seed, start: now, now: now,
		wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour),
		store: newStore(), numbers: map[string]uint64{},
		partings: map[way]time.Time{}, slowed: map[way]time.Duration{}, offline: map[string]bool{}, throttled: map[string]bool{},
		ghosts: map[string][]func(){}, died: func(*node) {}, heard: func() {},
	}
	w.clocks.drift = mostDrift
	w.weather = fair()
	return w
}

// An event happens in the driver at its instant.
type event struct {
	at time.Time
	n  uint64
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

// timerPhase is where within a microsecond the nodes' own timers fire. No
// event does.
const timerPhase = 999 * time.Nanosecond

// after schedules do about d from now: at an instant of its own below the
// millisecond, so that timers that nodes start in different events, for whole
// milliseconds, never fire together.
func (w *world) after(d time.Duration, do func()) time.Time {
	return w.notBefore(w.now.Add(d), do)
}

// soon schedules do before nearly everything else.
func (w *world) soon(do func()) {
	w.count++
	heap.Push(&w.events, event{at: w.now.Add(time.Microsecond), n: w.count, do: do})
}

// notBefore is after for an instant. It returns the instant that it found.
func (w *world) notBefore(at time.Time, do func()) time.Time {
	w.count++
	phase := w.count * 7919 % 999_000 // each once before any comes again
	at = at.Truncate(time.Millisecond).Add(time.Duration(phase/999)*time.Microsecond + time.Duration(phase%999))
	if !at.After(w.now) {
		at = at.Add(time.Millisecond)
	}
	heap.Push(&w.events, event{at: at, n: w.count, do: do})
	return at
}

// number gives things on one link their numbers, from 1.
func (w *world) number(link string) uint64 {
	w.numbers[link]++
	return w.numbers[link]
}

func (w *world) dice(link string) *dice { return newDice(w.seed, link, w.number(link)) }

// poke tells the driver that a node has done something. Any goroutine may call it.
func (w *world) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run lets events happen until done, until the limit has passed, or until so
// much is wrong that more would say no more; it says whether done.
func (w *world) run(done func() bool, limit time.Duration) bool {
	deadline := w.now.Add(limit)
	for {
		w.quiet()
		if done() {
			return true
		}
		if !w.now.Before(deadline) || len(w.wrong) > maxWrong {
			return false
		}
		next := deadline
		if len(w.events) > 0 && w.events[0].at.Before(deadline) {
			next = w.events[0].at
		}
		if w.now.Before(next) {
			w.timer.Reset(next.Sub(w.now))
			select {
			case <-w.timer.C:
			case <-w.wake:
				w.timer.Stop()
			}
			continue
		}
		if next.Equal(deadline) {
			continue
		}
		heap.Pop(&w.events).(event).do()
	}
}

// pass lets events happen for d.
func (w *world) pass(d time.Duration) { w.run(func() bool { return false }, d) }

// quiet waits until no node moves any more at this instant, and gives all
// that they asked for its fate.
func (w *world) quiet() {
	for {
		synctest.Wait()
		select {
		case <-w.wake:
		default:
		}
		w.now = time.Now()
		if !w.collect() {
			return
		}
	}
}

// skip is a time in which nobody is there: d passes between two events. No
// node may be up.
func (w *world) skip(d time.Duration) {
	w.quiet()
	for i := range w.events {
		w.events[i].at = w.events[i].at.Add(d)
	}
	time.Sleep(d)
	w.now = time.Now()
}

func (w *world) tracef(format string, args ...any) {
	fmt.Fprintf(&w.trace, "%12.6f  ", float64(w.now.Sub(w.start))/float64(time.Second))
	fmt.Fprintf(&w.trace, format, args...)
	w.trace.WriteByte('\n')
}

// failf notes what must not happen.
func (w *world) failf(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	w.wrong = append(w.wrong, s)
	w.tracef("WRONG: %s", s)
}
