package shard

import (
	"math"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/internal/wire"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

func readLead(in *wire.Reader) *Lead {
	l := &Lead{Epoch: readEpoch(in), Unclean: in.Bool()}
	l.Leader = siltstone.Incarnation(in.Uint64())
	l.ISR = readIncarnations(in)
	return l
}

func readOpen(in *wire.Reader) *Open {
	o := &Open{Epoch: readEpoch(in), Writer: siltstone.Incarnation(in.Uint64())}
	o.Topics = wire.List(in, len(siltstone.TopicID{})+2, func() (t OpenTopic) {
		copy(t.Topic[:], in.Bytes(len(t.Topic)))
		t.Number = uint32(in.Uvarint(math.MaxUint32))
		next := int64(0)
		t.Partitions = wire.List(in, 1, func() int32 {
			p := next + int64(in.Uvarint(math.MaxInt32))
			if p > math.MaxInt32 {
				in.Fail("partition %d", p)
			}
			next = p + 1
			return int32(p)
		})
		return t
	})
	return o
}

func readSegment(in *wire.Reader) *Segment {
	s := &Segment{Epoch: readEpoch(in), Writer: siltstone.Incarnation(in.Uint64())}
	ids := objects{segment.ObjectID{Incarnation: s.Writer}}
	ext := newExtents()
	s.Objects = wire.List(in, minObjectBytes+1, func() SegmentObject {
		return SegmentObject{ID: ids.read(in), Parts: wire.List(in, minExtentBytes+1, func() Part {
			p := Part{Extent: ext.read(in)}
			head := in.Uvarint(1 << 36)
			p.Epoch = readEpochDelta(in, s.Epoch, unzigzag(head>>1))
			if head&1 == 1 {
				p.Earlier = wire.List(in, 2, func() EpochRun {
					e := readEpochDelta(in, p.Epoch, in.Varint())
					return EpochRun{Epoch: e, Offsets: int64(in.Uvarint(math.MaxInt64))}
				})
			}
			return p
		})}
	})
	return s
}

func readReplace(in *wire.Reader) *Replace {
	r := &Replace{}
	var ids objects
	at := newRefs()
	r.Out = wire.List(in, minObjectBytes+1, func() ReplaceOut {
		return ReplaceOut{ID: ids.read(in), Parts: wire.List(in, minRefBytes+1, func() (p Ref) {
			p.Number, p.Partition = at.read(in)
			p.Generation = uint32(in.Uvarint(math.MaxUint32))
			return p
		})}
	})
	ext := newExtents()
	r.In = wire.List(in, minObjectBytes+1, func() ReplaceIn {
		return ReplaceIn{ID: ids.read(in), Parts: wire.List(in, minExtentBytes, func() Extent {
			return ext.read(in)
		})}
	})
	return r
}

func readTrim(in *wire.Reader) *Trim {
	at := newRefs()
	return &Trim{Parts: wire.List(in, minRefBytes+1, func() (p TrimPart) {
		p.Number, p.Partition = at.read(in)
		start := in.Uvarint(math.MaxInt64)
		if start == 0 {
			p.Gone = true
		} else {
			p.Start = siltstone.Offset(start - 1)
		}
		return p
	})}
}

func readDrop(in *wire.Reader) *Drop {
	var ids objects
	return &Drop{Objects: wire.List(in, minObjectBytes, func() segment.ObjectID { return ids.read(in) })}
}
