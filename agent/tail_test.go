package agent

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone"
)

// TestTailsOverSlabs appends to several partitions, flushes and evicts in any
// order, and compares each tail with what it must still hold: all that is
// unflushed, nothing out of order, no hole.
func TestTailsOverSlabs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := slabs{limit: rapid.IntRange(0, 4).Draw(t, "limit") * slabBytes}
		parts := make([]*partition, 3)
		want := make([][]batchRef, 3)
		for i := range parts {
			parts[i] = &partition{}
		}
		flushed := [3]int{}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			i := rapid.IntRange(0, 2).Draw(t, "partition")
			p := parts[i]
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				size := rapid.SampledFrom([]int{1, 100, slabBytes / 8, slabBytes/4 + 1, 2 * slabBytes}).Draw(t, "size")
				in, pos := s.put(p, bytes.Repeat([]byte{byte(len(want[i]))}, size))
				ref := batchRef{slab: in, pos: pos, size: uint32(size), base: p.next, offsets: 2}
				p.next = ref.end()
				p.tail.push(ref)
				want[i] = append(want[i], ref)
			case 2:
				for ; flushed[i] < len(want[i]); flushed[i]++ {
					s.done(&want[i][flushed[i]])
				}
				p.flushed = p.next
			case 3:
				s.evict()
				checkEvicted(t, &s)
			}
			for i, p := range parts {
				checkTail(t, &p.tail, want[i], flushed[i])
			}
		}
		for i := range parts {
			for ; flushed[i] < len(want[i]); flushed[i]++ {
				s.done(&want[i][flushed[i]])
			}
			parts[i].flushed = parts[i].next
		}
		s.evict()
		if s.bytes > s.limit {
			t.Fatalf("%d bytes are kept of flushed batches, the limit is %d", s.bytes, s.limit)
		}
	})
}

// checkEvicted looks for slabs that should have gone: a piece that is not
// flushed keeps its own slab and no other.
func checkEvicted(t *rapid.T, s *slabs) {
	for _, in := range s.all {
		if s.bytes > s.limit && in.unflushed == 0 {
			t.Fatalf("%d bytes are kept, the limit is %d, and slab %d holds nothing unflushed", s.bytes, s.limit, in.seq)
		}
	}
}

func checkTail(t *rapid.T, tail *tail, want []batchRef, flushed int) {
	if tail.len() < len(want)-flushed {
		t.Fatalf("tail holds %d batches, %d are not flushed", tail.len(), len(want)-flushed)
	}
	skip := len(want) - tail.len()
	for n := range tail.len() {
		got := tail.at(n)
		b, mark := got.bytes(), byte(skip+n)
		if got.base != siltstone.Offset(2*(skip+n)) || len(b) != int(got.size) || b[0] != mark || b[len(b)-1] != mark {
			t.Fatalf("batch %d of the tail is not the %d-th that was appended", n, skip+n)
		}
	}
	if tail.len() > 0 {
		first := tail.at(0).base
		if tail.covers(first-1) || !tail.covers(first) || tail.from(first+1) != 0 || tail.from(first+2) != 1 {
			t.Fatal("offsets are not found in the tail")
		}
	}
}
