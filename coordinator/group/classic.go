package group

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// classic is a group that its members coordinate by the classic protocol:
// JoinGroup, SyncGroup, Heartbeat. Offsets committed without members make one
// too, which is Empty.
//
// The phase and all that is told of a generation go by what is folded. Only
// PreparingRebalance, those who come and go in it, and its end are ahead of it.
type classic struct {
	m     *Machine
	id    string
	phase Phase // but Dead: then there is none
	typ   string

	// Of the generation.
	generation int32
	protocol   string
	leader     string // in a stable group ahead of the fold, if a static member takes the leader's place
	changedMS  int64

	members   map[string]*member
	instances map[string]*member // static members, by their instance
	offers    map[string]int     // how many members offer a protocol
	waiting   int                // members with a join
	unsynced  int                // members that owe a sync
	came      uint64             // the last member's number
	pending   map[string]*pendingMember

	due deadline // end of the phase: of joining in PreparingRebalance, of syncing after it

	initial   initialDelay
	forming   *formation // decided and not folded; only in PreparingRebalance
	assigning bool       // assignments are in and not folded; only in CompletingRebalance

	next    *change // decided since the last entry was proposed
	sending *change // proposed, in part or whole
	sweep   bool    // sending may have offsets of topics deleted since
}

// load goes on in the generation that is folded.
func (g *classic) load(i *Info) {
	g.typ, g.generation, g.protocol, g.leader, g.changedMS = i.Type, i.Generation, i.Protocol, i.Leader, i.ChangedMS
	for _, f := range i.Members {
		mem := &member{
			id: f.ID, instance: f.Instance, client: f.ClientID, host: f.ClientHost,
			sessionMS: f.SessionMS, rebalanceMS: f.RebalanceMS,
			protocols: []Protocol{{i.Protocol, f.Subscription}}, folded: true,
			assignment: f.Assignment,
		}
		g.add(mem)
		g.touch(mem)
	}
	switch {
	case len(g.members) == 0:
		return
	case i.Assigned:
		g.phase = Stable
	default:
		g.awaitSyncs(g.sorted())
	}
	if len(g.members) > g.m.o.Settings().MaxMembers {
		g.prepare()
	}
}

// folded is the group as it is folded; nil while it is not.
func (g *classic) folded() *Group {
	f, _ := g.m.fold.Group(g.id)
	return f
}

// sorted is the members in the order in which they came.
func (g *classic) sorted() []*member {
	return slices.SortedFunc(maps.Values(g.members), func(a, b *member) int { return cmp.Compare(a.came, b.came) })
}

// add adds a member, behind those that are there unless it has its place already.
func (g *classic) add(mem *member) {
	if mem.came == 0 {
		g.came++
		mem.came = g.came
	}
	g.members[mem.id] = mem
	if mem.instance != nil {
		if g.instances == nil {
			g.instances = map[string]*member{}
		}
		g.instances[*mem.instance] = mem
	}
	g.count(mem, 1)
	mem.session.due = func() { g.sessionOver(mem) }
}

// remove takes a member out, and refuses its requests that wait.
func (g *classic) remove(mem *member, memberID string, err error) {
	g.refuseWaiting(mem, memberID, err)
	g.m.deadlines.clear(&mem.session)
	g.count(mem, -1)
	delete(g.members, mem.id)
	if mem.instance != nil && g.instances[*mem.instance] == mem {
		delete(g.instances, *mem.instance)
	}
}

// count counts what a member offers.
func (g *classic) count(mem *member, by int) {
	for i := range mem.protocols {
		name := mem.protocols[i].Name
		if g.offers[name] += by; g.offers[name] == 0 {
			delete(g.offers, name)
		}
	}
}

// offer changes what a member offers.
func (g *classic) offer(mem *member, protocols []Protocol) {
	g.count(mem, -1)
	mem.protocols, mem.folded = protocols, false
	g.count(mem, 1)
}

// supports says whether a member of a type could join, by one of its protocols.
func (g *classic) supports(typ string, offered []Protocol) bool {
	if len(g.members) == 0 {
		return typ != "" && len(offered) > 0
	}
	return typ == g.typ && slices.ContainsFunc(offered, func(p Protocol) bool { return g.offers[p.Name] == len(g.members) })
}

// vote is the protocol that most members like best among those that all have.
// Of several the one that was first named by the member that came first.
func (g *classic) vote(members []*member) string {
	var ballot []string
	votes := map[string]int{}
	for _, mem := range members {
		for i := range mem.protocols {
			name := mem.protocols[i].Name
			if g.offers[name] < len(g.members) {
				continue
			}
			if votes[name]++; votes[name] == 1 {
				ballot = append(ballot, name)
			}
			break
		}
	}
	best := ""
	for _, name := range ballot {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// check says why a request is not of a member, or not of the newest one with
// its instance id.
func (g *classic) check(id string, instance *string) error {
	if instance != nil {
		mem := g.instances[*instance]
		if mem == nil {
			return ErrUnknownMember
		}
		if mem.id != id {
			return ErrFencedInstance
		}
	}
	if g.members[id] == nil {
		return ErrUnknownMember
	}
	return nil
}

// touch begins a member's session anew.
func (g *classic) touch(mem *member) {
	g.m.deadlines.set(&mem.session, g.m.in(int64(mem.sessionMS)))
}

// rebalanceTimeout is that of the member that takes longest.
func (g *classic) rebalanceTimeout() time.Duration {
	longest := int32(0)
	for _, mem := range g.members {
		longest = max(longest, mem.rebalanceMS)
	}
	return time.Duration(longest) * time.Millisecond
}

// info is the generation as it stands.
func (g *classic) info() *Info {
	i := &Info{
		Type: g.typ, Generation: g.generation, Protocol: g.protocol, Leader: g.leader,
		Assigned: true, ChangedMS: g.changedMS,
	}
	for _, mem := range g.sorted() {
		i.Members = append(i.Members, mem.info(g.protocol, mem.assignment))
	}
	return i
}

func (m *member) info(protocol string, assignment []byte) Member {
	return Member{
		ID: m.id, Instance: m.instance, ClientID: m.client, ClientHost: m.host,
		SessionMS: m.sessionMS, RebalanceMS: m.rebalanceMS,
		Subscription: m.metadata(protocol), Assignment: assignment,
	}
}

// leaveIfNothing forgets a group of which nothing is left: neither folded, nor
// on its way there, nor anybody who would join.
func (g *classic) leaveIfNothing() {
	if g.phase == Empty && len(g.pending) == 0 && g.next == nil && g.sending == nil && g.folded() == nil {
		delete(g.m.groups, g.id)
	}
}
