package group

import (
	"container/heap"
	"time"
)

// A deadline is a time at which something is due, of which there are many that
// are put off far more often than they come. So to put one off costs nothing:
// it stays where it stands among the others, and moves when its turn comes.
type deadline struct {
	due   func()    // called once, when it is over
	at    time.Time // when it is; zero: never
	stood time.Time // where it stands, never after at
	seq   uint64    // of those that stand together, the one put there first comes first
	place int       // in the heap, from 1; 0: not there
}

// deadlines are all of a Machine.
type deadlines struct {
	heap deadlineHeap
	seq  uint64
}

// set puts a deadline to a time.
func (d *deadlines) set(x *deadline, at time.Time) {
	x.at = at
	switch {
	case x.place == 0:
		d.seq++
		x.stood, x.seq = at, d.seq
		heap.Push(&d.heap, x)
	case at.Before(x.stood):
		x.stood = at
		heap.Fix(&d.heap, x.place-1)
	}
}

func (d *deadlines) clear(x *deadline) {
	if x.at = (time.Time{}); x.place > 0 {
		heap.Remove(&d.heap, x.place-1)
	}
}

// putOff moves all deadlines by the same, so they stay in their order.
func (d *deadlines) putOff(by time.Duration) {
	for _, x := range d.heap {
		x.at, x.stood = x.at.Add(by), x.stood.Add(by)
	}
}

// next is a time before which nothing is due; zero if nothing ever is.
func (d *deadlines) next() time.Time {
	if len(d.heap) == 0 {
		return time.Time{}
	}
	return d.heap[0].stood
}

// pass does what is due. All that are left are after now.
func (d *deadlines) pass(now time.Time) {
	for len(d.heap) > 0 && !d.heap[0].stood.After(now) {
		x := d.heap[0]
		if x.at.After(now) {
			x.stood = x.at
			heap.Fix(&d.heap, 0)
			continue
		}
		d.clear(x)
		x.due()
	}
}

type deadlineHeap []*deadline

func (h deadlineHeap) Len() int { return len(h) }

func (h deadlineHeap) Less(i, j int) bool {
	if c := h[i].stood.Compare(h[j].stood); c != 0 {
		return c < 0
	}
	return h[i].seq < h[j].seq
}

func (h deadlineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

func (h *deadlineHeap) Push(x any) {
	*h = append(*h, x.(*deadline))
	x.(*deadline).place = len(*h)
}

func (h *deadlineHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last], x.place = nil, 0
	*h = (*h)[:last]
	return x
}
