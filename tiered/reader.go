// Package tiered reads flushed data: the segments in the bucket that a shard's
// fold refers to. It keeps whole objects, and the indexes and chunks of those
// that are too large, in a bounded cache; reads each once, however many ask
// for it; and can read ahead.
//
// It promises that what it returns has passed its checksums, and stays as it
// is for as long as anybody holds it.
//
// Its goroutines are the loads under way. Reads start them, and they outlive a
// reader that gives up, so that a slow store is got through in the end; Close
// ends them.
package tiered

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// Options of a Reader. Zeros are the defaults.
type Options struct {
	Bucket bucket.Bucket
	// CacheBytes bounds what the cache holds (256 MiB). Loads under way come
	// on top, and what evicted data readers still hold.
	CacheBytes int64
	// WholeBytes: an object up to this size is read and kept whole, a larger
	// one by its index and chunks of its runs (16 MiB). Whole is fewer requests,
	// which a store may charge for; by chunks is fewer bytes where readers of
	// an object's partitions are far apart.
	WholeBytes int64
	// Loads bounds how many reads wait for the bucket at once (16); others queue.
	Loads int
	// AheadLoads bounds how many loads nobody waits for run at once, besides
	// those (4). Together they may fill a quarter of the cache with what
	// nobody has read yet.
	AheadLoads int
	// LoadTimeout bounds one load (30 s).
	LoadTimeout time.Duration
	// Answered, if set, hears how each request to the bucket ended. It may be
	// called from several goroutines at once.
	Answered func(error)
	// Metrics, if set, gets the siltstone_tiered_... metrics.
	Metrics prometheus.Registerer
}

func (o *Options) validate() error {
	if o.Bucket == nil {
		return errors.New("tiered: no bucket")
	}
	if o.CacheBytes < 0 || o.WholeBytes < 0 || o.Loads < 0 || o.AheadLoads < 0 || o.LoadTimeout < 0 {
		return errors.New("tiered: negative bounds")
	}
	setDefault(&o.CacheBytes, 256<<20)
	setDefault(&o.WholeBytes, defaultSizes.whole)
	setDefault(&o.Loads, 16)
	setDefault(&o.AheadLoads, 4)
	setDefault(&o.LoadTimeout, 30*time.Second)
	return nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Reader reads flushed data. All its methods may be called from anywhere at once.
type Reader struct {
	o       Options
	sizes   sizes
	slots   chan struct{} // a token for each load that somebody waits for
	metrics *metrics

	ctx    context.Context // of the loads
	cancel context.CancelFunc
	loads  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	cache   cache
	flights map[blockKey]*flight
	ahead   int // flights that nobody waited for when they started
}

// New returns a Reader, which runs nothing until it is asked to read.
func New(o Options) (*Reader, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	r := &Reader{
		o:       o,
		sizes:   defaultSizes,
		slots:   make(chan struct{}, o.Loads),
		cache:   newCache(o.CacheBytes),
		flights: make(map[blockKey]*flight),
	}
	r.sizes.whole = o.WholeBytes
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.metrics = newMetrics(r.cachedBytes)
	if o.Metrics != nil {
		for _, c := range r.metrics.collectors() {
			if err := o.Metrics.Register(c); err != nil {
				return nil, fmt.Errorf("tiered: %w", err)
			}
		}
	}
	return r, nil
}

// Close ends all loads and waits for them. Reads that wait get
// siltstone.ErrUnavailable, wrapped, and so do later ones that would load.
func (r *Reader) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.loads.Wait()
}

// Request names records of one partition in one range of its fold.
type Request struct {
	Partition siltstone.TopicPartition
	Range     shard.Range
	// From is the first offset that is wanted. Offsets outside the range are
	// those of its nearest end.
	From     siltstone.Offset
	MaxBytes int // Read returns no more, but for a first batch that is larger
}

// Records is what Read found.
type Records struct {
	// Batches are whole batches, in order, stamped with their offsets and
	// epochs; the first holds From or is the next after it. They point into
	// cached memory that nobody may change.
	Batches   [][]byte
	SizeBytes int
	// Kept is the memory that the batches keep: that of the object, or of the
	// chunks, that they are in. What other partitions' records are in too is
	// the same in theirs.
	Kept []Kept
	// Next is where to read on: after the last of Batches, and at the end of
	// the range if there are no more.
	Next siltstone.Offset
}

// Kept is a piece of memory with records in it.
type Kept struct{ block *block }

// SizeBytes is how large it is.
func (k Kept) SizeBytes() int { return len(k.block.data) }

// Whole says whether it is a whole object, with the records of all its partitions.
func (k Kept) Whole() bool { return k.block.whole() }

// Read returns record batches. It may return fewer than MaxBytes of them
// rather than wait for the bucket again. An object that is missing is
// bucket.ErrNotFound, wrapped: the caller folds again. Damage is
// siltstone.ErrCorrupt, wrapped; what comes before and after it can be read.
func (r *Reader) Read(ctx context.Context, q Request) (Records, error) {
	found := Records{Next: q.Range.End()}
	c, err := r.open(ctx, q)
	if err != nil {
		return Records{}, err
	}
	for i := c.run.At(int64(q.From - q.Range.Base)); i < len(c.run.Rows); i++ {
		row := &c.run.Rows[i]
		first := len(found.Batches) == 0
		full := !first && found.SizeBytes+int(row.LengthBytes) > q.MaxBytes
		if full || !first && !c.ready(i) {
			found.Next = c.offset(row)
			break
		}
		b, err := c.batch(ctx, i)
		if err != nil && !first {
			found.Next = c.offset(row) // the next read meets the error
			break
		}
		if err != nil {
			return Records{}, err
		}
		found.Batches = append(found.Batches, b)
		found.SizeBytes += len(b)
	}
	found.Kept = c.kept
	return found, nil
}

