package sim

import (
	"fmt"
	"slices"
	"time"
)

// addTeams draws the groups of a scenario, their members, and who looks at them.
func (s *scenario) addTeams(d *dice) {
	s.history.groups.expires = d.chance(0.3)
	for i := range d.between(1, 2) {
		t := &team{group: fmt.Sprintf("team%d", i), cooperative: d.chance(0.4), protocols: []string{"range", "roundrobin", "sticky"}}
		if t.cooperative {
			t.protocols = []string{"cooperative-sticky"}
		}
		if !s.orderly {
			t.fragile = d.chance(0.4)
		}
		from := d.below(len(s.topics))
		for _, topic := range s.topics[from:d.between(from+1, len(s.topics))] {
			for n := range topic.NumPartitions {
				t.parts = append(t.parts, partition{topic.Topic, n})
			}
		}
		t.follow = func(m *member) {
			s.after(s.dice.duration(0, 6*time.Second), func() {
				if !s.healed {
					s.addMember(t, m.habits).begin()
				}
			})
		}
		s.teams = append(s.teams, t)
		for n := range d.between(1, 4) {
			s.addMember(t, s.drawHabits(d, t, n))
		}
	}
	s.addGroupAdmin(d, s.teams)
	// And groups in which nobody ever is: one of them of topics that come and go.
	loners := []*team{{group: "loner", parts: s.parts, fragile: true}}
	if s.janitor != nil {
		scratch := &team{group: "scratcher", fragile: true}
		for i := range int32(janitorsTopics) {
			for n := range int32(3) {
				scratch.parts = append(scratch.parts, partition{fmt.Sprintf("%s%d", janitorsTopic, i), n})
			}
		}
		loners = append(loners, scratch)
	}
	if len(loners) > 1 || d.chance(0.4) {
		s.addGroupAdmin(d, loners)
	}
}

func (s *scenario) addGroupAdmin(d *dice, teams []*team) {
	name := fmt.Sprintf("groupadmin%d", len(s.groupAdmins)+1)
	a := &groupAdmin{
		world: s.world, history: &s.history, guide: newGuide(s.world, name, s.hosts), dice: newDice(s.seed, name, 0),
		name: name, teams: teams, pace: d.duration(200*time.Millisecond, time.Second),
	}
	a.line = &groupLine{guide: a.guide, dice: a.dice, group: teams[0].group, version: int16(d.between(0, 6)), number: 1}
	if len(s.hosts) == 1 { // it asks one coordinator of all groups
		s.groupAdmins = append(s.groupAdmins, a)
	}
}

// holdTime is how long an agent that knows of no leader yet lets clients wait.
const holdTime = 8 * time.Second

// drawHabits makes a member's habits: of a client of some age.
func (s *scenario) drawHabits(d *dice, t *team, n int) habits {
	h := habits{
		session: d.duration(2*time.Second, 7*time.Second), rebalance: d.duration(2*time.Second, 8*time.Second),
		heartbeat: d.duration(300*time.Millisecond, time.Second), pace: d.duration(200*time.Millisecond, 2*time.Second),
		wild: !s.orderly && d.chance(0.7),
	}
	if s.steady && len(s.hosts) > 1 {
		h.session += holdTime // its coordinator may be ready before the one that it asks for it
	}
	first := d.below(len(t.protocols))
	h.protocols = slices.Concat(t.protocols[first:], t.protocols[:first])
	h.versions = [...]memberVersions{
		{find: 0, join: 0, sync: 0, heartbeat: 0, leave: 0, commit: 2, fetch: 1},
		{find: 1, join: 2, sync: 1, heartbeat: 1, leave: 1, commit: 3, fetch: 3},
		{find: 2, join: 3, sync: 2, heartbeat: 2, leave: 2, commit: 5, fetch: 5},
		{find: 3, join: 5, sync: 3, heartbeat: 3, leave: 2, commit: 7, fetch: 5},
		{find: 3, join: 7, sync: 5, heartbeat: 4, leave: 4, commit: 8, fetch: 7},
		{find: 4, join: 9, sync: 5, heartbeat: 4, leave: 5, commit: 9, fetch: 9},
		{find: 6, join: 9, sync: 5, heartbeat: 4, leave: 5, commit: 10, fetch: 10},
	}[d.below(7)]
	if h.versions.join >= 5 && d.chance(0.7) {
		h.instance = fmt.Sprintf("%s-i%d", t.group, n)
	}
	if t.cooperative {
		h.versions.join = max(h.versions.join, 4)
	}
	return h
}

func (s *scenario) addMember(t *team, h habits) *member {
	s.clients++
	name := fmt.Sprintf("member%d", s.clients)
	m := &member{
		world: s.world, history: &s.history, guide: newGuide(s.world, name, s.hosts),
		team: t, name: name, dice: newDice(s.seed, name, 0), habits: h,
	}
	m.guide.timeout = h.session / 3 // so that a dead connection costs no session
	m.line = &groupLine{guide: m.guide, dice: m.dice, group: t.group, version: h.versions.find, number: 2}
	m.late = &groupLine{guide: m.guide, dice: m.dice, group: t.group, version: h.versions.find, number: 3}
	t.members = append(t.members, m)
	return m
}

// settle waits until all members are in: from then on they are to stay so.
func (s *scenario) settle() {
	s.within(healTime, "all members have a share", func() bool { return s.teamsStand(0) })
	s.history.groups.settled = s.history.tick()
}

// calmTeams ends what members do in the wild.
func (s *scenario) calmTeams() {
	s.healed = true
	for _, t := range s.teams {
		for _, m := range t.members {
			m.habits.wild = false
			if m.asleep {
				m.wake()
			}
		}
		t.fragile = false
	}
}

// teamsStand says whether every member that is left has its share of the
// newest generation, and has committed since.
func (s *scenario) teamsStand(since moment) bool {
	for _, t := range s.teams {
		generation := int32(-1)
		for _, m := range t.members {
			switch {
			case m.stopped:
				continue
			case m.stable == 0 || len(m.owned) > 0 && m.lastCommit < since:
				return false
			case generation >= 0 && generation != m.generation:
				return false
			}
			generation = m.generation
		}
	}
	return true
}

// teamsAtEnd says whether the teams have committed all that there is.
func (s *scenario) teamsAtEnd(since moment) bool {
	for _, t := range s.teams {
		owned, members := 0, 0
		for _, m := range t.members {
			if m.stopped {
				continue
			}
			members++
			owned += len(m.owned)
			if !m.atEnd(since) {
				return false
			}
		}
		if members > 0 && owned != len(t.parts) {
			return false
		}
	}
	return true
}

// atEnd says whether a member has read all that it owns, and committed that.
func (m *member) atEnd(since moment) bool {
	if len(m.owned) == 0 {
		return true
	}
	if m.reader == nil || !m.reader.caughtUp(since) {
		return false
	}
	return !slices.ContainsFunc(m.owned, func(p partition) bool { return m.committed[p] != m.reader.next[p] })
}

// teamsAgain demands, after the last restart, that members are as they were.
func (s *scenario) teamsAgain() {
	again := s.history.tick()
	s.within(healTime, "members are in a stable generation again, and commit", func() bool { return s.teamsStand(again) })
	for _, a := range s.groupAdmins {
		a.pace /= 4
	}
	s.pass(time.Second) // in which everything is looked at once more
	for _, a := range s.groupAdmins {
		a.stopped = true
	}
	for _, t := range s.teams {
		for _, m := range t.members {
			m.end()
		}
	}
}
