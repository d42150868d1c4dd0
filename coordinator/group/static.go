package group

// replace puts a static member's newest client in the place of the one before
// (KIP-345), which is fenced from here on.
//
// In a stable group nothing else changes: the new one takes over the
// assignment, in the same generation, once that is folded. But where the
// generation's members have gone to the leader and its assignments are not in
// yet, those would name the old member, so all join again.
func (g *classic) replace(old *member, r *Join) {
	mem := newMember(r, g.m.newMemberID(r))
	mem.came, mem.assignment, mem.owesSync = old.came, old.assignment, old.owesSync
	leader := g.leader
	if leader == old.id {
		g.leader = mem.id
	}
	g.remove(old, old.id, ErrFencedInstance)
	g.add(mem)
	g.await(mem, r)
	if g.phase != Stable || g.vote(g.sorted()) != g.protocol {
		g.rebalance()
		return
	}
	info := g.info()
	if info.SizeBytes() > g.infoBytes() {
		g.rebalance() // in which somebody is found who has to go
		return
	}
	c := g.change()
	c.set = info
	c.then = append(c.then, func() { g.replaced(mem, r, leader) })
}

// replaced answers the static member that has taken another's place, if
// nothing has come in between.
func (g *classic) replaced(mem *member, r *Join, oldLeader string) {
	if g.phase != Stable || mem.join != r {
		return
	}
	f := g.folded()
	r.MemberID, r.Generation, r.Protocol, r.Leader = mem.id, f.Generation, f.Protocol, f.Leader
	switch {
	case f.Leader != mem.id:
	case r.MaySkip:
		r.SkipAssignment, r.Members = true, joinedMembers(&f.Info)
	default:
		// It would assign, and nobody would take it: an old client is not told
		// that it leads.
		r.Leader = oldLeader
	}
	g.stopWaiting(mem)
	g.m.answer(r, nil)
}

// stopWaiting ends the wait of a join that is about to be answered.
func (g *classic) stopWaiting(mem *member) {
	g.waiting--
	mem.join, mem.formed, mem.fresh = nil, false, false
	g.touch(mem)
}
