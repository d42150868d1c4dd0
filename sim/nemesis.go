package sim

import "time"

// An episode is some bad weather, in which things happen to the agent, and
// then a while without.
func (s *scenario) episode() {
	d := s.dice
	s.weather = s.storm()
	s.tracef("weather: %+v", s.weather)
	s.partHosts()
	s.setClocks()
	for range d.between(1, 3) {
		s.pass(d.duration(50*time.Millisecond, 3*time.Second))
		s.mishap()
	}
	s.pass(d.duration(0, 2*time.Second))
	s.weather = fair()
	s.mendHosts()
	if d.chance(0.7) {
		s.pass(d.duration(0, 3*time.Second))
	}
}

// storm draws some weather: most of the time one thing is bad, sometimes all.
func (s *scenario) storm() weather {
	d := s.dice
	w := fair()
	if s.orderly {
		return w
	}
	if d.chance(0.6) {
		s.trouble(&w.coordinator)
	}
	if d.chance(0.5) {
		s.trouble(&w.bucket)
	}
	if d.chance(0.3) {
		w.network.cut, w.network.stall = upTo(d, .02), upTo(d, .1)
		w.network.split, w.network.refuse = upTo(d, .3), upTo(d, .3)
	}
	if d.chance(0.3) {
		w.crash = upTo(d, .05)
	}
	if d.chance(0.3) {
		w.shock = upTo(d, .05)
	}
	if d := s.paths; len(s.hosts) > 1 && d.chance(0.5) {
		w.links.cut, w.links.stall, w.links.refuse = upTo(d, .02), upTo(d, .1), upTo(d, .3)
		if d.chance(0.3) {
			w.links.usual *= time.Duration(d.between(2, 50))
		}
	}
	return w
}

// partHosts keeps some agents from others, one way or both, or from the stores.
func (s *scenario) partHosts() {
	d := s.paths
	if s.orderly || len(s.hosts) == 1 || d.chance(0.5) {
		return
	}
	for range d.between(1, 3) {
		from := d.below(len(s.hosts))
		to := (from + d.between(1, len(s.hosts)-1)) % len(s.hosts)
		s.part(s.hosts[from], s.hosts[to])
		if d.chance(0.6) {
			s.part(s.hosts[to], s.hosts[from])
		}
		if d.chance(0.2) {
			s.drag(s.hosts[to], s.hosts[from], d.duration(0, 2*time.Second))
		}
	}
	if host := s.hosts[d.below(len(s.hosts))]; d.chance(0.3) {
		s.tracef("%s cannot reach the stores", host)
		s.offline[host] = true
	}
	if host := s.hosts[d.below(len(s.hosts))]; d.chance(0.2) {
		s.tracef("%s cannot append", host)
		s.throttled[host] = true
	}
}

// setClocks has it be another time at some host.
func (s *scenario) setClocks() {
	d := s.times
	if host := s.hosts[d.below(len(s.hosts))]; !s.orderly && d.chance(0.3) {
		s.jump(host, d.duration(-mostJump, mostJump))
	}
}

// mendHosts ends that, most of the time.
func (s *scenario) mendHosts() {
	if len(s.hosts) == 1 || s.paths.chance(0.3) {
		return
	}
	for _, from := range s.hosts {
		for _, to := range s.hosts {
			if s.parted(from, to) {
				s.mend(from, to)
			}
			s.drag(from, to, 0)
		}
	}
	clear(s.offline)
	clear(s.throttled)
}

// trouble draws the chances of one store's faults.
func (s *scenario) trouble(t *trouble) {
	d := s.dice
	t.slow, t.fail, t.stall = upTo(d, .1), upTo(d, .5), upTo(d, .02)
	t.lost, t.late, t.never = upTo(d, .3), upTo(d, .3), upTo(d, .3)
	if d.chance(0.2) {
		t.usual *= time.Duration(d.between(2, 20))
	}
}

// upTo is a chance up to most, or none.
func upTo(d *dice, most float64) float64 {
	if d.chance(0.5) {
		return 0
	}
	return most * float64(d.below(1000)) / 1000
}

// mishap is one thing that happens to one, some or all of the agents.
func (s *scenario) mishap() {
	d := s.dice
	var hit []*node
	for _, i := range s.hit() {
		if n := s.agents[i]; !n.dead {
			hit = append(hit, n)
		}
	}
	if len(hit) == 0 {
		return
	}
	switch roll := d.below(10); {
	case roll < 4 && !s.orderly:
		each(hit, (*node).crash)
	case roll < 6:
		// Others take over from one that is silent: it loses what nobody waits for.
		s.history.orderly = s.history.orderly && len(s.hosts) == 1
		each(hit, (*node).pause)
		s.pass(d.duration(100*time.Millisecond, 8*time.Second))
		each(hit, (*node).resume)
		s.groupsAnew()
	case roll < 8:
		each(hit, (*node).stop)
	case roll < 9:
		s.monthOff()
	}
}

// shock ends an agent, perhaps, as a client hears something: what it was told
// has to be there for the next one.
func (s *scenario) shock() {
	if !s.shocks.chance(s.weather.shock) {
		return
	}
	n := s.agents[0]
	if len(s.agents) > 1 {
		n = s.agents[s.shocks.below(len(s.agents))]
	}
	n.crash()
}
