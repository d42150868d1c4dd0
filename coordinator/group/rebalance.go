package group

import "time"

// initialDelay is how long the first members of an empty group wait for others
// (KIP-134): as long as more come, but no longer than their rebalance timeout.
type initialDelay struct {
	lasts bool
	more  bool          // members came since the last part began
	part  time.Duration // the present one
	left  time.Duration // for more, after it
}

// A formation is a generation that all have joined. It is formed when it is
// proposed: until then members may come and go. What comes after that is for
// the next one.
type formation struct {
	typ     string
	empty   bool // decided without members, and stays so
	info    *Info
	members []*member // those of info
}

// rebalance begins one, or ends it if all have joined.
func (g *classic) rebalance() {
	if g.phase == PreparingRebalance {
		g.joined()
	} else {
		g.prepare()
	}
}

// prepare begins a rebalance.
func (g *classic) prepare() {
	if g.phase == CompletingRebalance {
		g.refuseSyncs(ErrRebalanceInProgress)
	}
	first := g.phase == Empty
	g.phase, g.assigning = PreparingRebalance, false
	if !first {
		g.dueIn(g.rebalanceTimeout())
		g.joined()
		return
	}
	delay := time.Duration(g.m.o.Settings().InitialDelayMS) * time.Millisecond
	if delay <= 0 {
		g.form()
		return
	}
	g.initial = initialDelay{lasts: true, part: delay, left: max(g.rebalanceTimeout()-delay, 0)}
	g.dueIn(delay)
}

func (g *classic) dueIn(d time.Duration) { g.m.deadlines.set(&g.due, g.m.now.Add(d)) }

// phaseOver is the end of what a phase may take.
func (g *classic) phaseOver() {
	switch i := &g.initial; {
	case g.phase != PreparingRebalance:
		g.removeUnsynced()
	case i.lasts && i.more && i.left > 0:
		last := i.part
		i.more, i.part = false, min(time.Duration(g.m.o.Settings().InitialDelayMS)*time.Millisecond, i.left)
		i.left = max(i.left-last, 0)
		g.dueIn(i.part)
	default:
		g.form()
	}
}

// joined ends a rebalance in which nobody is waited for any more.
func (g *classic) joined() {
	if g.phase != PreparingRebalance || g.forming != nil || g.initial.lasts && len(g.members) > 0 {
		return
	}
	if g.waiting == len(g.members) && len(g.pending) == 0 {
		g.form()
	}
}

// aloneMS is how long a group waits at least for somebody to join, if only
// static members are in it, and none of them has.
const aloneMS = 1000

// form decides on the next generation: of those who have joined, and of static
// members, who may still come until their sessions are over.
func (g *classic) form() {
	g.m.deadlines.clear(&g.due)
	for _, mem := range g.sorted() {
		if mem.join == nil && mem.instance == nil {
			g.remove(mem, "", ErrUnknownMember)
		}
	}
	if g.initial = (initialDelay{}); g.awaitsAnybody() {
		return
	}
	g.forming = &formation{typ: g.typ, empty: len(g.members) == 0}
	g.change().form = g.forming
}

// awaitsAnybody says that there are members and none of them has joined. Then
// the rebalance goes on until one does, or their sessions are over.
func (g *classic) awaitsAnybody() bool {
	if g.waiting > 0 || len(g.members) == 0 {
		return false
	}
	g.dueIn(max(g.rebalanceTimeout(), aloneMS*time.Millisecond))
	return true
}

// infoBytes is what an entry has room for.
func (g *classic) infoBytes() int {
	return g.m.entryBytes - UpdateBytes - (&GroupUpdate{ID: g.id}).SizeBytes()
}

// make forms the generation, for its entry; nil if by now nobody would be in it.
func (g *classic) make(f *formation) *Info {
	f.info = &Info{Type: f.typ, Generation: g.generation + 1, ChangedMS: g.m.wallMS()}
	if f.empty {
		return f.info
	}
	members := g.sorted()
	f.info.Protocol = g.vote(members)
	room, last := g.infoBytes()-f.info.SizeBytes()-2*countBytes, Member{}
	for _, mem := range members {
		entry := mem.info(f.info.Protocol, nil)
		if room -= len(entry.append(nil, last)); room < 0 {
			g.remove(mem, "", ErrGroupFull)
			continue
		}
		f.members, f.info.Members, last = append(f.members, mem), append(f.info.Members, entry), entry
		mem.formed = mem.join != nil
		if mem.formed && (f.info.Leader == "" || mem.id == g.leader) {
			f.info.Leader = mem.id
		}
	}
	switch {
	case len(g.members) == 0:
		f.info.Protocol = ""
	case g.awaitsAnybody():
		g.forming = nil
		return nil
	}
	return f.info
}

// formed begins the generation, which is folded.
func (g *classic) formed(f *formation) {
	g.forming = nil
	g.generation, g.protocol, g.leader, g.changedMS = f.info.Generation, f.info.Protocol, f.info.Leader, f.info.ChangedMS
	if len(f.info.Members) == 0 {
		g.phase = Empty
	} else {
		g.awaitSyncs(f.members)
	}
	same := len(f.members) == len(g.members)
	for _, mem := range f.members {
		if g.members[mem.id] != mem {
			same = false
			continue
		}
		if mem.formed {
			r := mem.join
			g.stopWaiting(mem)
			g.welcome(r, mem.id)
		}
	}
	if !same || g.waiting > 0 {
		g.prepare()
	}
}
