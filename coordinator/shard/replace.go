package shard

import (
	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// swap is what a Replace does to one partition: spans i to j go out.
type swap struct {
	p    *Partition
	out  map[uint32]uint32 // object number to generation
	i, j int
	in   []Extent
	ids  []segment.ObjectID // of in
}

func (s *State) replace(r *Replace, c *Change) {
	swaps, order := map[*Partition]*swap{}, []*swap(nil)
	for _, o := range r.Out {
		number, live := s.objects.numbers[o.ID]
		if !live {
			c.void("object %s is not live", o.ID)
			return
		}
		for _, part := range o.Parts {
			p := s.partitions[partitionKey{part.Number, part.Partition}]
			if p == nil {
				c.void("partition %d of topic number %d is not open", part.Partition, part.Number)
				return
			}
			sw := swaps[p]
			if sw == nil {
				sw = &swap{p: p, out: map[uint32]uint32{}}
				swaps[p], order = sw, append(order, sw)
			}
			if _, twice := sw.out[number]; twice {
				c.void("%s goes out of object %s twice", p.TP, o.ID)
				return
			}
			sw.out[number] = part.Generation
		}
	}
	named := map[segment.ObjectID]bool{}
	for _, o := range r.In {
		if c.Void = s.checkNew(o.ID, named, len(o.Parts)); c.Void != "" {
			return
		}
		for _, ext := range o.Parts {
			sw := swaps[s.partitions[partitionKey{ext.Number, ext.Partition}]]
			if sw == nil {
				c.void("partition %d of topic number %d goes in, and not out", ext.Partition, ext.Number)
				return
			}
			sw.in, sw.ids = append(sw.in, ext), append(sw.ids, o.ID)
		}
	}
	for _, sw := range order {
		if c.Void = sw.check(); c.Void != "" {
			return
		}
	}
	for _, sw := range order {
		sw.apply(s.objects)
		c.Replaced = append(c.Replaced, sw.p)
	}
}

// check finds the spans that go out, and says why they cannot, or why what
// goes in does not cover the same offsets.
func (sw *swap) check() string {
	spans := sw.p.spans
	for sw.i < len(spans) && !sw.goesOut(spans[sw.i]) {
		sw.i++
	}
	for sw.j = sw.i; sw.j < len(spans) && sw.goesOut(spans[sw.j]); sw.j++ {
	}
	if sw.j-sw.i < len(sw.out) {
		return "ranges of " + sw.p.TP.String() + " are not live, or not in a row"
	}
	covered := int64(0)
	for k, ext := range sw.in {
		if why := checkExtent(ext); why != "" {
			return why
		}
		if k > 0 && sw.ids[k] == sw.ids[k-1] {
			return "an object has two ranges of one partition"
		}
		covered += ext.Offsets
	}
	if covered != int64(spans[sw.j-1].end())-spans[sw.i].base {
		return "what goes in does not cover what goes out of " + sw.p.TP.String()
	}
	return ""
}

func (sw *swap) goesOut(s span) bool {
	generation, ok := sw.out[s.object]
	return ok && generation == s.generation
}

func (sw *swap) apply(objects *objectTable) {
	spans := sw.p.spans
	base, generation := siltstone.Offset(spans[sw.i].base), uint32(0)
	for _, s := range spans[sw.i:sw.j] {
		generation = max(generation, s.generation+1)
	}
	in := make([]span, len(sw.in))
	for k, ext := range sw.in {
		in[k] = newSpan(ext, base, objects.hold(sw.ids[k]), generation)
		base += siltstone.Offset(ext.Offsets)
	}
	sw.p.replace(sw.i, sw.j, in)
}
