package kafka

import (
	"container/list"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
)

// Session epochs with a meaning of their own (KIP-227).
const (
	epochFull  = 0  // fetch all that is named here, and begin a session
	epochFinal = -1 // the same without one
)

// fetchPartition is a partition that a client fetches, and what it knows of it.
type fetchPartition struct {
	fetchKey
	offset    siltstone.Offset
	maxBytes  int
	epoch     siltstone.Epoch
	lastEpoch siltstone.Epoch

	// What the client was told last; -1 before.
	highWatermark, logStart siltstone.Offset
}

// fetchKey names a partition as the client does: by topic name below v13, by id from then on.
type fetchKey struct {
	topic     string
	topicID   siltstone.TopicID
	partition int32
}

// fetchSession is the partitions that a client fetches again and again, so
// that its requests and the answers have only what changed (KIP-227). It
// belongs to the request that took it from the cache.
type fetchSession struct {
	id         int32
	epoch      int32 // of the next request
	byID       bool  // topics are named by id
	partitions map[fetchKey]*list.Element
	order      *list.List // of *fetchPartition: who is served first

	charged  int           // partitions counted by the cache
	lastUsed time.Time     // guarded by the cache
	place    *list.Element // in the cache; guarded by it
}

// update takes over what a request says: partitions to add or change, and to forget.
func (f *fetchSession) update(wanted []fetchPartition, forgotten []fetchKey) {
	for i := range wanted {
		f.set(wanted[i])
	}
	for _, key := range forgotten {
		if at, ok := f.partitions[key]; ok {
			f.order.Remove(at)
			delete(f.partitions, key)
		}
	}
}

// set adds a partition, or changes what the client wants of it.
func (f *fetchSession) set(p fetchPartition) {
	at, ok := f.partitions[p.fetchKey]
	if !ok {
		f.partitions[p.fetchKey] = f.order.PushBack(&p)
		return
	}
	old := at.Value.(*fetchPartition)
	p.highWatermark, p.logStart = old.highWatermark, old.logStart
	*old = p
}

// served puts a partition behind those that had no data, for fairness.
func (f *fetchSession) served(p *fetchPartition) { f.order.MoveToBack(f.partitions[p.fetchKey]) }

// sessionIdle is how long a session is safe from a new one that needs its
// place (Kafka's min.incremental.fetch.session.eviction.ms).
const sessionIdle = 2 * time.Minute

// sessionCache keeps sessions between requests. A session in use is out of it,
// and found by nobody. When it is full, a new session takes the place of the
// ones that are unused for longest, but for sessionIdle at least, or is not
// made: its client goes on with full requests.
type sessionCache struct {
	maxSessions, maxPartitions int
	random                     func() uint64
	metrics                    *metrics

	mu         sync.Mutex
	sessions   map[int32]*fetchSession // at rest
	taken      map[int32]struct{}      // ids of those in use
	order      *list.List              // at rest, the longest unused first
	partitions int                     // of all
}

func newSessionCache(l Limits, random func() uint64, m *metrics) *sessionCache {
	return &sessionCache{
		maxSessions: l.FetchSessions, maxPartitions: l.FetchSessionPartitions, random: random, metrics: m,
		sessions: map[int32]*fetchSession{}, taken: map[int32]struct{}{}, order: list.New(),
	}
}

// take takes a session out for a request; it must be given back.
func (c *sessionCache) take(id int32) *fetchSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.sessions[id]
	if !ok {
		return nil
	}
	delete(c.sessions, id)
	c.order.Remove(f.place)
	c.taken[id] = struct{}{}
	return f
}

// add makes place for a new session of so many partitions, in use. It returns
// nil where there is none.
func (c *sessionCache) add(byID bool, partitions int) *fetchSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.makeRoom(1, partitions) {
		return nil
	}
	f := &fetchSession{id: c.newID(), byID: byID, charged: partitions,
		partitions: make(map[fetchKey]*list.Element, partitions), order: list.New()}
	c.taken[f.id] = struct{}{}
	c.partitions += partitions
	c.count()
	return f
}

// put gives a session back after its request. One that has become empty, or
// has outgrown the cache, is dropped.
func (c *sessionCache) put(f *fetchSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(f.partitions)
	if n == 0 || n > f.charged && !c.makeRoom(0, n-f.charged) {
		c.forget(f)
		return
	}
	c.partitions += n - f.charged
	f.charged, f.lastUsed = n, time.Now()
	delete(c.taken, f.id)
	c.sessions[f.id] = f
	f.place = c.order.PushBack(f)
}

// drop ends a session that is in use.
func (c *sessionCache) drop(f *fetchSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(f)
}

// forget drops a session. It holds the lock.
func (c *sessionCache) forget(f *fetchSession) {
	if _, resting := c.sessions[f.id]; resting {
		delete(c.sessions, f.id)
		c.order.Remove(f.place)
	}
	delete(c.taken, f.id)
	c.partitions -= f.charged
	c.count()
}

// makeRoom evicts what may be evicted until so much more fits. It holds the lock.
func (c *sessionCache) makeRoom(sessions, partitions int) bool {
	fits := func() bool {
		return len(c.sessions)+len(c.taken)+sessions <= c.maxSessions && c.partitions+partitions <= c.maxPartitions
	}
	for !fits() {
		oldest := c.order.Front()
		if oldest == nil {
			return false
		}
		f := oldest.Value.(*fetchSession)
		if time.Since(f.lastUsed) < sessionIdle {
			return false
		}
		c.forget(f)
	}
	return true
}

// newID is positive and not in use. It holds the lock.
func (c *sessionCache) newID() int32 {
	for {
		id := int32(c.random() >> 33)
		_, resting := c.sessions[id]
		_, taken := c.taken[id]
		if id != 0 && !resting && !taken {
			return id
		}
	}
}

func (c *sessionCache) count() { c.metrics.sessions.Set(float64(len(c.sessions) + len(c.taken))) }
