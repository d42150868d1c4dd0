package agent

import (
	"slices"
	"sort"
	"time"

	"github.com/siltstone-io/siltstone"
)

// slabBytes is how much a slab holds; a batch over a quarter of it gets a slab of its own.
const slabBytes = 256 << 10

// A slab holds batches in the order in which they came, whatever their
// partitions. Bytes once written are never changed, so they are served and
// uploaded without a copy, and live until the last reader lets go of them.
type slab struct {
	buf       []byte // its length is the slab's for good: workers read pieces of it while others are filled
	used      int
	seq       uint64
	mark      uint64       // of the last plan that has counted it
	unflushed int          // batches in it that are in no folded Segment
	parts     []*partition // whose batches it holds, in order, without repeats of the last
}

// A batchRef is one batch in a slab.
type batchRef struct {
	slab         *slab
	base         siltstone.Offset
	at           time.Duration // when it came, since the agent began
	maxTimestamp int64
	pos, size    uint32
	offsets      int32
	epoch        siltstone.Epoch
}

func (b *batchRef) bytes() []byte { return b.slab.buf[b.pos : b.pos+b.size : b.pos+b.size] }

func (b *batchRef) end() siltstone.Offset { return b.base + siltstone.Offset(b.offsets) }

// slabs is the memory of all unflushed batches and of the newest flushed
// ones, oldest first. Flushed slabs go once there is more than limit in all.
type slabs struct {
	open      *slab
	all       []*slab
	bytes     int
	unflushed int // bytes of batches in no folded Segment
	limit     int
	seq       uint64
}

// put copies a batch of p into a slab.
func (s *slabs) put(p *partition, batch []byte) (*slab, uint32) {
	var in *slab
	switch {
	case len(batch) > slabBytes/4:
		in = s.add(len(batch))
	case s.open == nil || s.open.used+len(batch) > len(s.open.buf):
		s.open = s.add(slabBytes)
		in = s.open
	default:
		in = s.open
	}
	pos := uint32(in.used)
	in.used += copy(in.buf[in.used:], batch)
	in.unflushed++
	s.unflushed += len(batch)
	if n := len(in.parts); n == 0 || in.parts[n-1] != p {
		in.parts = append(in.parts, p)
	}
	return in, pos
}

func (s *slabs) add(size int) *slab {
	s.seq++
	in := &slab{buf: make([]byte, size), seq: s.seq}
	s.all = append(s.all, in)
	s.bytes += size
	return in
}

// evict forgets the oldest slabs while there is more than the limit, but for
// those that hold something unflushed. Such a one may stay for long, where
// a shard cannot commit; those after it go all the same.
func (s *slabs) evict() {
	n, kept := 0, 0
	for ; n < len(s.all) && s.bytes > s.limit; n++ {
		old := s.all[n]
		if old.unflushed > 0 {
			s.all[kept] = old
			kept++
			continue
		}
		if old == s.open {
			s.open = nil
		}
		for _, p := range old.parts {
			p.tail.dropThrough(old.seq, p.flushed)
		}
		s.bytes -= len(old.buf)
	}
	if kept < n {
		s.all = slices.Delete(s.all, kept, n)
	}
}

// done counts a batch as no longer unflushed.
func (s *slabs) done(b *batchRef) {
	b.slab.unflushed--
	s.unflushed -= int(b.size)
}

// waste is how much memory slabs take beyond the limit and the batches that
// are not flushed: little pieces of those keep whole slabs.
func (s *slabs) waste() int { return max(0, s.bytes-s.limit-s.unflushed) }

// A tail is the batches of one partition that are in memory, in offset
// order without holes between them: the newest flushed ones, then all that is not flushed.
type tail struct {
	refs []batchRef
	head int
}

func (t *tail) len() int { return len(t.refs) - t.head }

func (t *tail) at(i int) *batchRef { return &t.refs[t.head+i] }

func (t *tail) push(b batchRef) { t.refs = append(t.refs, b) }

// dropThrough forgets the flushed batches in slabs up to seq.
func (t *tail) dropThrough(seq uint64, flushed siltstone.Offset) {
	for t.head < len(t.refs) && t.refs[t.head].slab.seq <= seq && t.refs[t.head].end() <= flushed {
		t.refs[t.head] = batchRef{}
		t.head++
	}
	switch {
	case t.head == len(t.refs):
		t.refs, t.head = nil, 0
	case t.head >= 64 && t.head > len(t.refs)/2:
		t.refs = append(t.refs[:0:0], t.refs[t.head:]...)
		t.head = 0
	}
}

// from is the index of the batch that holds off, or of the first after it;
// len() if there is none.
func (t *tail) from(off siltstone.Offset) int {
	return sort.Search(t.len(), func(i int) bool { return t.at(i).end() > off })
}

// covers says whether off, below the log's end, can be served from the tail.
func (t *tail) covers(off siltstone.Offset) bool {
	return t.len() > 0 && t.at(0).base <= off
}
