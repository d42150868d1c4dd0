package agent

import (
	"container/heap"
	"time"
)

// expiring is an operation that the loop answers at its deadline at the latest.
type expiring interface {
	deadline() time.Time
	// place is where the operation keeps its index among the deadlines.
	place() *int
	// expire answers it with what there is.
	expire(c *core)
}

// deadlines orders operations by their deadlines.
type deadlines []expiring

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline().Before(d[j].deadline()) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	*d[i].place(), *d[j].place() = i, j
}
func (d *deadlines) Push(x any) {
	op, _ := x.(expiring)
	*op.place() = len(*d)
	*d = append(*d, op)
}
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	op := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return op
}

func (d *deadlines) add(op expiring) { heap.Push(d, op) }

func (d *deadlines) remove(op expiring) { heap.Remove(d, *op.place()) }

// expireUntil answers what is due.
func (d *deadlines) expireUntil(now time.Time, c *core) {
	for len(*d) > 0 && !(*d)[0].deadline().After(now) {
		op := (*d)[0]
		d.remove(op)
		op.expire(c)
	}
}
