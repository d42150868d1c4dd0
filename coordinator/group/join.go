package group

func (m *Machine) join(g *classic, r *Join) {
	limits := m.o.Settings()
	switch {
	case r.Group == "":
		m.refuseJoin(r, r.Member, ErrInvalidGroup)
		return
	case r.SessionMS < limits.MinSessionMS || r.SessionMS > limits.MaxSessionMS:
		m.refuseJoin(r, r.Member, ErrInvalidSessionTimeout)
		return
	case g == nil && r.Member != "":
		m.refuseJoin(r, r.Member, ErrUnknownMember)
		return
	}
	if r.RebalanceMS < 0 {
		r.RebalanceMS = r.SessionMS
	}
	r.Protocols = distinct(r.Protocols)
	g = m.group(r.Group)
	switch {
	case !g.accepts(r, limits.MaxMembers):
		g.turnAway(r)
	case !g.supports(r.Type, r.Protocols):
		m.refuseJoin(r, r.Member, ErrInconsistentProtocol)
	case r.Member != "":
		g.joinKnown(r)
	case r.Instance != nil && g.instances[*r.Instance] != nil:
		g.replace(g.instances[*r.Instance], r)
	case r.Instance == nil && r.TwoSteps:
		g.handOut(r)
	default:
		g.admit(r, m.newMemberID(r))
	}
}

// refuseJoin answers with an error and, where the client is to have one, a member id.
func (m *Machine) refuseJoin(r *Join, memberID string, err error) {
	r.MemberID, r.Generation = memberID, -1
	m.answer(r, err)
}

// accepts says whether there is room. While members join anew, those that have
// count, so that where the group has become too large the last ones have to go.
// A static member in the place of another takes none.
func (g *classic) accepts(r *Join, most int) bool {
	mem := g.members[r.Member]
	if r.Member == "" && r.Instance != nil {
		mem = g.instances[*r.Instance]
	}
	switch g.phase {
	case Empty:
		return true
	case PreparingRebalance:
		return mem != nil && mem.join != nil || g.waiting < most
	default:
		return mem != nil || len(g.members) < most
	}
}

// turnAway refuses one for whom there is no room.
func (g *classic) turnAway(r *Join) {
	if mem := g.members[r.Member]; mem != nil {
		g.remove(mem, "", ErrGroupFull)
	}
	g.dropPending(r.Member)
	g.m.refuseJoin(r, "", ErrGroupFull)
	g.joined()
}

// handOut tells a new member its id, with which it is to join. Beyond
// maxPending the oldest one is forgotten: who joins with that begins anew.
func (g *classic) handOut(r *Join) {
	id := g.m.newMemberID(r)
	p := &pendingMember{}
	p.over.due = func() {
		g.dropPending(id)
		g.joined()
		g.leaveIfNothing()
	}
	g.m.deadlines.set(&p.over, g.m.in(int64(r.SessionMS)))
	if g.pending == nil {
		g.pending = map[string]*pendingMember{}
	}
	g.pending[id] = p
	p.place = g.m.pending.PushBack(p)
	g.m.refuseJoin(r, id, ErrMemberIDRequired)
	if oldest := g.m.pending.Front(); g.m.pending.Len() > maxPending {
		oldest.Value.(*pendingMember).over.due() //nolint:forcetypeassert // nothing else is in the list
	}
}

// dropPending says whether an id was handed out and not used.
func (g *classic) dropPending(id string) bool {
	p := g.pending[id]
	if p == nil {
		return false
	}
	g.m.deadlines.clear(&p.over)
	g.m.pending.Remove(p.place)
	delete(g.pending, id)
	return true
}

// admit makes a new member.
func (g *classic) admit(r *Join, id string) {
	if len(g.members) == 0 {
		g.typ = r.Type
	}
	mem := newMember(r, id)
	mem.fresh = true
	g.add(mem)
	g.await(mem, r)
	g.m.deadlines.set(&mem.session, g.m.in(newMemberMS))
	if g.phase == PreparingRebalance {
		g.initial.more = true
	}
	g.rebalance()
}

func newMember(r *Join, id string) *member {
	return &member{
		id: id, instance: r.Instance, client: r.ClientID, host: r.ClientHost,
		sessionMS: r.SessionMS, rebalanceMS: r.RebalanceMS, protocols: r.Protocols,
	}
}

// joinKnown is of somebody who has an id.
func (g *classic) joinKnown(r *Join) {
	if g.pending[r.Member] != nil && r.Instance == nil {
		g.dropPending(r.Member)
		g.admit(r, r.Member)
		return
	}
	if err := g.check(r.Member, r.Instance); err != nil {
		g.m.refuseJoin(r, r.Member, err)
		return
	}
	mem := g.members[r.Member]
	same := mem.matches(r.Protocols)
	// A client may not have got its answer, or look whether there is another
	// generation. The leader joins again where it wants other assignments.
	if same && (g.phase == CompletingRebalance || g.phase == Stable && r.Member != g.leader) {
		g.offer(mem, r.Protocols)
		g.welcome(r, r.Member)
		return
	}
	g.offer(mem, r.Protocols)
	mem.sessionMS, mem.rebalanceMS = r.SessionMS, r.RebalanceMS
	formed := mem.formed && same
	g.await(mem, r)
	mem.formed = formed
	g.rebalance()
}

// await lets a join wait for the next generation. One that waited already is
// that of a connection that its client has given up.
func (g *classic) await(mem *member, r *Join) {
	if mem.join != nil {
		g.m.refuseJoin(mem.join, mem.id, ErrRebalanceInProgress)
		g.waiting--
	}
	g.waiting++
	mem.join, mem.formed = r, false
}

// refuseWaiting refuses what of a member waits.
func (g *classic) refuseWaiting(mem *member, memberID string, err error) {
	if mem.join != nil {
		g.m.refuseJoin(mem.join, memberID, err)
		g.waiting--
		mem.join, mem.formed = nil, false
	}
	if mem.sync != nil {
		g.m.answer(mem.sync, err)
		mem.sync = nil
	}
}

// welcome answers a join with the generation as it is folded.
func (g *classic) welcome(r *Join, id string) {
	f := g.folded()
	r.Generation, r.Protocol, r.Leader = f.Generation, f.Protocol, f.Leader
	if r.MemberID = id; r.Leader == id {
		r.Members = joinedMembers(&f.Info)
	}
	g.m.answer(r, nil)
}

// joinedMembers is what a leader is told.
func joinedMembers(i *Info) []JoinedMember {
	list := make([]JoinedMember, len(i.Members))
	for k, f := range i.Members {
		list[k] = JoinedMember{ID: f.ID, Instance: f.Instance, Metadata: f.Subscription}
	}
	return list
}
