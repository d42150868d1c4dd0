package check

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// shardHistory is a shard's fold, and what its producers are compared with.
type shardHistory struct {
	name string
	fold *shard.State
	tail []ledger.Change[shard.Change] // after the checkpoint, without the entries' bodies

	timesMS   map[segment.ObjectID]int64 // of the entries that named them, those that are left
	unindexed []shard.Unindexed
	indexes   map[segment.ObjectID]*segment.Index // of those; nil until it is read
	written   map[*shard.Partition]*written
}

func newHistory(name string) *shardHistory {
	return &shardHistory{
		name:    name,
		timesMS: map[segment.ObjectID]int64{},
		indexes: map[segment.ObjectID]*segment.Index{},
		written: map[*shard.Partition]*written{},
	}
}

// see notes an entry, and what it changed if it comes after the checkpoint.
func (h *shardHistory) see(e ledger.Entry, change shard.Change) {
	if e.Kind != shard.KindSegment {
		return
	}
	body, _ := shard.Decode(e.Kind, e.Body)
	s, ok := body.(*shard.Segment)
	if !ok {
		return // a void entry
	}
	for _, o := range s.Objects {
		h.timesMS[o.ID] = e.TimeMS
	}
	if e.Body = nil; len(change.Assigned) > 0 {
		h.tail = append(h.tail, ledger.Change[shard.Change]{Entry: e, Effect: change})
	}
}

// expect says what is to be read of objects.
func (h *shardHistory) expect() {
	for p := range h.fold.Partitions() {
		h.written[p] = writtenOf(p)
	}
	h.unindexed = h.fold.Unindexed(h.tail)
	for _, o := range h.unindexed {
		h.indexes[o.Object] = nil
	}
}

// note takes what an object says of one of the shard's ranges.
func (h *shardHistory) note(r ref, run *segment.Run, index *segment.Index) {
	if _, wanted := h.indexes[r.Object]; wanted {
		h.indexes[r.Object] = index
	}
	if w := h.written[r.of]; r.Base >= w.from {
		w.unseen--
		w.note(r.Base, h.timesMS[r.Object], run.Rows)
	}
}

// addRows gives a shard's fold the producers of what came after its
// checkpoint, as an agent does. It is false where objects are damaged or
// missing, which is then said.
func (c *checker) addRows(ctx context.Context, h *shardHistory) (bool, error) {
	for _, o := range h.unindexed {
		key := o.Object.Key()
		x := h.indexes[o.Object]
		if x == nil && len(c.refs[key]) > 0 {
			return false, nil // it was read in vain
		}
		if x == nil { // nothing of it is live any more, but its rows are wanted
			b, err := c.Bucket.Get(ctx, key, 0, -1)
			if err != nil {
				return false, c.damage("object "+key, err)
			}
			parsed, err := segment.Parse(b)
			if err != nil {
				return false, c.damage("object "+key, err)
			}
			x = parsed.Index
		}
		if err := o.AddIndex(x); err != nil {
			return false, c.damage("object "+key, err)
		}
	}
	return true, nil
}

// checkProducers compares what a shard knows of producers with what objects say.
func (c *checker) checkProducers(ctx context.Context, h *shardHistory) error {
	if ok, err := c.addRows(ctx, h); !ok {
		return err
	}
	nowMS, expirationMS := c.Now.UnixMilli(), c.topics.Cluster().ProducerIDExpirationMS
	for p := range h.fold.Partitions() {
		w := h.written[p]
		if w.unseen > 0 {
			continue // an object was read in vain
		}
		where := fmt.Sprintf("%s, partition %s", h.name, c.partitionName(p.TP))
		for _, id := range slices.Sorted(maps.Keys(w.producers)) {
			if diff := w.producers[id].difference(p.Producers[id], w.from, nowMS, expirationMS); diff != "" {
				c.problem(where, "producer %d: %s", id, diff)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(p.Producers)) {
			batches := p.Producers[id].Batches()
			if n := len(batches); w.producers[id] == nil && n > 0 && batches[n-1].Base >= w.from {
				c.problem(where, "producer %d: no object has its batch at offset %d", id, batches[n-1].Base)
			}
		}
	}
	return nil
}
