package sim

import (
	"maps"
	"slices"
)

// checkGroups judges what members of groups were told (invariant 6).
func (c *checker) checkGroups() {
	h := &c.groups
	names := map[string]bool{}
	for _, j := range h.joinings {
		names[j.group] = true
	}
	for _, x := range h.commits {
		names[x.group] = true
	}
	for _, r := range h.recalls {
		names[r.group] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		g := newGroupChecker(c, name)
		g.checkGenerations()
		g.checkActs()
		g.checkOutsiders()
		g.checkShares()
		g.checkDescriptions()
		g.checkListings()
		g.checkOffsets()
	}
	c.checkSettled()
}

// checkSettled: where members neither come nor go, no restart moves them.
func (c *checker) checkSettled() {
	h := &c.groups
	if h.settled == 0 {
		return
	}
	for _, j := range h.joinings {
		if j.sent > h.settled {
			c.failf("calm: %s had to join again (moment %d)", j.standing, j.got)
		}
	}
	for _, s := range h.expulsions {
		c.failf("calm: %s was expelled", s)
	}
}

type groupChecker struct {
	*checker
	name       string
	joinings   []joining
	acts       []act
	allotments []allotment
	sharings   []sharing
	deaths     []*loss           // by which the group itself may have ended
	names      map[string]string // of members, by their ids
}

func newGroupChecker(c *checker, name string) *groupChecker {
	g := &groupChecker{checker: c, name: name, names: map[string]string{}}
	for _, j := range c.groups.joinings {
		if j.group == name {
			g.joinings = append(g.joinings, j)
			if g.names[j.member] = j.member; j.instance != "" {
				g.names[j.member] = "instance " + j.instance
			}
		}
	}
	for _, a := range c.groups.acts {
		if a.group == name {
			g.acts = append(g.acts, a)
		}
	}
	for _, a := range c.groups.allotments {
		if a.group == name {
			g.allotments = append(g.allotments, a)
		}
	}
	for _, s := range c.groups.sharings {
		if s.group == name {
			g.sharings = append(g.sharings, s)
		}
	}
	for _, l := range c.groups.losses {
		if l.ends && !l.refused && (l.group == "" || l.group == name) {
			g.deaths = append(g.deaths, l)
		}
	}
	return g
}

// died says whether the group may have ended between two moments, so that
// another of its name began anew. One without members and offsets ends whenever
// it is looked at.
func (g *groupChecker) died(from, to moment) bool {
	if g.groups.expires && !g.kept(from, to) {
		return true
	}
	return slices.ContainsFunc(g.deaths, func(l *loss) bool { return l.end() > from && l.sent < to })
}

// kept says whether the group certainly had some offset between two moments.
func (g *groupChecker) kept(from, to moment) bool {
	return slices.ContainsFunc(g.groups.commits, func(x *commit) bool {
		return x.group == g.name && x.acked && x.got < from && !slices.ContainsFunc(g.groups.losses, func(l *loss) bool {
			return l.concerns(g.name, x.partition) && l.end() > x.sent && l.sent < to
		})
	})
}

// canonical is a member's name; a static one keeps it when another process
// takes its place. Empty for one that never got an answer: it may be either.
func (g *groupChecker) canonical(id string) string { return g.names[id] }

// checkGenerations: generations do not fall, and one has one leader, one
// protocol and one set of members.
func (g *groupChecker) checkGenerations() {
	for i, a := range g.joinings {
		if !slices.Contains(a.offered, a.protocol) {
			g.failf("6: %s was given the protocol %q, it offered %q", a.standing, a.protocol, a.offered)
		}
		for _, b := range g.joinings[:i] {
			if g.died(min(a.sent, b.sent), max(a.got, b.got)) {
				continue
			}
			g.checkFalls(b, a)
			g.checkFalls(a, b)
			if a.generation == b.generation {
				g.checkSame(b, a)
			}
		}
	}
}

