package tiered

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// sizes say how objects are read.
type sizes struct {
	whole  int64 // an object up to this size is read and kept whole
	footer int64 // what is read first of one that may be larger, or whose index alone is wanted
	chunk  int64 // of a run in a larger one
}

var defaultSizes = sizes{whole: 16 << 20, footer: 64 << 10, chunk: 8 << 20}

// block is one thing that the cache holds: an object, its index alone, or a chunk of a run.
type block struct {
	index    *segment.Index  // nil in a chunk
	data     []byte          // nil where there is the index alone
	position int64           // of data in its object
	damaged  map[int64]error // batches that fail their check, by position; those beside them are good
}

// whole says whether the block holds a whole object.
func (b *block) whole() bool { return b.index != nil && b.data != nil }

// holds says whether the block has the row's batch. It may be nil.
func (b *block) holds(row *segment.Row) bool {
	return b != nil && row.Position >= b.position && row.Position+int64(row.LengthBytes) <= b.position+int64(len(b.data))
}

// batch is the row's batch, which nobody can append to.
func (b *block) batch(row *segment.Row) []byte {
	from := row.Position - b.position
	to := from + int64(row.LengthBytes)
	return b.data[from:to:to]
}

// check looks at each of some batches.
func (b *block) check(rows []segment.Row) {
	for i := range rows {
		if err := rows[i].Check(b.batch(&rows[i])); err != nil {
			if b.damaged == nil {
				b.damaged = map[int64]error{}
			}
			b.damaged[rows[i].Position] = err
		}
	}
}

func (b *block) memoryBytes() int64 {
	n := int64(len(b.data))
	if b.index != nil {
		n += b.index.MemoryBytes()
	}
	return n
}

// blockKey names a block: of an object, or of its chunk at a position.
type blockKey struct {
	object   segment.ObjectID
	position int64
}

// No run starts at 0, where the header is.
func objectKey(id segment.ObjectID) blockKey { return blockKey{id, 0} }
func footerKey(id segment.ObjectID) blockKey { return blockKey{id, -1} }

// chunk is successive rows of a run that are read together. Where it begins
// depends on the run alone, so that all readers share it.
type chunk struct{ rows []segment.Row }

func (c chunk) key(id segment.ObjectID) blockKey { return blockKey{id, c.rows[0].Position} }

// chunkOf is the chunk of row i: of those that start in the same stretch of the run.
func (s sizes) chunkOf(run *segment.Run, i int) chunk {
	stretch := func(i int) int64 { return (run.Rows[i].Position - run.Position) / s.chunk }
	n := stretch(i)
	from := sort.Search(i, func(j int) bool { return stretch(j) >= n })
	to := i + sort.Search(len(run.Rows)-i, func(j int) bool { return stretch(i+j) > n })
	return chunk{run.Rows[from:to]}
}

// loadFunc reads a block from the bucket.
type loadFunc func(ctx context.Context, key blockKey) (*block, error)

// objectLoad reads an object whole with one request, if the range does not
// tell that it may be large.
func (r *Reader) objectLoad(rng shard.Range) loadFunc {
	first := r.sizes.whole
	if rng.Generation > 0 || rng.LengthBytes > r.sizes.whole {
		first = r.sizes.footer
	}
	return func(ctx context.Context, key blockKey) (*block, error) {
		return r.loadObject(ctx, key.object, first)
	}
}

// loadObject reads the last bytes of an object first, for its size is not
// known, then the rest of it or, if it is large, what is missing of its index.
func (r *Reader) loadObject(ctx context.Context, id segment.ObjectID, first int64) (*block, error) {
	tail, t, err := r.loadTrailer(ctx, id, first)
	if err != nil {
		return nil, err
	}
	if t.ObjectBytes > r.sizes.whole {
		return r.parseFooter(ctx, tail, t)
	}
	if missing := t.ObjectBytes - int64(len(tail)); missing > 0 {
		head, err := r.fetch(ctx, getObject, id, 0, missing)
		if err != nil {
			return nil, err
		}
		tail = slices.Concat(head, tail)
	}
	o, err := segment.Parse(tail)
	if err != nil {
		return r.salvage(ctx, tail, t, err)
	}
	return &block{index: o.Index, data: tail}, nil
}

// salvage takes what is good of a whole object that is damaged: its index
// tells the batches apart, and they have CRCs of their own.
func (r *Reader) salvage(ctx context.Context, object []byte, t segment.Trailer, damage error) (*block, error) {
	if int64(len(object)) != t.ObjectBytes {
		return nil, damage
	}
	b, err := r.parseFooter(ctx, object, t)
	if err != nil {
		return nil, damage
	}
	b.data = object
	for i := range b.index.Runs {
		b.check(b.index.Runs[i].Rows)
	}
	return b, nil
}

func (r *Reader) loadFooter(ctx context.Context, key blockKey) (*block, error) {
	tail, t, err := r.loadTrailer(ctx, key.object, r.sizes.footer)
	if err != nil {
		return nil, err
	}
	return r.parseFooter(ctx, tail, t)
}

func (r *Reader) loadTrailer(ctx context.Context, id segment.ObjectID, n int64) ([]byte, segment.Trailer, error) {
	kind := getObject
	if n < r.sizes.whole {
		kind = getFooter
	}
	tail, err := r.fetch(ctx, kind, id, -n, 0)
	if err != nil {
		return nil, segment.Trailer{}, err
	}
	t, err := segment.ParseTrailer(tail)
	if err == nil && t.ID != id {
		err = fmt.Errorf("the object is %s: %w", t.ID, siltstone.ErrCorrupt)
	}
	return tail, t, err
}

func (r *Reader) parseFooter(ctx context.Context, tail []byte, t segment.Trailer) (*block, error) {
	index, ok := t.CutIndex(tail)
	if !ok {
		var err error
		if index, err = r.fetch(ctx, getFooter, t.ID, t.IndexPosition, t.IndexBytes); err != nil {
			return nil, err
		}
	}
	x, err := segment.ParseIndex(index, t)
	if err != nil {
		return nil, err
	}
	return &block{index: x}, nil
}

// chunkLoad reads a chunk, whose batches are checked one by one.
func (r *Reader) chunkLoad(c chunk) loadFunc {
	return func(ctx context.Context, key blockKey) (*block, error) {
		last := &c.rows[len(c.rows)-1]
		n := last.Position + int64(last.LengthBytes) - key.position
		data, err := r.fetch(ctx, getChunk, key.object, key.position, n)
		if err != nil {
			return nil, err
		}
		if int64(len(data)) != n {
			return nil, fmt.Errorf("%d bytes at %d, want %d: %w", len(data), key.position, n, siltstone.ErrCorrupt)
		}
		b := &block{data: data, position: key.position}
		b.check(c.rows)
		return b, nil
	}
}

// fetch is one request to the bucket.
func (r *Reader) fetch(ctx context.Context, kind getKind, id segment.ObjectID, off, n int64) ([]byte, error) {
	b, err := r.o.Bucket.Get(ctx, id.Key(), off, n)
	r.metrics.got(kind, len(b), err)
	if r.o.Answered != nil {
		r.o.Answered(err)
	}
	return b, err
}

// again repeats a load once that finds damage: it may be of the transfer.
func again(load loadFunc) loadFunc {
	return func(ctx context.Context, key blockKey) (*block, error) {
		b, err := load(ctx, key)
		if errors.Is(err, siltstone.ErrCorrupt) || err == nil && len(b.damaged) > 0 {
			return load(ctx, key)
		}
		return b, err
	}
}
