package group

// delete deletes a group without members.
func (m *Machine) delete(g *classic, r *Delete) {
	switch {
	case g == nil:
		m.answer(r, ErrNotFound)
	case g.phase != Empty:
		m.answer(r, ErrNotEmpty)
	default:
		for id := range g.pending {
			g.dropPending(id)
		}
		c := g.change()
		c.delete()
		c.answers = append(c.answers, r)
	}
}

func (m *Machine) describe(g *classic, r *Describe) {
	if g == nil {
		r.Description = Description{Phase: Dead}
		m.answer(r, ErrNotFound)
		return
	}
	r.Description = g.description()
	m.answer(r, nil)
}

func (g *classic) description() Description {
	d := Description{Phase: g.phase, Type: g.typ, Generation: g.generation}
	if g.phase != Stable {
		for _, mem := range g.sorted() {
			d.Members = append(d.Members, DescribedMember{ID: mem.id, Instance: mem.instance, ClientID: mem.client, ClientHost: mem.host})
		}
		return d
	}
	f := g.folded()
	d.Protocol = f.Protocol
	for _, mem := range f.Members {
		d.Members = append(d.Members, DescribedMember{
			ID: mem.ID, Instance: mem.Instance, ClientID: mem.ClientID, ClientHost: mem.ClientHost,
			Metadata: mem.Subscription, Assignment: mem.Assignment,
		})
	}
	return d
}
