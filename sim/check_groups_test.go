package sim

import "testing"

// as is a member of group g, in a generation; one whose id begins with i is static.
func as(member string, generation int32) standing {
	s := standing{group: "g", member: member, generation: generation}
	if member[0] == 'i' {
		s.instance = member[:2]
	}
	return s
}

// join lets a member into a generation, whose leader is a.
func (h *tale) join(member string, generation int32, all ...string) *joining {
	j := joining{
		standing: as(member, generation), sent: h.tick(), got: h.tick(),
		leader: "a", protocol: "range", offered: []string{"range"}, members: all,
	}
	h.groups.joinings = append(h.groups.joinings, j)
	return &h.groups.joinings[len(h.groups.joinings)-1]
}

// allot gives shares of one generation, by a mark.
func (h *tale) allot(generation int32, mark string, shares map[string][]partition) {
	h.groups.allotments = append(h.groups.allotments, allotment{standing: as("a", generation), sent: h.tick(), mark: mark, shares: shares})
}

func (h *tale) share(member string, generation int32, mark string, partitions ...partition) {
	h.groups.sharings = append(h.groups.sharings, sharing{standing: as(member, generation), sent: h.tick(), got: h.tick(), mark: mark, partitions: partitions})
}

func (h *tale) beat(member string, generation int32) {
	h.groups.acts = append(h.groups.acts, act{standing: as(member, generation), what: "a heartbeat", sent: h.tick(), got: h.tick()})
}

func (h *tale) leave(member string, generation int32) {
	h.groups.leavings = append(h.groups.leavings, leaving{as(member, generation), h.tick(), h.tick()})
}

// commit sends an offset of p0; ack acknowledges it.
func (h *tale) commit(id string, by standing, offset int64) *commit {
	x := &commit{standing: by, partition: p0, id: id, offset: offset, epoch: -1, sent: h.tick()}
	h.groups.commits = append(h.groups.commits, x)
	return x
}

func (h *tale) acked(x *commit) { x.got, x.acked = h.tick(), true }

// recall shows what is committed for p0.
func (h *tale) recall(id string, offset int64) *recall {
	h.groups.recalls = append(h.groups.recalls, recall{group: "g", partition: p0, asker: "r", sent: h.tick(), got: h.tick(), id: id, offset: offset, epoch: -1})
	return &h.groups.recalls[len(h.groups.recalls)-1]
}

// lose is a request by which the group goes, with all its offsets.
func (h *tale) lose() *loss {
	l := &loss{what: "delete g", group: "g", partition: -1, ends: true, sent: h.tick()}
	h.groups.losses = append(h.groups.losses, l)
	return l
}

func (h *tale) lost(l *loss) { l.got, l.acked = h.tick(), true }

func (h *tale) describe(members ...described) {
	h.groups.descriptions = append(h.groups.descriptions, description{group: "g", sent: h.tick(), got: h.tick(), state: "Stable", members: members})
}

func (h *tale) list(groups ...string) {
	l := listing{sent: h.tick(), got: h.tick(), groups: map[string]bool{}}
	for _, g := range groups {
		l.groups[g] = true
	}
	h.groups.listings = append(h.groups.listings, l)
}

type told struct {
	name string
	tell func(h *tale)
	want string // begins one of the complaints; empty is none
}

func checkTales(t *testing.T, tests []told) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var h tale
			test.tell(&h)
			complains(t, h.check(), test.want)
		})
	}
}

