package group

import "time"

// fetch answers from the fold. What KIP-848 gives to be checked, the member
// and its epoch, a classic group does not check: any generation may read.
func (m *Machine) fetch(r *Fetch) {
	f, _ := m.fold.Group(r.Group)
	if r.All {
		r.Parts = nil
		if f != nil {
			for _, o := range f.sorted() {
				r.Parts = append(r.Parts, fetched(o))
			}
		}
		m.answer(r, nil)
		return
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		o := Committed{TopicPartition: p.TopicPartition, Offset: -1, Epoch: noEpoch}
		if f != nil {
			if found, ok := f.Offsets[p.TopicPartition]; ok {
				o = found
			}
		}
		*p = fetched(o)
	}
	m.answer(r, nil)
}

func fetched(o Committed) FetchPart {
	return FetchPart{TopicPartition: o.TopicPartition, Offset: o.Offset, Epoch: o.Epoch, Metadata: o.Metadata}
}

// deleteOffsets forgets offsets, but for topics that the members read (KIP-496).
func (m *Machine) deleteOffsets(g *classic, r *DeleteOffsets) {
	switch {
	case r.Group == "":
		m.answer(r, ErrInvalidGroup)
		return
	case g == nil:
		m.answer(r, ErrNotFound)
		return
	case g.phase != Empty && g.typ != consumerType:
		m.answer(r, ErrNotEmpty)
		return
	}
	reads := g.subscriptions()
	for i := range r.Parts {
		p := &r.Parts[i]
		switch {
		case !m.o.Exists(p.TopicPartition):
			p.Err = ErrUnknownPartition
		case reads.topic(p.Topic):
			p.Err = ErrSubscribed
		case g.has(p.TopicPartition):
			g.change().forget(p.TopicPartition)
		}
	}
	// What is on its way may be why there is nothing to forget.
	for _, c := range []*change{g.next, g.sending} {
		if c != nil {
			c.answers = append(c.answers, r)
			return
		}
	}
	m.answer(r, nil)
}

// has says whether an offset is committed for a partition, by all that is decided.
func (g *classic) has(tp TopicPartition) bool {
	for _, c := range []*change{g.next, g.sending} {
		if c == nil {
			continue
		}
		if o, decided := c.offsets[tp]; decided {
			return o != nil
		}
		if c.deletes {
			return false
		}
	}
	f := g.folded()
	if f == nil {
		return false
	}
	_, ok := f.Offsets[tp]
	return ok
}

// TopicsDeleted forgets the offsets of partitions that are not there any more.
func (m *Machine) TopicsDeleted(now time.Time) {
	m.now = now
	for _, g := range m.sorted() {
		g.sweep = g.sending != nil
		g.forgetDeleted()
	}
}

func (g *classic) forgetDeleted() {
	if g.next != nil {
		for tp, o := range g.next.offsets {
			if o != nil && !g.m.o.Exists(tp) {
				g.next.forget(tp)
			}
		}
	}
	f := g.folded()
	if f == nil {
		return
	}
	for tp := range f.Offsets {
		if !g.m.o.Exists(tp) && g.has(tp) {
			g.change().forget(tp)
		}
	}
}
