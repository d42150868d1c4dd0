package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// checkpoints is where ledger checkpoints are in the bucket. Those that no
// register points to any more are older ones, which stay for a while.
const checkpoints = "checkpoint/"

// ref is what a fold says of an object: it holds this range.
type ref struct {
	shard   uint16
	history *shardHistory
	of      *shard.Partition
	shard.Range
}

// checkShard checks a shard's fold by itself and against the topics, and notes
// what it says of objects.
func (c *checker) checkShard(n int, h *shardHistory) {
	h.expect()
	for _, o := range h.unindexed {
		c.used[o.Object.Key()] = true // also where nothing of it is live any more
	}
	for p := range h.fold.Partitions() {
		where := fmt.Sprintf("%s, partition %s", shard.Ledger(n), c.partitionName(p.TP))
		if of := shard.Of(p.TP); of != n {
			c.problem(where, "it belongs into %s", shard.Ledger(of))
		}
		// A partition whose topic is gone waits for its Trim.
		if t, known := c.topics.TopicByID(p.TP.Topic); known && (p.Number != t.Number || p.TP.Partition >= t.Partitions) {
			c.problem(where, "topic %s has number %d and %d partitions, here is partition %d of number %d",
				t.Name, t.Number, t.Partitions, p.TP.Partition, p.Number)
		}
		next := siltstone.Offset(-1) // of the range before
		for r := range p.Ranges(0) {
			if next >= 0 && !follows(next, r.Base) {
				c.problem(where, "a range ends at %d and the next begins at %d", next, r.Base)
			}
			next = r.End()
			key := r.Object.Key()
			c.refs[key] = append(c.refs[key], ref{uint16(n), h, p, r})
		}
		if next >= 0 && !follows(next, p.Next) {
			c.problem(where, "its last range ends at %d, its next offset is %d", next, p.Next)
		}
	}
}

// follows says that an offset is where a range ended, or as many unclean
// takeovers further on.
func follows(end, next siltstone.Offset) bool {
	return next >= end && (next-end)%siltstone.UncleanJump == 0
}

// checkObjects reads every object that a fold refers to, and lists the others.
func (c *checker) checkObjects(ctx context.Context) error {
	const page = 1000
	there := map[string]bool{}
	for after := ""; ; {
		infos, err := c.Bucket.List(ctx, "", after, page)
		if err != nil {
			return fmt.Errorf("list objects: %w", err)
		}
		for _, info := range infos {
			after = info.Key
			there[info.Key] = true
			_, live := c.refs[info.Key]
			if !live && !c.used[info.Key] && !strings.HasPrefix(info.Key, checkpoints) {
				c.report.Orphans = append(c.report.Orphans, Object{info.Key, info.SizeBytes})
			}
		}
		if len(infos) < page {
			break
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.refs)) {
		if !there[key] {
			c.problem("object "+key, "it is missing, and holds %s%s", c.describe(c.refs[key][0]), andMore(len(c.refs[key])-1))
			c.lose(c.refs[key]...)
			continue
		}
		if err := c.checkObject(ctx, key, c.refs[key]); err != nil {
			return err
		}
	}
	return nil
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", and some of %d more", n)
}

// checkObject checks one object, and what folds say of it.
func (c *checker) checkObject(ctx context.Context, key string, refs []ref) error {
	where := "object " + key
	b, err := c.Bucket.Get(ctx, key, 0, -1)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil { // of a disk that cannot read it, too
		c.problem(where, "%v", err)
		c.lose(refs...)
		return nil
	}
	c.report.Objects++
	c.report.Bytes += int64(len(b))
	o, err := segment.Parse(b)
	if err == nil {
		err = o.VerifyBatches(b)
	}
	if err != nil {
		c.problem(where, "%v", err)
		c.salvage(where, b, refs)
		return nil
	}
	if o.Header.ID != refs[0].Object {
		c.problem(where, "it calls itself %s", o.Header.ID)
		c.lose(refs...)
	}
	if o.Header.Cluster != c.clusterID {
		c.problem(where, "it is of cluster %s", o.Header.Cluster)
	}
	for _, r := range refs {
		c.checkRef(where, o, b, r)
	}
	return nil
}

func (c *checker) describe(r ref) string {
	return fmt.Sprintf("offsets %d to %d of partition %s", r.Base, r.End()-1, c.partitionName(r.of.TP))
}

// checkRef checks that an object holds what a fold says, at the offsets that
// the fold gave it.
func (c *checker) checkRef(where string, o *segment.Object, object []byte, r ref) {
	run, ok := o.Index.Find(r.of.TP)
	switch {
	case !ok:
		c.problem(where, "it does not hold %s", c.describe(r))
		c.lose(r)
		return
	case run.Shard != r.shard:
		c.problem(where, "it has %s under shard %d", c.describe(r), run.Shard)
	case run.Offsets != r.Offsets || run.LengthBytes != r.LengthBytes || run.MaxTimestamp() != r.MaxTimestamp || run.LastEpoch() != r.Epoch:
		c.problem(where, "%s: the fold says %d offsets, %d bytes, time %d, epoch %d; the object %d, %d, %d, %d", c.describe(r),
			r.Offsets, r.LengthBytes, r.MaxTimestamp, r.Epoch, run.Offsets, run.LengthBytes, run.MaxTimestamp(), run.LastEpoch())
	}
	r.history.note(r, run, o.Index)
	for i := range run.Rows {
		row := &run.Rows[i]
		h, err := batch.ParseHeader(object[row.Position:][:row.LengthBytes])
		if err != nil {
			c.problem(where, "%s: %v", c.describe(r), err)
			return
		}
		c.report.Batches++
		if !h.Attributes.Control() {
			c.report.Records += int64(h.Records)
		}
		if at := r.Base + siltstone.Offset(row.OffsetDelta); h.BaseOffset != at {
			c.problem(where, "%s: the batch at offset %d is stamped %d", c.describe(r), at, h.BaseOffset)
		}
	}
}
