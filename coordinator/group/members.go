package group

func (m *Machine) heartbeat(g *classic, r *Heartbeat) {
	switch {
	case r.Group == "":
		m.answer(r, ErrInvalidGroup)
		return
	case g == nil:
		m.answer(r, ErrUnknownMember)
		return
	}
	err := g.check(r.Member, r.Instance)
	switch {
	case err != nil:
	case r.Generation != g.generation:
		err = ErrIllegalGeneration
	default:
		g.touch(g.members[r.Member])
		if g.phase == PreparingRebalance {
			err = ErrRebalanceInProgress
		}
	}
	m.answer(r, err)
}

func (m *Machine) leave(g *classic, r *Leave) {
	if r.Group == "" {
		m.answer(r, ErrInvalidGroup)
		return
	}
	left, members := false, 0
	if g != nil {
		members = len(g.members)
	}
	for i := range r.Members {
		l := &r.Members[i]
		if l.Err = ErrUnknownMember; g != nil {
			l.Err = g.leave(l)
		}
		left = left || l.Err == nil
	}
	if !left {
		m.answer(r, nil)
		return
	}
	if len(g.members) < members {
		g.rebalance()
	} else {
		g.joined()
	}
	// If it ended the rebalance, the next entry says that they are gone.
	if f := g.forming; f != nil && f.info == nil {
		c := g.change()
		c.answers = append(c.answers, r)
		return
	}
	m.answer(r, nil)
}

// leave takes one member out.
func (g *classic) leave(l *LeavingMember) error {
	id := l.Member
	if id == "" && l.Instance != nil && g.instances[*l.Instance] != nil {
		id = g.instances[*l.Instance].id
	}
	if g.dropPending(id) {
		return nil
	}
	if err := g.check(id, l.Instance); err != nil {
		return err
	}
	g.remove(g.members[id], "", ErrUnknownMember)
	return nil
}

// sessionOver removes a member that has not been heard of.
func (g *classic) sessionOver(mem *member) {
	if mem.waits() && !mem.fresh {
		return // it begins anew with the answer
	}
	g.remove(mem, "", ErrUnknownMember)
	g.rebalance()
}
