package tiered

// cache keeps the blocks that were used last, within a bound in bytes. Its
// owner guards it.
type cache struct {
	limit  int64
	used   int64
	unread int64 // of used: what was read ahead and nobody has asked for
	blocks map[blockKey]*cached
	ring   *cached // of all blocks, the last used behind it and the first used before
}

type cached struct {
	key        blockKey
	block      *block
	sizeBytes  int64
	read       bool
	prev, next *cached
}

func newCache(limit int64) cache {
	ring := &cached{}
	ring.prev, ring.next = ring, ring
	return cache{limit: limit, blocks: make(map[blockKey]*cached), ring: ring}
}

func (c *cache) has(key blockKey) bool { return c.blocks[key] != nil }

// look returns a block and changes nothing; nil if it is not there.
func (c *cache) look(key blockKey) *block {
	if e := c.blocks[key]; e != nil {
		return e.block
	}
	return nil
}

// get returns a block and makes it the last used; nil if it is not there.
func (c *cache) get(key blockKey) *block {
	e := c.blocks[key]
	if e == nil {
		return nil
	}
	e.unlink()
	c.push(e)
	if !e.read {
		e.read = true
		c.unread -= e.sizeBytes
	}
	return e.block
}

// add keeps a new block and says how many it gave up for it. A block larger
// than the whole cache is not kept.
func (c *cache) add(key blockKey, b *block, read bool) (evicted int) {
	const overhead = 256 // of the entry itself
	e := &cached{key: key, block: b, sizeBytes: b.memoryBytes() + overhead, read: read}
	if e.sizeBytes > c.limit {
		return 0
	}
	for c.used+e.sizeBytes > c.limit {
		c.evict(c.ring.prev)
		evicted++
	}
	c.blocks[key] = e
	c.push(e)
	c.used += e.sizeBytes
	if !read {
		c.unread += e.sizeBytes
	}
	return evicted
}

func (c *cache) evict(e *cached) {
	e.unlink()
	delete(c.blocks, e.key)
	c.used -= e.sizeBytes
	if !e.read {
		c.unread -= e.sizeBytes
	}
}

func (c *cache) push(e *cached) {
	e.prev, e.next = c.ring, c.ring.next
	e.prev.next, e.next.prev = e, e
}

func (e *cached) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
}
