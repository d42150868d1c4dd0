package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// maxObjectParts bounds the partitions of one shard in one object, so that
// they fit one entry of its ledger.
const maxObjectParts = 4096

// An object is one flush: a segment that is uploaded, then committed in every shard it names.
type object struct {
	id       segment.ObjectID
	parts    []objectPart // by shard, then partition
	bytes    int
	uploaded bool
}

// An objectPart is the run of one partition.
type objectPart struct {
	p       *partition
	base    siltstone.Offset
	batches []batchRef
}

func (op *objectPart) end() siltstone.Offset { return op.batches[len(op.batches)-1].end() }

func (op *objectPart) bytes() (n int64) {
	for i := range op.batches {
		n += int64(op.batches[i].size)
	}
	return n
}

func (op *objectPart) maxTimestamp() int64 {
	ts := int64(-1)
	for i := range op.batches {
		ts = max(ts, op.batches[i].maxTimestamp)
	}
	return ts
}

// somebodyWaits notes that batches in no object yet are waited for.
func (c *core) somebodyWaits() {
	if c.waitingFrom.IsZero() && c.uncutBytes > 0 {
		c.waitingFrom = c.now
	}
}

// flushDue is when the next flush is due; zero if never.
func (c *core) flushDue() time.Time {
	f := &c.opts.Flush
	if c.uncutBytes == 0 || c.uploading >= f.Uploads {
		return time.Time{} // the end of an upload is an event
	}
	due := c.oldestUncut.Add(f.Interval)
	if !c.waitingFrom.IsZero() {
		if at := c.waitingFrom.Add(f.Wait); at.Before(due) {
			due = at
		}
		if f.Eager && !c.flushing() {
			due = c.now
		}
	}
	handing := func(s *ledShard) bool { return s.seated.heir != 0 || s.state == recovering }
	if c.uncutBytes >= f.Bytes || c.draining || len(c.queue) > 0 || slices.ContainsFunc(c.shards[:], handing) {
		due = c.now
	}
	return due
}

// flushing says whether an object is being uploaded or committed.
func (c *core) flushing() bool {
	return c.uploading > 0 || slices.ContainsFunc(c.shards[:], func(s *ledShard) bool { return len(s.objects) > 0 })
}

// flush cuts what is buffered into objects, and uploads them, if it is time.
func (c *core) flush() {
	for due := c.flushDue(); !due.IsZero() && !due.After(c.now); due = c.flushDue() {
		o := c.cut()
		for i := range o.parts {
			s := o.parts[i].p.shard
			if n := len(s.objects); n == 0 || s.objects[n-1] != o {
				s.objects = append(s.objects, o)
			}
		}
		c.upload(o)
	}
}

// cut takes buffered batches, the longest waiting partitions first, up to the size of one object.
func (c *core) cut() *object {
	o := &object{}
	var inShard [shard.Count]int
	rest := c.dirty[:0:0]
	for i, p := range c.dirty {
		if o.bytes >= c.opts.Flush.Bytes {
			rest = append(rest, c.dirty[i:]...)
			break
		}
		if p.uncut == 0 {
			p.dirty = false
			continue
		}
		if inShard[p.shard.id]++; inShard[p.shard.id] > maxObjectParts {
			rest = append(rest, p)
			continue
		}
		if o.parts = append(o.parts, c.cutPart(p, o)); p.uncut > 0 {
			rest = append(rest, p)
		} else {
			p.dirty = false
		}
	}
	c.dirty = rest
	c.uncutBytes -= o.bytes
	if c.uncutBytes == 0 {
		c.waitingFrom = time.Time{}
	} else {
		c.oldestUncut = c.now // what is left is about as old; the cut took the oldest
	}
	slices.SortFunc(o.parts, func(a, b objectPart) int {
		return cmp.Or(cmp.Compare(a.p.shard.id, b.p.shard.id), a.p.tp.Compare(b.p.tp))
	})
	c.name(o)
	return o
}

// cutPart takes a partition's next batches, at least one.
func (c *core) cutPart(p *partition, o *object) objectPart {
	from := p.tail.len() - p.uncut
	n := 0
	for n == 0 || n < p.uncut && o.bytes < c.opts.Flush.Bytes {
		o.bytes += int(p.tail.at(from + n).size)
		n++
	}
	part := objectPart{p: p, base: p.tail.at(from).base, batches: make([]batchRef, n)}
	for i := range n {
		part.batches[i] = *p.tail.at(from + i)
	}
	p.uncut -= n
	return part
}

// name gives an object a name that no other object ever had.
func (c *core) name(o *object) {
	c.nextObject++
	o.id = segment.ObjectID{
		Hour: segment.HourOf(c.wallMS()), Incarnation: c.opts.Incarnation, Number: c.nextObject,
	}
}

// upload builds and puts an object, again and again until it is there.
func (c *core) upload(o *object) {
	c.uploading++
	id, parts, now := o.id, slices.Clone(o.parts), c.wallMS()
	c.work(func(ctx context.Context) event {
		start := time.Now()
		body, err := buildSegment(c.opts.Cluster, id, now, parts)
		if err == nil {
			err = c.put(ctx, id.Key(), body)
		}
		if err == nil {
			c.metrics.flushed(body.Len(), time.Since(start))
		}
		return &uploaded{o: o, id: id, err: err}
	})
}

func buildSegment(cluster siltstone.ClusterID, id segment.ObjectID, nowMS int64, parts []objectPart) (bucket.Body, error) {
	w := segment.NewWriter(segment.Header{Cluster: cluster, ID: id, CreatedMS: nowMS})
	for i := range parts {
		p := &parts[i]
		if err := w.Run(uint16(p.p.shard.id), p.p.tp, p.base); err != nil {
			return nil, err
		}
		for j := range p.batches {
			if err := w.Batch(p.batches[j].bytes()); err != nil {
				return nil, err
			}
		}
	}
	body, _, err := w.Finish()
	return body, err
}

// errClash: another object has the name.
var errClash = errors.New("another object has this name")

// put writes an object and does not give up. That a try failed says nothing:
// it may have landed, so an object that exists is compared.
func (c *core) put(ctx context.Context, key string, body bucket.Body) error {
	return c.retryBody(ctx, body.Len(), "put "+key, func(ctx context.Context) error {
		err := c.opts.Bucket.Put(ctx, key, body)
		if !errors.Is(err, bucket.ErrExists) {
			return err
		}
		there, err := c.opts.Bucket.Get(ctx, key, -segment.TrailerBytes, -1)
		if err != nil {
			return err
		}
		last := body[len(body)-1]
		if len(there) != segment.TrailerBytes || len(last) < len(there) || string(last[len(last)-len(there):]) != string(there) {
			return errClash
		}
		return nil
	}, errClash)
}

// An uploaded object may be committed.
type uploaded struct {
	o   *object
	id  segment.ObjectID
	err error
}

func (e *uploaded) handle(c *core) {
	c.uploading--
	switch {
	case errors.Is(e.err, errClash):
		c.opts.Log.Warn("object name was taken; uploading again", "object", e.id.Key())
		c.name(e.o)
		c.upload(e.o)
	case e.err != nil:
		if c.workCtx.Err() == nil {
			c.fail(fmt.Errorf("build %s: %w", e.id.Key(), e.err))
		}
	default:
		e.o.uploaded = true
	}
}