// FirstAtOrAfter returns the first batch, stamped, that ends after From and
// whose max timestamp is ts or later; nil where there is none. MaxBytes does not count.
func (r *Reader) FirstAtOrAfter(ctx context.Context, q Request, ts int64) ([]byte, error) {
	c, err := r.open(ctx, q)
	if err != nil {
		return nil, err
	}
	for i := c.run.At(int64(q.From - q.Range.Base)); i < len(c.run.Rows); i++ {
		if c.run.Rows[i].MaxTimestamp >= ts {
			return c.batch(ctx, i)
		}
	}
	return nil, nil
}

// ReadAhead starts to load the objects of ranges that are likely to be read
// soon, as far as the bounds allow, and returns at once.
func (r *Reader) ReadAhead(ranges ...shard.Range) {
	for _, rng := range ranges {
		r.prefetch(objectKey(rng.Object), r.objectLoad(rng))
	}
}

// cursor is a run that is being read.
type cursor struct {
	r      *Reader
	q      Request
	object *block
	run    *segment.Run
	chunk  *block // the last one used, if the object is not whole
	kept   []Kept // what batches came from
}

func (r *Reader) open(ctx context.Context, q Request) (*cursor, error) {
	o, err := r.get(ctx, objectKey(q.Range.Object), r.objectLoad(q.Range))
	if err != nil {
		return nil, fmt.Errorf("read %s, which has offsets %d to %d of %s: %w", q.Range.Object, q.Range.Base, q.Range.End()-1, q.Partition, err)
	}
	run, ok := o.index.Find(q.Partition)
	if !ok {
		return nil, fmt.Errorf("read %s: it has no run of %s: %w", q.Range.Object, q.Partition, siltstone.ErrCorrupt)
	}
	if run.Offsets != q.Range.Offsets {
		return nil, fmt.Errorf("read %s: its run of %s covers %d offsets, its range %d: %w",
			q.Range.Object, q.Partition, run.Offsets, q.Range.Offsets, siltstone.ErrCorrupt)
	}
	return &cursor{r: r, q: q, object: o, run: run}, nil
}

func (c *cursor) offset(row *segment.Row) siltstone.Offset {
	return c.q.Range.Base + siltstone.Offset(row.OffsetDelta)
}

// ready says whether row i can be had without waiting for the bucket, and
// starts to load it if it can not.
func (c *cursor) ready(i int) bool {
	if c.object.whole() || c.chunk.holds(&c.run.Rows[i]) {
		return true
	}
	ch := c.r.sizes.chunkOf(c.run, i)
	if c.chunk = c.r.peek(ch.key(c.q.Range.Object)); c.chunk != nil {
		return true
	}
	c.r.prefetch(ch.key(c.q.Range.Object), c.r.chunkLoad(ch))
	return false
}

// batch is the batch of row i, stamped.
func (c *cursor) batch(ctx context.Context, i int) ([]byte, error) {
	row := &c.run.Rows[i]
	from := c.object
	if !from.whole() {
		if err := c.load(ctx, i); err != nil {
			return nil, fmt.Errorf("read %s: %w", c.q.Range.Object, err)
		}
		from = c.chunk
	}
	if err := from.damaged[row.Position]; err != nil {
		at := c.offset(row)
		return nil, fmt.Errorf("read %s: offsets %d to %d of %s: %w", c.q.Range.Object, at, at+siltstone.Offset(row.Offsets)-1, c.q.Partition, err)
	}
	b := from.batch(row)
	if h, err := batch.ParseHeader(b); err != nil || h.SizeBytes() != len(b) {
		return nil, fmt.Errorf("read %s: batch at %d is not of %d bytes: %w", c.q.Range.Object, row.Position, row.LengthBytes, siltstone.ErrCorrupt)
	}
	if n := len(c.kept); n == 0 || c.kept[n-1].block != from {
		c.kept = append(c.kept, Kept{from})
	}
	return stamped(b, c.offset(row), row.Epoch), nil
}

// load makes the chunk of row i the cursor's, and reads ahead of it.
func (c *cursor) load(ctx context.Context, i int) error {
	if c.chunk.holds(&c.run.Rows[i]) {
		return nil
	}
	ch := c.r.sizes.chunkOf(c.run, i)
	b, err := c.r.get(ctx, ch.key(c.q.Range.Object), c.r.chunkLoad(ch))
	if err != nil {
		return err
	}
	c.chunk = b
	if next := i + len(ch.rows); next < len(c.run.Rows) {
		ch := c.r.sizes.chunkOf(c.run, next)
		c.r.prefetch(ch.key(c.q.Range.Object), c.r.chunkLoad(ch))
	}
	return nil
}

// stamped is b with a base offset and an epoch: b itself if its writer has
// stamped it so, or a copy. Where they differ, the fold is right.
func stamped(b []byte, base siltstone.Offset, epoch siltstone.Epoch) []byte {
	if siltstone.Offset(binary.BigEndian.Uint64(b)) == base && siltstone.Epoch(binary.BigEndian.Uint32(b[12:])) == epoch {
		return b
	}
	b = bytes.Clone(b)
	batch.Stamp(b, base, epoch)
	return b
}