func (g *groupChecker) checkFalls(a, b joining) {
	if a.got < b.sent && a.generation > b.generation {
		g.failf("6: %s was let in after %s had been", b.standing, a.standing)
	}
}

// checkSame compares two answers of one generation.
func (g *groupChecker) checkSame(a, b joining) {
	if la, lb := g.canonical(a.leader), g.canonical(b.leader); la != lb && la != "" && lb != "" {
		g.failf("6: generation %d of %s has the leader %s to %s, and %s to %s", a.generation, g.name, a.leader, a.member, b.leader, b.member)
	}
	if a.protocol != b.protocol {
		g.failf("6: generation %d of %s has the protocol %q to %s, and %q to %s", a.generation, g.name, a.protocol, a.member, b.protocol, b.member)
	}
	for _, x := range []struct{ of, to joining }{{a, b}, {b, a}} {
		if x.of.members == nil {
			continue
		}
		names := g.namesOf(x.of)
		if slices.Contains(names, "") {
			continue
		}
		if !slices.Contains(names, g.canonical(x.to.member)) {
			g.failf("6: %s is none of its members, as %s was given them: %q", x.to.standing, x.of.member, names)
		}
		if to := g.namesOf(x.to); x.to.members != nil && !slices.Contains(to, "") && !slices.Equal(names, to) {
			g.failf("6: generation %d of %s has the members %q, and %q", a.generation, g.name, names, to)
			return
		}
	}
}

// namesOf are the members of a generation as an answer has them, sorted.
func (g *groupChecker) namesOf(j joining) []string {
	var names []string
	for _, m := range j.members {
		names = append(names, g.canonical(m))
	}
	slices.Sort(names)
	return names
}

// checkActs: nothing is taken from a member of an old generation, from one
// whose place another has, from one that has left, or of a group that is
// deleted. (Who has left is in the generation until there is another, and in
// one that a later coordinator finds.)
func (g *groupChecker) checkActs() {
	firsts := map[string]joining{} // of each member
	for _, j := range g.joinings {
		if first, known := firsts[j.member]; !known || j.got < first.got {
			firsts[j.member] = j
		}
	}
	for _, a := range g.acts {
		if a.what == "a heartbeat" && g.groups.several {
			continue // one whose coordinator is being loaded is answered blindly, as by Kafka
		}
		first, known := firsts[a.member]
		for _, j := range g.joinings {
			if j.got >= a.sent || g.died(j.sent, a.got) {
				continue
			}
			if j.generation > a.generation {
				g.failf("6: %s of %s was taken after generation %d had been handed out", a.what, a.standing, j.generation)
				break
			}
			if known && a.instance != "" && j.instance == a.instance && j.member != a.member && first.got < j.sent {
				g.failf("6: %s of %s was taken after %s had its place", a.what, a.standing, j.member)
				break
			}
		}
		for _, l := range g.groups.leavings {
			if l.group == g.name && l.member == a.member && l.got < a.sent && !g.beganAnewBetween(l.sent, a.got) {
				g.failf("6: %s of %s was taken after it had left", a.what, a.standing)
			}
		}
		for _, d := range g.deaths {
			if d.acked && known && first.got < d.sent && d.got < a.sent {
				g.failf("6: %s of %s was taken after the group had been deleted", a.what, a.standing)
			}
		}
	}
}

// checkOutsiders: nobody commits as no member while the group has one.
func (g *groupChecker) checkOutsiders() {
	type stay struct{ first, last moment } // it was a member all the time between
	stays := map[string]*stay{}
	for _, a := range g.acts {
		s := stays[a.member]
		if s == nil {
			s = &stay{a.got, a.sent}
			stays[a.member] = s
		}
		s.first, s.last = min(s.first, a.got), max(s.last, a.sent)
	}
	for _, x := range g.groups.commits {
		if x.group != g.name || x.generation >= 0 || !x.acked {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(stays)) {
			if s := stays[id]; s.first < x.sent && x.got < s.last {
				g.failf("6: commit %s of no member was taken while %s was in %s", x.id, id, g.name)
			}
		}
	}
}

