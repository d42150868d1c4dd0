package agent

import (
	"sort"

	"github.com/siltstone-io/siltstone"
)

// slabBytes is how much a slab holds; a batch over a quarter of it gets a slab of its own.
const slabBytes = 256 << 10

// A slab holds batches in the order in which they came, whatever their
// partitions. Bytes once written are never changed, so they are served and
// uploaded without a copy, and live until the last reader lets go of them.
type slab struct {
	buf       []byte
	seq       uint64
	unflushed int          // batches in it that are in no folded Segment
	parts     []*partition // whose batches it holds, in order, without repeats of the last
}

// A batchRef is one batch in a slab.
type batchRef struct {
	slab         *slab
	base         siltstone.Offset
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
	open  *slab
	all   []*slab
	bytes int
	limit int
	seq   uint64
}

// put copies a batch of p into a slab.
func (s *slabs) put(p *partition, batch []byte) (*slab, uint32) {
	var in *slab
	switch {
	case len(batch) > slabBytes/4:
		in = s.add(len(batch))
	case s.open == nil || len(s.open.buf)+len(batch) > cap(s.open.buf):
		s.open = s.add(slabBytes)
		in = s.open
	default:
		in = s.open
	}
	pos := uint32(len(in.buf))
	in.buf = append(in.buf, batch...)
	in.unflushed++
	if n := len(in.parts); n == 0 || in.parts[n-1] != p {
		in.parts = append(in.parts, p)
	}
	return in, pos
}

func (s *slabs) add(size int) *slab {
	s.seq++
	in := &slab{buf: make([]byte, 0, size), seq: s.seq}
	s.all = append(s.all, in)
	s.bytes += size
	return in
}

// evict forgets the oldest slabs while there is more than the limit, up to
// the first that holds something unflushed.
func (s *slabs) evict() {
	n := 0
	for ; n < len(s.all) && s.bytes > s.limit && s.all[n].unflushed == 0; n++ {
		old := s.all[n]
		if old == s.open {
			s.open = nil
		}
		for _, p := range old.parts {
			p.tail.dropThrough(old.seq)
		}
		s.bytes -= cap(old.buf)
		s.all[n] = nil
	}
	s.all = s.all[n:]
}

// A tail is the batches of one partition that are in memory, in offset
// order without holes between them: the newest flushed ones, then all that is not flushed.
type tail struct {
	refs []batchRef
	head int
}

func (t *tail) len() int { return len(t.refs) - t.head }

func (t *tail) at(i int) *batchRef { return &t.refs[t.head+i] }

func (t *tail) push(b batchRef) { t.refs = append(t.refs, b) }

// dropThrough forgets the batches in slabs up to seq.
func (t *tail) dropThrough(seq uint64) {
	for t.head < len(t.refs) && t.refs[t.head].slab.seq <= seq {
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
