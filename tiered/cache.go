package tiered

import "container/list"

// cache keeps the blocks that were used last, within a bound in bytes. Its
// owner guards it.
type cache struct {
	limit  int64
	used   int64
	unread int64 // of used: what was read ahead and nobody has asked for
	blocks map[blockKey]*list.Element
	order  *list.List // of *cached, the last used first
}

type cached struct {
	key       blockKey
	block     *block
	sizeBytes int64
	read      bool
}

func newCache(limit int64) cache {
	return cache{limit: limit, blocks: make(map[blockKey]*list.Element), order: list.New()}
}

func (c *cache) has(key blockKey) bool { return c.blocks[key] != nil }

// get returns a block and makes it the last used; nil if it is not there.
func (c *cache) get(key blockKey) *block {
	e := c.blocks[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	kept := e.Value.(*cached)
	if !kept.read {
		kept.read = true
		c.unread -= kept.sizeBytes
	}
	return kept.block
}

// add keeps a new block and says how many it gave up for it. A block larger
// than the whole cache is not kept.
func (c *cache) add(key blockKey, b *block, read bool) (evicted int) {
	const overhead = 256 // of the entry itself
	kept := &cached{key: key, block: b, sizeBytes: b.memoryBytes() + overhead, read: read}
	if kept.sizeBytes > c.limit {
		return 0
	}
	for c.used+kept.sizeBytes > c.limit {
		c.evict(c.order.Back())
		evicted++
	}
	c.blocks[key] = c.order.PushFront(kept)
	c.used += kept.sizeBytes
	if !read {
		c.unread += kept.sizeBytes
	}
	return evicted
}

func (c *cache) evict(e *list.Element) {
	kept := c.order.Remove(e).(*cached)
	delete(c.blocks, kept.key)
	c.used -= kept.sizeBytes
	if !kept.read {
		c.unread -= kept.sizeBytes
	}
}