func (g *groupChecker) beganAnewBetween(from, to moment) bool {
	return g.groups.several || slices.ContainsFunc(g.groups.anew, func(m moment) bool { return from < m && m < to })
}

// checkShares: each member has the share that its leader gave it, all of one
// generation by one allotment, and no partition is two members'.
func (g *groupChecker) checkShares() {
	for i, s := range g.sharings {
		g.checkShare(s)
		for _, o := range g.sharings[:i] {
			if o.generation != s.generation || g.died(min(o.sent, s.sent), max(o.got, s.got)) {
				continue
			}
			if o.mark != s.mark {
				g.failf("6: %s has a share of %s, and %s of %s", o.standing, o.mark, s.standing, s.mark)
			}
			for _, p := range s.partitions {
				if slices.Contains(o.partitions, p) && g.canonical(o.member) != g.canonical(s.member) {
					g.failf("6: %s is both %s's and %s's", p, o.standing, s.standing)
				}
			}
		}
	}
}

func (g *groupChecker) checkShare(s sharing) {
	for _, a := range g.allotments {
		if a.mark != s.mark {
			continue
		}
		if a.generation != s.generation || a.sent > s.got {
			g.failf("6: %s was given a share of %s, which is of generation %d", s.standing, a.mark, a.generation)
		}
		for id, share := range a.shares {
			if of := g.canonical(id); (of == "" || of == g.canonical(s.member)) && slices.Equal(share, s.partitions) {
				return
			}
		}
		g.failf("6: %s was given %v by %s, which has another share for it", s.standing, s.partitions, a.mark)
		return
	}
	g.failf("6: %s was given the share %v of %q, which no leader made", s.standing, s.partitions, s.mark)
}

// checkDescriptions: whoever is shown a stable group is shown one allotment.
func (g *groupChecker) checkDescriptions() {
	for _, d := range g.groups.descriptions {
		if d.group != g.name || d.state != "Stable" {
			continue
		}
		owners := map[partition]string{}
		for _, m := range d.members {
			if m.mark != d.members[0].mark {
				g.failf("6: %s was shown with shares of %s and of %s", g.name, d.members[0].mark, m.mark)
			}
			for _, p := range m.partitions {
				if other, known := owners[p]; known {
					g.failf("6: %s was shown as both %s's and %s's in %s", p, other, m.id, g.name)
				}
				owners[p] = m.id
			}
		}
	}
}

// checkListings: a group that has committed offsets is listed, one that was
// deleted and never named again is not.
func (g *groupChecker) checkListings() {
	for _, l := range g.groups.listings {
		if !l.groups[g.name] {
			for _, x := range g.groups.commits {
				lost := func(o *loss) bool { return o.concerns(g.name, x.partition) && o.end() > x.sent && o.sent < l.got }
				if x.group == g.name && x.acked && x.got < l.sent && !slices.ContainsFunc(g.groups.losses, lost) {
					g.failf("6: %s is not listed, commit %s had been acknowledged", g.name, x.id)
					break
				}
			}
			continue
		}
		for _, d := range g.deaths {
			if d.acked && d.got < l.sent && !g.named(d.sent, l.got) {
				g.failf("6: %s is listed after it had been deleted", g.name)
			}
		}
	}
}

// named says whether anything may have made the group between two moments.
func (g *groupChecker) named(from, to moment) bool {
	within := func(sent, got moment) bool { return sent < to && (got == 0 || got > from) }
	return slices.ContainsFunc(g.groups.attempts, func(a *attempt) bool { return a.group == g.name && within(a.sent, a.got) }) ||
		slices.ContainsFunc(g.groups.commits, func(x *commit) bool { return x.group == g.name && within(x.sent, x.got) })
}