func TestCheckMembers(t *testing.T) {
	both := map[string][]partition{"a": {p0}, "b": {p1}}
	checkTales(t, []told{
		{"two members, two generations", func(h *tale) {
			h.join("a", 1, "a")
			h.join("a", 2, "a", "b")
			h.join("b", 2)
			h.allot(2, "m", both)
			h.share("a", 2, "m", p0)
			h.share("b", 2, "m", p1)
			h.beat("b", 2)
			h.describe(described{"a", "m", []partition{p0}}, described{"b", "m", []partition{p1}})
		}, ""},
		{"a group that was deleted begins anew", func(h *tale) {
			h.join("b", 7).leader = "b"
			h.lost(h.lose())
			h.join("a", 1)
			h.beat("a", 1)
		}, ""},
		{"a group of nothing begins anew where it is looked after", func(h *tale) {
			h.groups.expires = true
			h.join("b", 7).leader = "b"
			h.join("a", 1)
		}, ""},
		{"a static member in the place of another", func(h *tale) {
			h.join("a", 3, "a", "i1-x")
			h.join("i1-x", 3)
			h.join("i1-y", 3)
			h.allot(3, "m", map[string][]partition{"a": {p0}, "i1-x": {p1}})
			h.share("i1-x", 3, "m", p1)
			h.share("i1-y", 3, "m", p1)
			h.beat("i1-y", 3)
		}, ""},
		{"a heartbeat on its way as the next generation is", func(h *tale) {
			h.join("a", 1)
			h.beat("a", 1)
			h.join("a", 2)
			h.groups.acts[0].got = h.tick()
		}, ""},

		{"who has left is there for the next coordinator", func(h *tale) {
			h.join("a", 1)
			h.leave("a", 1)
			h.groups.anew = append(h.groups.anew, h.tick())
			h.beat("a", 1)
		}, ""},

		{"a generation falls", func(h *tale) {
			h.join("a", 2)
			h.join("a", 1)
		}, "6: a in generation 1 of g was let in after a in generation 2 of g had been"},
		{"a group with an offset begins anew", func(h *tale) {
			h.groups.expires = true
			h.acked(h.commit("c", as("b", 7), 1))
			h.join("b", 7).leader = "b"
			h.join("a", 1)
		}, "6: a in generation 1 of g was let in after b in generation 7 of g had been"},
		{"a group that refused to be deleted begins anew", func(h *tale) {
			h.join("a", 7)
			h.lose().refused = true
			h.join("a", 1)
		}, "6: a in generation 1 of g was let in after a in generation 7 of g had been"},
		{"two leaders", func(h *tale) {
			h.join("a", 1)
			h.join("b", 1).leader = "b"
		}, "6: generation 1 of g has the leader a to a, and b to b"},
		{"two protocols", func(h *tale) {
			h.join("a", 1)
			j := h.join("b", 1)
			j.protocol, j.offered = "sticky", []string{"sticky"}
		}, `6: generation 1 of g has the protocol "range" to a, and "sticky" to b`},
		{"a protocol that it has not", func(h *tale) {
			h.join("a", 1).offered = []string{"sticky"}
		}, `6: a in generation 1 of g was given the protocol "range", it offered ["sticky"]`},
		{"a member that its leader does not know", func(h *tale) {
			h.join("a", 1, "a")
			h.join("b", 1)
		}, "6: b in generation 1 of g is none of its members"},
		{"two sets of members", func(h *tale) {
			h.join("b", 1)
			h.join("a", 1, "a", "b")
			h.join("a", 1, "a")
		}, "6: b in generation 1 of g is none of its members"},

		{"a heartbeat of an old generation", func(h *tale) {
			h.join("a", 1)
			h.join("a", 2)
			h.beat("a", 1)
		}, "6: a heartbeat of a in generation 1 of g was taken after generation 2 had been handed out"},
		{"a heartbeat of one who has left", func(h *tale) {
			h.join("a", 1)
			h.leave("a", 1)
			h.beat("a", 1)
		}, "6: a heartbeat of a in generation 1 of g was taken after it had left"},
		{"a heartbeat of one whose place another has", func(h *tale) {
			h.join("i1-x", 1)
			h.join("i1-y", 1)
			h.beat("i1-x", 1)
		}, "6: a heartbeat of i1 (i1-x) in generation 1 of g was taken after i1-y had its place"},
		{"a heartbeat in a group that is deleted", func(h *tale) {
			h.join("a", 1)
			h.lost(h.lose())
			h.beat("a", 1)
		}, "6: a heartbeat of a in generation 1 of g was taken after the group had been deleted"},

		{"another's share", func(h *tale) {
			h.join("a", 2)
			h.join("b", 2)
			h.allot(2, "m", both)
			h.share("a", 2, "m", p1)
		}, "6: a in generation 2 of g was given [t/1] by m, which has another share for it"},
		{"a share of nobody's", func(h *tale) {
			h.join("a", 2)
			h.share("a", 2, "", p0)
		}, `6: a in generation 2 of g was given the share [t/0] of "", which no leader made`},
		{"a share of the generation before", func(h *tale) {
			h.join("a", 1)
			h.join("a", 2)
			h.allot(1, "m", both)
			h.share("a", 2, "m", p0)
		}, "6: a in generation 2 of g was given a share of m, which is of generation 1"},
		{"two allotments in one generation", func(h *tale) {
			h.join("a", 1)
			h.join("b", 1)
			h.allot(1, "m", both)
			h.allot(1, "n", both)
			h.share("a", 1, "m", p0)
			h.share("b", 1, "n", p1)
		}, "6: a in generation 1 of g has a share of m, and b in generation 1 of g of n"},
		{"two owners", func(h *tale) {
			h.join("a", 1)
			h.join("b", 1)
			h.allot(1, "m", map[string][]partition{"a": {p0}, "b": {p0}})
			h.share("a", 1, "m", p0)
			h.share("b", 1, "m", p0)
		}, "6: t/0 is both a in generation 1 of g's and b in generation 1 of g's"},
		{"shown with two allotments", func(h *tale) {
			h.join("a", 1)
			h.describe(described{"a", "m", nil}, described{"b", "n", nil})
		}, "6: g was shown with shares of m and of n"},
		{"shown with two owners", func(h *tale) {
			h.join("a", 1)
			h.describe(described{"a", "m", []partition{p0}}, described{"b", "m", []partition{p0}})
		}, "6: t/0 was shown as both a's and b's in g"},

		{"settled, and joins again", func(h *tale) {
			h.join("a", 1)
			h.groups.settled = h.tick()
			h.join("a", 1)
		}, "calm: a in generation 1 of g had to join again"},
		{"settled, and expelled", func(h *tale) {
			h.groups.settled = h.tick()
			h.groups.expulsions = append(h.groups.expulsions, as("a", 1))
		}, "calm: a in generation 1 of g was expelled"},
	})
}

