package group

func (m *Machine) sync(g *classic, r *Sync) {
	switch {
	case r.Group == "":
		m.answer(r, ErrInvalidGroup)
		return
	case g == nil:
		m.answer(r, ErrUnknownMember)
		return
	}
	if err := g.checkSync(r); err != nil {
		m.answer(r, err)
		return
	}
	mem := g.members[r.Member]
	g.paySync(mem)
	if g.phase == Stable {
		g.touch(mem)
		g.give(mem, r)
		return
	}
	if mem.sync != nil { // of a connection that its client has given up
		m.answer(mem.sync, ErrRebalanceInProgress)
	}
	mem.sync = r
	if mem.id == g.leader && !g.assigning {
		g.assign(r.Assignments)
	}
}

func (g *classic) checkSync(r *Sync) error {
	if err := g.check(r.Member, r.Instance); err != nil {
		return err
	}
	switch {
	case r.Generation != g.generation:
		return ErrIllegalGeneration
	case r.Type != nil && *r.Type != g.typ, r.Protocol != nil && *r.Protocol != g.protocol:
		return ErrInconsistentProtocol
	case g.phase == PreparingRebalance:
		return ErrRebalanceInProgress
	}
	return nil
}

// give answers a sync with the member's assignment, which is folded.
func (g *classic) give(mem *member, r *Sync) {
	r.ProtocolType, r.ProtocolName, r.Assignment = g.typ, g.protocol, mem.assignment
	g.m.answer(r, nil)
}

// assign stores what the leader assigns; nothing for members that it passes over.
func (g *classic) assign(assignments map[string][]byte) {
	info := g.info()
	for i := range info.Members {
		info.Members[i].Assignment = assignments[info.Members[i].ID]
	}
	if info.SizeBytes() > g.infoBytes() {
		g.refuseSyncs(ErrTooLarge)
		g.prepare()
		return
	}
	g.assigning = true
	c := g.change()
	c.set = info
	c.then = append(c.then, func() { g.assigned(info) })
}

// assigned tells the members their assignments, which are folded. If
// meanwhile another rebalance has begun, nobody hears of them.
func (g *classic) assigned(info *Info) {
	if g.phase != CompletingRebalance || g.generation != info.Generation {
		return
	}
	g.phase, g.assigning = Stable, false
	for i := range info.Members {
		mem := g.members[info.Members[i].ID]
		mem.assignment = info.Members[i].Assignment
		if r := mem.sync; r != nil {
			mem.sync = nil
			g.touch(mem)
			g.give(mem, r)
		}
	}
}

// refuseSyncs ends the wait for assignments.
func (g *classic) refuseSyncs(err error) {
	for _, mem := range g.sorted() {
		if mem.sync != nil {
			g.m.answer(mem.sync, err)
			mem.sync = nil
			g.touch(mem)
		}
	}
}

// awaitSyncs begins the phase in which members ask for their assignments, and
// the leader brings them. Who does not within the rebalance timeout is taken
// for gone, even if it sends heartbeats (KAFKA-13214).
func (g *classic) awaitSyncs(members []*member) {
	g.phase, g.unsynced = CompletingRebalance, 0
	for _, mem := range members {
		if mem.owesSync = g.members[mem.id] == mem; mem.owesSync {
			g.unsynced++
		}
	}
	g.dueIn(g.rebalanceTimeout())
}

// paySync notes that a member has synced.
func (g *classic) paySync(mem *member) {
	if !mem.owesSync {
		return
	}
	mem.owesSync = false
	if g.unsynced--; g.unsynced == 0 {
		g.m.deadlines.clear(&g.due)
	}
}

// removeUnsynced removes those who did not sync in time.
func (g *classic) removeUnsynced() {
	for _, mem := range g.sorted() {
		if mem.owesSync {
			g.remove(mem, "", ErrUnknownMember)
		}
	}
	g.prepare()
}
