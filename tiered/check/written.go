package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// written is what the objects of a partition say of its producers, from an
// offset on: below it, ranges were rewritten, or are gone.
type written struct {
	from      siltstone.Offset
	unseen    int // ranges whose objects are not read yet
	producers map[int64]*writer
}

// writer is what objects say of one producer.
type writer struct {
	epoch   int16
	last    flushed // batch or marker
	batches []flushed
}

// flushed is a batch, and when it was flushed.
type flushed struct {
	shard.ProducerBatch
	timeMS int64 // 0: not known
}

// enough is more than folds remember of a producer.
const enough = 8

// writtenOf is what is to be read: the ranges after the last rewritten one.
func writtenOf(p *shard.Partition) *written {
	w := &written{from: p.Next, producers: map[int64]*writer{}}
	for i := p.Len() - 1; i >= 0; i-- {
		r := p.Range(i)
		if r.Generation > 0 {
			break
		}
		w.from = r.Base
		w.unseen++
	}
	return w
}

// note takes the rows of a range, in whatever order ranges come.
func (w *written) note(base siltstone.Offset, timeMS int64, rows []segment.Row) {
	for i := range rows {
		r := &rows[i]
		if r.ProducerID < 0 {
			continue
		}
		pr := w.producers[r.ProducerID]
		if pr == nil {
			pr = &writer{epoch: r.ProducerEpoch, last: flushed{ProducerBatch: shard.ProducerBatch{Base: -1}}}
			w.producers[r.ProducerID] = pr
		}
		at := base + siltstone.Offset(r.OffsetDelta)
		pr.note(flushed{shard.ProducerBatch{Base: at, Offsets: r.Offsets, FirstSequence: r.BaseSequence, Timestamp: r.MaxTimestamp}, timeMS}, r)
	}
}

func (w *writer) note(b flushed, r *segment.Row) {
	if b.Base > w.last.Base {
		w.last = b
	}
	if r.ProducerEpoch > w.epoch {
		w.epoch, w.batches = r.ProducerEpoch, nil
	}
	if r.ProducerEpoch < w.epoch || r.Attributes.Control() {
		return
	}
	i, _ := slices.BinarySearchFunc(w.batches, b, func(a, b flushed) int { return cmp.Compare(a.Base, b.Base) })
	if w.batches = slices.Insert(w.batches, i, b); len(w.batches) > enough {
		w.batches = w.batches[1:]
	}
}

// difference says in what a fold, which may know less than it should, differs;
// empty if in nothing. Below from it may know more. A producer that was idle
// for so long may have been forgotten, and what it wrote before that.
func (w *writer) difference(pr *shard.Producer, from siltstone.Offset, nowMS, expirationMS int64) string {
	if pr == nil {
		if kept(w.last, nowMS, expirationMS) {
			return fmt.Sprintf("it is not known, and wrote at offset %d less than %d ms ago", w.last.Base, expirationMS)
		}
		return ""
	}
	all := shard.NewProducer(pr.ID, w.epoch)
	for _, b := range w.batches {
		all.Add(w.epoch, b.ProducerBatch)
	}
	got, want := pr.Batches(), all.Batches()
	n := min(len(got), len(want))
	same := slices.Equal(got[len(got)-n:], want[len(want)-n:]) && (len(got) == n || got[len(got)-n-1].Base < from)
	if n < len(want) {
		older, newer := w.batches[:len(w.batches)-n], append(w.batches[len(w.batches)-n:], w.last)
		same = same && !kept(older[len(older)-1], newer[0].timeMS, expirationMS)
	}
	switch {
	case pr.Epoch != w.epoch:
		return fmt.Sprintf("it is at epoch %d; objects have %d", pr.Epoch, w.epoch)
	case !same:
		return fmt.Sprintf("its last batches are %+v; objects have %+v", got, want)
	case w.last.timeMS > 0 && pr.LastTimestamp != w.last.timeMS:
		return fmt.Sprintf("it last wrote at %d; offset %d was written at %d", pr.LastTimestamp, w.last.Base, w.last.timeMS)
	}
	return ""
}

// kept says that a producer cannot have been forgotten between its batch and a later time.
func kept(b flushed, untilMS, expirationMS int64) bool {
	return b.timeMS > 0 && untilMS > 0 && untilMS-b.timeMS < expirationMS
}
