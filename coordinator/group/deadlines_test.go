package group

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is put off, brought forward or cleared, each deadline comes when it
// was last set to, and those of one moment in an order that does not depend on
// chance.
func TestDeadlinesComeWhenTheyAreDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d deadlines
		var got, want []string
		now := time.UnixMilli(1000)
		list := make([]*deadline, 6)
		model := map[int]time.Time{}
		for i := range list {
			list[i] = &deadline{}
			list[i].due = func() { got = append(got, fmt.Sprint(i)) }
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, 5).Draw(t, "which")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				at := now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "in")))
				d.set(list[i], at)
				model[i] = at
			case 2:
				d.clear(list[i])
				delete(model, i)
			case 3:
				now = now.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "pass")))
				got, want = nil, nil
				for i, at := range model {
					if !at.After(now) {
						want = append(want, fmt.Sprint(i))
						delete(model, i)
					}
				}
				d.pass(now)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%v were due, %v came", want, got)
				}
				if next := d.next(); !next.IsZero() && !next.After(now) {
					t.Fatalf("the next is due %v ago", now.Sub(next))
				}
			}
			earliest := time.Time{}
			for _, at := range model {
				if earliest.IsZero() || at.Before(earliest) {
					earliest = at
				}
			}
			if next := d.next(); !earliest.IsZero() && next.After(earliest) {
				t.Fatalf("the next is at %v, one is due at %v", next, earliest)
			}
			if len(d.heap) != len(model) {
				t.Fatalf("%d deadlines stand there, %d are set", len(d.heap), len(model))
			}
		}
	})
}

// To put a deadline off, as each heartbeat does, moves nothing.
func TestPuttingOffCostsNothing(t *testing.T) {
	var d deadlines
	now := time.UnixMilli(0)
	list := make([]*deadline, 100)
	for i := range list {
		list[i] = &deadline{due: func() { t.Error("came") }}
		d.set(list[i], now.Add(time.Second))
	}
	before := slices.Clone(d.heap)
	allocs := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Millisecond)
		for _, x := range list {
			d.set(x, now.Add(time.Second))
		}
	})
	if allocs > 0 || !slices.Equal(before, d.heap) {
		t.Errorf("%v allocations, the heap moved: %v", allocs, !slices.Equal(before, d.heap))
	}
	d.pass(now.Add(time.Second - 1))
}