func TestCheckOffsets(t *testing.T) {
	nobody := standing{group: "g", generation: -1}
	checkTales(t, []told{
		{"committed, shown", func(h *tale) {
			h.recall("", -1)
			h.acked(h.commit("c", as("a", 1), 5))
			h.recall("c", 5)
			h.acked(h.commit("d", as("a", 1), 9))
			h.recall("d", 9)
			h.list("g")
		}, ""},
		{"not acknowledged, shown or not", func(h *tale) {
			h.commit("c", as("a", 1), 5)
			h.recall("", -1)
			h.recall("c", 5)
			h.commit("d", as("a", 1), 6)
			h.recall("c", 5)
		}, ""},
		{"two on their way, in either order", func(h *tale) {
			x := h.commit("c", nobody, 5)
			y := h.commit("d", nobody, 9)
			h.acked(x)
			h.acked(y)
			h.recall("c", 5)
		}, ""},
		{"lost, and shown no more", func(h *tale) {
			h.acked(h.commit("c", as("a", 1), 5))
			h.lost(h.lose())
			h.recall("", -1)
			h.list()
			h.acked(h.commit("d", as("a", 1), 2))
			h.recall("d", 2)
		}, ""},
		{"perhaps lost", func(h *tale) {
			h.acked(h.commit("c", as("a", 1), 5))
			h.lose()
			h.recall("c", 5)
			h.recall("", -1)
		}, ""},
		{"set back by nobody's member", func(h *tale) {
			h.acked(h.commit("c", as("a", 1), 5))
			h.recall("c", 5)
			h.acked(h.commit("d", nobody, 2))
			h.recall("d", 2)
		}, ""},
		{"set back by a commit that its member had given up", func(h *tale) {
			late := h.commit("c", as("a", 1), 5)
			h.acked(h.commit("d", as("a", 1), 9))
			h.recall("d", 9)
			h.recall("c", 5)
			h.acked(late)
		}, ""},

		{"shown, committed by nobody", func(h *tale) {
			h.commit("c", as("a", 1), 5)
			h.recall("e", 5)
		}, `6: t/0 in g: r was shown 5 by "e", which nobody had committed`},
		{"shown before it was sent", func(h *tale) {
			h.recall("c", 5)
			h.commit("c", as("a", 1), 5)
		}, `6: t/0 in g: r was shown 5 by "c", which nobody had committed`},
		{"shown, though refused", func(h *tale) {
			h.commit("c", as("a", 1), 5).refused = true
			h.recall("c", 5)
		}, "6: t/0 in g: r was shown 5 by c, which was refused"},
		{"another offset", func(h *tale) {
			h.commit("c", as("a", 1), 5)
			h.recall("c", 6)
		}, "6: t/0 in g: r was shown 6 of epoch -1 by c, which is 5 of epoch -1"},
		{"another epoch", func(h *tale) {
			h.commit("c", as("a", 1), 5)
			h.recall("c", 5).epoch = 3
		}, "6: t/0 in g: r was shown 5 of epoch 3 by c, which is 5 of epoch -1"},
		{"acknowledged, and forgotten", func(h *tale) {
			h.acked(h.commit("c", as("a", 1), 5))
			h.recall("", -1)
		}, "6: t/0 in g: r was shown none (moments 3 to 4), c had been acknowledged"},
		{"none between twice the same", func(h *tale) {
			h.commit("c", as("a", 1), 5)
			h.recall("c", 5)
			h.recall("", -1)
			h.recall("c", 5)
		}, "6: t/0 in g: c (moments 3 and 6) and none (moments 5 and 4) are in no order"},
		{"an older one after a newer", func(h *tale) {
			h.acked(h.commit("c", as("a", 1), 5))
			h.acked(h.commit("d", as("a", 1), 9))
			h.recall("c", 5)
		}, "6: t/0 in g: c (moments 2 and 5) and d (moments 4 and 3) are in no order"},
		{"back and forth", func(h *tale) {
			x, y := h.commit("c", nobody, 5), h.commit("d", nobody, 5)
			h.recall("c", 5)
			h.recall("d", 5)
			h.recall("c", 5)
			h.recall("d", 5)
			h.acked(x)
			h.acked(y)
		}, "6: t/0 in g: c (moments 4 and 7) and d (moments 6 and 9) are in no order"},
		{"deleted, and there again", func(h *tale) {
			h.acked(h.commit("c", as("a", 1), 5))
			h.lost(h.lose())
			h.recall("c", 5)
		}, "6: t/0 in g: c (moments 2 and 5) and delete g (moments 4 and 3) are in no order"},
		{"set back by a member of another generation", func(h *tale) {
			x := h.commit("c", as("a", 1), 9)
			y := h.commit("d", as("b", 2), 5)
			h.recall("c", 9)
			h.recall("d", 5)
			h.acked(x)
			h.acked(y)
		}, "6: t/0 in g: 9 was shown, by c, then 5, by d"},
		{"an old generation's commit taken", func(h *tale) {
			h.join("a", 1)
			h.join("b", 2)
			x := h.commit("c", as("a", 1), 9)
			h.acked(x)
			h.groups.acts = append(h.groups.acts, act{x.standing, "commit c", x.sent, x.got})
		}, "6: commit c of a in generation 1 of g was taken after generation 2 had been handed out"},

		{"nobody's commit while the group has a member", func(h *tale) {
			h.join("a", 1)
			h.beat("a", 1)
			h.acked(h.commit("c", nobody, 5))
			h.beat("a", 1)
		}, "6: commit c of no member was taken while a was in g"},
		{"an earlier generation's commit taken after a later one looked", func(h *tale) {
			h.acked(h.commit("c", as("a", 1), 5))
			x := h.commit("d", as("a", 1), 6)
			h.join("b", 2)
			h.recall("c", 5)
			h.acked(x)
		}, "6: t/0 in g: d, of generation 1, was taken after generation 2 had been handed out"},
		{"an earlier generation's commit taken before a later one looks", func(h *tale) {
			h.acked(h.commit("c", as("a", 1), 5))
			x := h.commit("d", as("a", 1), 6)
			h.recall("c", 5)
			h.join("b", 2)
			h.acked(x)
			h.recall("d", 6)
		}, ""},

		{"not listed", func(h *tale) {
			h.acked(h.commit("c", as("a", 1), 5))
			h.list("other")
		}, "6: g is not listed, commit c had been acknowledged"},
		{"deleted, and listed", func(h *tale) {
			h.acked(h.commit("c", as("a", 1), 5))
			h.lost(h.lose())
			h.list("g")
		}, "6: g is listed after it had been deleted"},
	})
}
