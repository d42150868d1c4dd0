package shard

import (
	"encoding/binary"

	"github.com/siltstone-io/siltstone/coordinator/internal/wire"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// Encode is the entry's body.
func (l *Lead) Encode() []byte {
	b := binary.AppendUvarint(nil, uint64(l.Epoch))
	b = wire.AppendBool(b, l.Unclean)
	b = binary.BigEndian.AppendUint64(b, uint64(l.Leader))
	return appendIncarnations(b, l.ISR)
}

// Encode is the entry's body.
func (o *Open) Encode() []byte {
	b := binary.AppendUvarint(nil, uint64(o.Epoch))
	b = binary.BigEndian.AppendUint64(b, uint64(o.Writer))
	b = binary.AppendUvarint(b, uint64(len(o.Topics)))
	for _, t := range o.Topics {
		b = append(b, t.Topic[:]...)
		b = binary.AppendUvarint(b, uint64(t.Number))
		b = binary.AppendUvarint(b, uint64(len(t.Partitions)))
		next := int32(0)
		for _, p := range t.Partitions {
			b = binary.AppendUvarint(b, uint64(p-next))
			next = p + 1
		}
	}
	return b
}

// Encode is the entry's body.
func (s *Segment) Encode() []byte {
	b := binary.AppendUvarint(nil, uint64(s.Epoch))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Writer))
	b = binary.AppendUvarint(b, uint64(len(s.Objects)))
	ids := objects{segment.ObjectID{Incarnation: s.Writer}}
	ext := newExtents()
	for _, o := range s.Objects {
		b = ids.append(b, o.ID)
		b = binary.AppendUvarint(b, uint64(len(o.Parts)))
		for _, p := range o.Parts {
			b = ext.append(b, p.Extent)
			head := zigzag(int64(s.Epoch)-int64(p.Epoch)) << 1
			if len(p.Earlier) == 0 {
				b = binary.AppendUvarint(b, head)
				continue
			}
			b = binary.AppendUvarint(b, head|1)
			b = binary.AppendUvarint(b, uint64(len(p.Earlier)))
			for _, e := range p.Earlier {
				b = binary.AppendVarint(b, int64(p.Epoch)-int64(e.Epoch))
				b = binary.AppendUvarint(b, uint64(e.Offsets))
			}
		}
	}
	return b
}

// Encode is the entry's body.
func (r *Replace) Encode() []byte {
	var ids objects
	out := newRefs()
	b := binary.AppendUvarint(nil, uint64(len(r.Out)))
	for _, o := range r.Out {
		b = ids.append(b, o.ID)
		b = binary.AppendUvarint(b, uint64(len(o.Parts)))
		for _, p := range o.Parts {
			b = out.append(b, p.Number, p.Partition)
			b = binary.AppendUvarint(b, uint64(p.Generation))
		}
	}
	in := newExtents()
	b = binary.AppendUvarint(b, uint64(len(r.In)))
	for _, o := range r.In {
		b = ids.append(b, o.ID)
		b = binary.AppendUvarint(b, uint64(len(o.Parts)))
		for _, p := range o.Parts {
			b = in.append(b, p)
		}
	}
	return b
}

// Encode is the entry's body.
func (t *Trim) Encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(t.Parts)))
	at := newRefs()
	for _, p := range t.Parts {
		b = at.append(b, p.Number, p.Partition)
		if p.Gone {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(b, uint64(p.Start)+1)
		}
	}
	return b
}

// Encode is the entry's body.
func (d *Drop) Encode() []byte {
	var ids objects
	b := binary.AppendUvarint(nil, uint64(len(d.Objects)))
	for _, id := range d.Objects {
		b = ids.append(b, id)
	}
	return b
}
