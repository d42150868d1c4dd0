package shard

import (
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// Partition is what the fold knows of one open partition. Its fields are read
// only, and change with every entry that concerns it.
type Partition struct {
	TP     siltstone.TopicPartition
	Number uint32 // the topic's short number
	// Next is the offset of the next Segment's range: the flushed end, or
	// above it after an unclean Lead.
	Next     siltstone.Offset
	LogStart siltstone.Offset
	Epochs   []EpochStart // ascending in both

	// Indexed is the offset below which Producers and Aborted are complete.
	Indexed   siltstone.Offset
	Producers map[int64]*Producer // by their ids; nil while there are none
	Aborted   []AbortedTxn        // in the order of their markers

	spans     []span
	sizeBytes int64
	objects   *objectTable // the State's
}

// span is a Range in 32 bytes: a partition may have millions.
type span struct {
	base, timestamp                    int64
	offsets, bytes, object, generation uint32
}

func (s span) end() siltstone.Offset { return siltstone.Offset(s.base + int64(s.offsets)) }

// EpochStart is the first offset that is known to be of an epoch (KIP-101).
type EpochStart struct {
	Epoch siltstone.Epoch
	Start siltstone.Offset
}

// Range is the offsets [Base, Base+Offsets) of a partition, in one object.
type Range struct {
	Object       segment.ObjectID
	Base         siltstone.Offset
	Offsets      int64
	LengthBytes  int64
	MaxTimestamp int64           // ms, -1 where there is none
	Epoch        siltstone.Epoch // of its last offset
	Generation   uint32          // how often it was rewritten
}

// End is the offset after the range's last.
func (r Range) End() siltstone.Offset { return r.Base + siltstone.Offset(r.Offsets) }

func (p *Partition) key() partitionKey { return partitionKey{p.Number, p.TP.Partition} }

// Len is how many live ranges there are.
func (p *Partition) Len() int { return len(p.spans) }

// Range is the i-th of them, 0 ≤ i < Len, in order of offsets.
func (p *Partition) Range(i int) Range {
	s := p.spans[i]
	return Range{
		Object:       p.objects.ids[s.object],
		Base:         siltstone.Offset(s.base),
		Offsets:      int64(s.offsets),
		LengthBytes:  int64(s.bytes),
		MaxTimestamp: s.timestamp,
		Epoch:        p.EpochAt(s.end() - 1),
		Generation:   s.generation,
	}
}

// Find is the index of the first range that ends after off; Len if none does.
func (p *Partition) Find(off siltstone.Offset) int {
	return sort.Search(len(p.spans), func(i int) bool { return p.spans[i].end() > off })
}

// Ranges yields the ranges that end after off, in order.
func (p *Partition) Ranges(off siltstone.Offset) iter.Seq[Range] {
	return func(yield func(Range) bool) {
		for i := p.Find(off); i < len(p.spans) && yield(p.Range(i)); i++ {
		}
	}
}

// SizeBytes is the sum of the ranges' lengths.
func (p *Partition) SizeBytes() int64 { return p.sizeBytes }

// EpochAt is the leader epoch of an offset below Next; -1 where none is known.
func (p *Partition) EpochAt(off siltstone.Offset) siltstone.Epoch {
	i := sort.Search(len(p.Epochs), func(i int) bool { return p.Epochs[i].Start > off })
	if i == 0 {
		return -1
	}
	return p.Epochs[i-1].Epoch
}

// EndOfEpoch answers OffsetForLeaderEpoch as far as the fold knows: the last
// epoch, or one after it, ends at Next. Epoch and End are -1 where no epoch is known.
func (p *Partition) EndOfEpoch(e siltstone.Epoch) siltstone.EpochEnd {
	if len(p.Epochs) == 0 {
		return siltstone.EpochEnd{Epoch: -1, End: -1}
	}
	i := sort.Search(len(p.Epochs), func(i int) bool { return p.Epochs[i].Epoch > e })
	end := p.Next
	if i < len(p.Epochs) {
		end = p.Epochs[i].Start
	}
	if i > 0 {
		e = p.Epochs[i-1].Epoch
	}
	return siltstone.EpochEnd{Epoch: e, End: end}
}

// lastEpoch is that of the last offset, or 0.
func (p *Partition) lastEpoch() siltstone.Epoch {
	if len(p.Epochs) == 0 {
		return 0
	}
	return p.Epochs[len(p.Epochs)-1].Epoch
}

// checkExtent says why an extent can be no range.
func checkExtent(e Extent) string {
	switch {
	case e.Offsets < 1 || e.Offsets > math.MaxUint32:
		return "a range of no or too many offsets"
	case e.LengthBytes < 1 || e.LengthBytes > math.MaxUint32:
		return "a range of no or too many bytes"
	case e.MaxTimestamp < -1:
		return "a range with a time before none"
	}
	return ""
}

func newSpan(e Extent, base siltstone.Offset, object, generation uint32) span {
	return span{
		base: int64(base), timestamp: e.MaxTimestamp,
		offsets: uint32(e.Offsets), bytes: uint32(e.LengthBytes),
		object: object, generation: generation,
	}
}

// add puts a Segment's range at the end.
func (p *Partition) add(part Part, object uint32) {
	at := p.Next
	for _, run := range part.Earlier {
		p.startEpoch(run.Epoch, at)
		at += siltstone.Offset(run.Offsets)
	}
	p.startEpoch(part.Epoch, at)
	p.spans = append(p.spans, newSpan(part.Extent, p.Next, object, 0))
	p.sizeBytes += part.LengthBytes
	p.Next += siltstone.Offset(part.Offsets)
}

func (p *Partition) startEpoch(e siltstone.Epoch, at siltstone.Offset) {
	last := len(p.Epochs) - 1
	if last >= 0 && e <= p.Epochs[last].Epoch {
		return
	}
	if last >= 0 && p.Epochs[last].Start == at { // of which nothing is left
		p.Epochs = p.Epochs[:last]
	}
	p.Epochs = append(p.Epochs, EpochStart{e, at})
}

// trim moves the log start and forgets what lies below it.
func (p *Partition) trim(start siltstone.Offset) {
	p.LogStart = start
	p.replace(0, p.Find(start), nil)
	p.Aborted = slices.DeleteFunc(p.Aborted, func(a AbortedTxn) bool { return a.Last < start })
	// The epoch that start lies in stays, from there on; the last one always does.
	i := sort.Search(len(p.Epochs), func(i int) bool { return p.Epochs[i].Start > start })
	if i > 0 {
		p.Epochs = slices.Delete(p.Epochs, 0, i-1)
		p.Epochs[0].Start = start
	}
}

// replace puts spans, whose objects are held already, in the place of those from i to j.
func (p *Partition) replace(i, j int, in []span) {
	for _, s := range p.spans[i:j] {
		p.sizeBytes -= int64(s.bytes)
		p.objects.release(s.object)
	}
	for _, s := range in {
		p.sizeBytes += int64(s.bytes)
	}
	p.spans = slices.Replace(p.spans, i, j, in...)
}
