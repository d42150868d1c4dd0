package shard

import "github.com/siltstone-io/siltstone/tiered/segment"

// objectTable gives each live object a small number, so that a range names it
// in four bytes, and counts the ranges that do.
type objectTable struct {
	numbers map[segment.ObjectID]uint32
	ids     []segment.ObjectID // by number
	ranges  []uint32           // how many name it, by number
	free    []uint32
}

func (t *objectTable) live(id segment.ObjectID) bool {
	_, ok := t.numbers[id]
	return ok
}

// hold counts one more range of the object, and returns its number.
func (t *objectTable) hold(id segment.ObjectID) uint32 {
	n, ok := t.numbers[id]
	if !ok {
		if last := len(t.free) - 1; last >= 0 {
			n, t.free = t.free[last], t.free[:last]
			t.ids[n] = id
		} else {
			n = uint32(len(t.ids))
			t.ids, t.ranges = append(t.ids, id), append(t.ranges, 0)
		}
		t.numbers[id] = n
	}
	t.ranges[n]++
	return n
}

// release counts one range less; the last one frees the number.
func (t *objectTable) release(n uint32) {
	t.ranges[n]--
	if t.ranges[n] == 0 {
		delete(t.numbers, t.ids[n])
		t.free = append(t.free, n)
	}
}
