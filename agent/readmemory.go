package agent

import (
	"context"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
)

// readMemory bounds what answers to fetches keep in memory until their readers
// have them, which may take long: slabs, and what was read of objects, that
// everybody else may have let go of.
//
// An answer may have an eighth of what is free. So a few who ask for much and
// do not read leave room for many who do: small answers fit the buffers of a
// socket, and are given back at once. One batch is given whatever its size.
type readMemory struct {
	mu    sync.Mutex
	limit int
	free  int           // below zero, where what was read was larger than thought
	given chan struct{} // closed when some is given back; nil: nobody waits
}

const (
	readShare = 8         // of what is free
	readLeast = slabBytes // that an answer may have, however little is free
)

func newReadMemory(limit int) *readMemory { return &readMemory{limit: limit, free: limit} }

// forTail is what reading objects leaves to those who read near the end, and
// keep little.
func (m *readMemory) forTail() int { return m.limit / 4 }

// share is how much an answer may have now.
func (m *readMemory) share() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.free/readShare, readLeast)
}

// A readLease is what one answer keeps. It is used by one goroutine at a time.
type readLease struct {
	of       *readMemory
	held     int
	reserved int // of held, for the next object that is read
}

// take takes n bytes and leaves some to others, or returns what is closed when
// there may be more. Where nobody has any there is room for every batch.
func (l *readLease) take(n, leave int) (given <-chan struct{}) {
	m := l.of
	m.mu.Lock()
	defer m.mu.Unlock()
	if n+leave > m.free && m.free < m.limit {
		if m.given == nil {
			m.given = make(chan struct{})
		}
		return m.given
	}
	m.free -= n
	l.held += n
	return nil
}

// reserve makes sure of n bytes for what is read next.
func (l *readLease) reserve(n int) bool {
	if l.reserved == 0 && l.take(n, l.of.forTail()) == nil {
		l.reserved = n
	}
	return l.reserved > 0
}

// keep says how much became of what was reserved.
func (l *readLease) keep(n int) {
	l.giveBack(l.reserved - n)
	l.reserved = 0
}

func (l *readLease) giveBack(n int) {
	m := l.of
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += n
	l.held -= n
	if n > 0 && m.given != nil {
		close(m.given)
		m.given = nil
	}
}

// wanted says whether others wait for memory.
func (l *readLease) wanted() bool {
	m := l.of
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.given != nil
}

// release gives all back.
func (l *readLease) release() { l.giveBack(l.held) }

// pins is what the plan of an answer keeps of slabs: each whole, however little
// of it is in the answer.
type pins struct {
	mark  uint64 // of the plan, in the slabs that it has counted
	bytes int
	room  int
}

// pin counts a slab, if there is room or it must be.
func (k *pins) pin(s *slab, must bool) bool {
	if s.mark == k.mark {
		return true
	}
	if k.bytes+len(s.buf) > k.room && !must {
		return false
	}
	s.mark = k.mark
	k.bytes += len(s.buf)
	return true
}

// untilGiven waits for memory, and says whether there was any in time.
func (a *Agent) untilGiven(ctx context.Context, given <-chan struct{}, deadline time.Time) bool {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-given:
		return true
	case <-timer.C:
	case <-ctx.Done():
	case <-a.ended:
	}
	return false
}

// withoutRecords is the answer to a reader for whom there is no memory: it is
// to ask again.
func withoutRecords(r siltstone.FetchResult) *siltstone.FetchResult {
	for i := range r.Parts {
		r.Parts[i].Records = nil
	}
	return &r
}
