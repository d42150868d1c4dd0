package group

import (
	"cmp"
	"slices"
	"time"
)

// A change is what is decided for a group and not folded, and who waits for
// that. It grows until it is proposed.
type change struct {
	deletes bool
	offsets map[TopicPartition]*Committed // nil: forgotten
	set     *Info
	form    *formation // forms set, when it is proposed
	then    []func()   // done when it is folded
	answers []Request  // answered then, as they are

	rest *parts // once it is proposed: what no entry has taken yet
}

// parts of a change, in the order in which entries take them: what a
// generation has committed is folded before the next one, or with it.
type parts struct {
	deletes bool
	forget  []TopicPartition
	commit  []Committed
	set     *Info
}

// change is the group's next one.
func (g *classic) change() *change {
	if g.next == nil {
		g.next = &change{offsets: map[TopicPartition]*Committed{}}
		if g.sending == nil {
			g.m.changed = append(g.m.changed, g)
		}
	}
	return g.next
}

// commit puts an offset in the place of what was decided for its partition.
func (c *change) commit(o Committed) { c.offsets[o.TopicPartition] = &o }

// forget drops an offset.
func (c *change) forget(tp TopicPartition) {
	if c.deletes {
		delete(c.offsets, tp)
	} else {
		c.offsets[tp] = nil
	}
}

// delete deletes the group, and whatever was decided for it so far.
func (c *change) delete() {
	c.deletes = true
	clear(c.offsets)
}

// send stops the change from growing.
func (g *classic) send() {
	c := g.next
	g.sending, g.next = c, nil
	if c.form != nil {
		if info := g.make(c.form); info != nil {
			f := c.form
			c.set = info
			c.then = append(c.then, func() { g.formed(f) })
		}
	}
	c.rest = &parts{deletes: c.deletes, set: c.set}
	for tp, o := range c.offsets {
		if o == nil {
			c.rest.forget = append(c.rest.forget, tp)
		} else {
			c.rest.commit = append(c.rest.commit, *o)
		}
	}
	slices.SortFunc(c.rest.forget, compare)
	slices.SortFunc(c.rest.commit, func(a, b Committed) int { return compare(a.TopicPartition, b.TopicPartition) })
}

func compare(a, b TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// take is as much as fits into so many bytes of an entry; false if nothing does.
func (p *parts) take(id string, roomBytes int) (GroupUpdate, bool) {
	u := GroupUpdate{ID: id}
	room := roomBytes - u.SizeBytes()
	if room < 0 {
		return u, false
	}
	n := min(room/refBytes, len(p.forget))
	u.Forget, p.forget = p.forget[:n], p.forget[n:]
	room -= n * refBytes
	n = 0
	for n < len(p.commit) && len(p.forget) == 0 && p.commit[n].SizeBytes() <= room {
		room -= p.commit[n].SizeBytes()
		n++
	}
	u.Commit, p.commit = p.commit[:n], p.commit[n:]
	if p.set != nil && len(p.forget)+len(p.commit) == 0 && p.set.SizeBytes() <= room {
		u.Set, p.set = p.set, nil
	}
	if !p.all() && u.Set == nil && len(u.Forget)+len(u.Commit) == 0 {
		return u, false
	}
	u.Delete, p.deletes = p.deletes, false
	return u, true
}

// all says that entries have taken everything.
func (p *parts) all() bool { return p.set == nil && len(p.forget)+len(p.commit) == 0 }

// Propose is the next entry, as much of what is decided as fits into one; nil
// if nothing is. The caller appends it, and calls Folded once it is folded;
// only then may it call Propose again.
func (m *Machine) Propose() *Update {
	room := m.entryBytes - UpdateBytes
	entry := &Update{Epoch: m.o.Epoch, Writer: m.o.Writer}
	for _, g := range m.changed {
		if g.sending == nil {
			g.send()
		}
		u, fits := g.sending.rest.take(g.id, room)
		if !fits {
			break
		}
		room -= u.SizeBytes()
		entry.Groups = append(entry.Groups, u)
	}
	n := len(entry.Groups)
	if n == 0 {
		return nil
	}
	m.inFlight, m.changed = m.changed[:n:n], slices.Clone(m.changed[n:])
	return entry
}

// Folded says that the proposed entry is in the fold.
func (m *Machine) Folded(now time.Time) {
	m.now = now
	folded := m.inFlight
	m.inFlight = nil
	for _, g := range folded {
		c := g.sending
		if !c.rest.all() {
			m.changed = append(m.changed, g)
			continue
		}
		g.sending = nil
		if g.next != nil {
			m.changed = append(m.changed, g)
		}
		if c.deletes && g.phase == Empty {
			g.typ = ""
		}
		for _, do := range c.then {
			do()
		}
		c.answer(m, nil)
		if g.sweep {
			g.sweep = false
			g.forgetDeleted()
		}
		g.leaveIfNothing()
	}
}

// answer answers those who wait for the change as it is.
func (c *change) answer(m *Machine, err error) {
	for _, r := range c.answers {
		m.answer(r, err)
	}
}
