package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/agent"
)

// healTime is how long after the end of all faults every producer is
// acknowledged and every consumer at the end.
const healTime = 30 * time.Second

// maxFlushInterval bounds the agents' flush intervals.
const maxFlushInterval = 2 * time.Second

// calmTime is how long a calm world works.
const calmTime = 3 * time.Minute

// passTime is how long a new reader may take for everything there is, object by object.
const passTime = 10 * time.Minute

// agentOptions are those of the agents in one scenario.
type agentOptions struct {
	flush             agent.Flush
	memory            agent.Memory
	checkpointEntries int
	shared            bool // the coordinator, as far as the agent knows
}

// A scenario is a world with one agent after another, clients, and what
// befalls them. All of it follows from the seed.
type scenario struct {
	*world
	dice    *dice
	shocks  *dice
	history history
	options agentOptions
	calm    bool            // nothing goes wrong, and nothing happens
	orderly bool            // nothing goes wrong, and agents end only as they are asked to
	steady  bool            // that too, but nothing else happens
	slow    float64         // of the coordinator, as a steady world's agents end
	drill   func(*scenario) // what befalls the agents instead of anything; nil: anything does

	hosts     []string    // of agents, whether up or not
	paths     *dice       // of what is between them
	times     *dice       // of what time it is there
	agents    []*node     // the present ones, by host; perhaps dead
	keep      bool        // it is followed by another when it ends
	replicas  [][2]string // settings of the cluster
	clients   int
	topics    []kmsg.CreateTopicsRequestTopic
	parts     []partition
	producers []writer
	consumers []*consumer
	janitor   *janitor // nil: there is none
	eraser    *eraser  // nil: there is none

	teams       []*team
	groupAdmins []*groupAdmin
	expired     []*loss // not over
	healed      bool    // all faults have ended
}

// A writer is a producer of some kind.
type writer interface {
	begin()
	stop() // making batches
	decided() bool
	acknowledgedSince(moment) bool
}

// A mood is what may happen in a scenario.
type mood int

const (
	stormy mood = iota // anything; in one seed of ten no faults
	calm               // nothing
	steady             // agents follow one another, each when the last has ended in its own time
)

func (m mood) String() string { return [...]string{"stormy", "calm", "steady"}[m] }

// newStage is a scenario with hosts, and nothing that happens yet.
func newStage(seed uint64, hosts []string) *scenario {
	s := &scenario{
		world: newWorld(seed), dice: newDice(seed, "scenario", 0), shocks: newDice(seed, "shocks", 0), paths: newDice(seed, "paths", 0), times: newDice(seed, "times", 0),
		hosts: hosts, agents: make([]*node, len(hosts)),
	}
	s.history.groups.several = len(hosts) > 1
	s.world.died, s.world.heard = s.follow, s.shock
	return s
}

// newScenario draws what the seed is about.
func newScenario(seed uint64, m mood) *scenario {
	s := newStage(seed, agentHosts(newDice(seed, "agents", 0)))
	s.calm, s.steady = m == calm, m == steady
	d := s.dice
	s.orderly = m != stormy || d.chance(0.1)
	if s.steady {
		s.slow = upTo(d, .3)
	}
	s.history.calm, s.history.orderly = s.calm, s.orderly && s.slow == 0
	s.options = agentOptions{
		flush: agent.Flush{
			Bytes: d.between(1, 64) << 10, Uploads: d.between(1, 4), Eager: d.chance(0.5),
			Wait: d.duration(time.Millisecond, 50*time.Millisecond), Interval: d.duration(50*time.Millisecond, maxFlushInterval),
		},
		memory:            agent.Memory{Unflushed: d.between(64, 256) << 10, Tail: d.between(8, 1024) << 10, Cache: d.between(16, 1024) << 10},
		checkpointEntries: d.between(5, 50),
	}
	s.options.shared = len(s.hosts) > 1 || m == stormy && newDice(seed, "shared", 0).chance(0.3)
	s.replicas = s.drawReplicas()
	for i := range d.between(1, 3) {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = fmt.Sprintf("t%d", i), int32(d.between(1, 3)), -1
		s.topicSettings(&t)
		s.topics = append(s.topics, t)
		for n := range t.NumPartitions {
			s.parts = append(s.parts, partition{t.Topic, n})
		}
	}
	for range d.between(1, 4) {
		s.addProducer()
	}
	for range d.between(1, 3) {
		s.addConsumer("consumer", false)
	}
	if m == stormy && d.chance(0.4) {
		s.janitor = &janitor{guide: newGuide(s.world, "janitor", s.hosts), world: s.world, history: &s.history, dice: newDice(seed, "janitor", 0)}
	}
	s.addIdempotents(newDice(seed, "idempotents", 0))
	s.addTeams(newDice(seed, "teams", 0))
	return s
}

func (s *scenario) addProducer() *producer {
	d := s.dice
	s.clients++
	name := fmt.Sprintf("producer%d", s.clients)
	p := &producer{
		guide: newGuide(s.world, name, s.hosts), world: s.world, history: &s.history,
		name: name, number: uint64(s.clients), dice: newDice(s.seed, name, 0),
		partitions: s.some(), acks: [...]int16{-1, -1, -1, -1, 1, 0}[d.below(6)], retries: !s.calm && d.chance(0.4),
		version: [...]int16{3, 7, 8, 9, 12, 13}[d.below(6)],
		conns:   d.between(1, 3), inFlight: d.between(1, 6),
		pace: d.duration(10*time.Millisecond, 100*time.Millisecond), maxRecords: d.between(1, 10),
	}
	if s.calm {
		p.pace *= 5 // for it goes on for long
	}
	s.producers = append(s.producers, p)
	return p
}

// addConsumer adds one that reads some partitions, or one that reads all of
// them once.
func (s *scenario) addConsumer(kind string, passing bool) *consumer {
	d := s.dice
	s.clients++
	name := fmt.Sprintf("%s%d", kind, s.clients)
	c := &consumer{
		guide: newGuide(s.world, name, s.hosts), world: s.world, history: &s.history,
		name: name, dice: newDice(s.seed, name, 0), partitions: s.parts, passing: passing,
		version: [...]int16{4, 7, 11, 12, 13, 16}[d.below(6)],
		maxWait: d.duration(50*time.Millisecond, time.Second), maxBytes: int32(d.between(1, 256) << 10),
		rest: d.duration(0, 50*time.Millisecond),
	}
	if c.version >= 7 && d.chance(0.5) && len(s.hosts) == 1 { // a session is with one host
		c.session = &session{asked: map[partition]int64{}}
	}
	if !passing {
		c.partitions = s.some()
		s.consumers = append(s.consumers, c)
	}
	return c
}

// some is a part of the partitions, at least one, in order.
func (s *scenario) some() []partition {
	from := s.dice.below(len(s.parts))
	return s.parts[from:s.dice.between(from+1, len(s.parts))]
}

// follow lets another node follow one that has ended, at its host.
func (s *scenario) follow(n *node) {
	i := slices.Index(s.agents, n)
	if i < 0 || !s.keep {
		return
	}
	s.after(s.dice.duration(10*time.Millisecond, 2*time.Second), func() {
		if s.agents[i] == n && s.keep {
			s.boot(i)
		}
	})
}

// boot starts an agent at one of the hosts.
func (s *scenario) boot(i int) {
	s.groupsAnew()
	s.agents[i] = s.world.boot(s.hosts[i], s.options.program)
}

// groupsAnew notes that an agent may begin to coordinate anew, from what is stored.
func (s *scenario) groupsAnew() {
	s.history.groups.anew = append(s.history.groups.anew, s.history.tick())
}

func (s *scenario) bootAll() {
	for i := range s.hosts {
		s.boot(i)
	}
}

// play is the whole of it.
func (s *scenario) play() {
	s.keep = true
	s.bootAll()
	defer s.end()
	if !s.createTopics() || !s.configure() {
		return
	}
	s.beginClients()
	switch {
	case s.calm:
		s.settle()
		s.pass(calmTime)
	case s.steady:
		s.settle()
		for range 3 {
			s.pass(s.dice.duration(100*time.Millisecond, 5*time.Second))
			s.weather.coordinator.slow = s.slow
			s.pass(s.dice.duration(0, 100*time.Millisecond))
			s.restart()
			s.weather = fair()
		}
	case s.drill != nil:
		s.drill(s)
	default:
		for range s.dice.between(2, 4) {
			s.episode()
		}
	}
	s.heal()
	s.readAll("first")
	s.restart()
	s.readAll("second")
	s.teamsAgain()
	s.keep = false
	for _, n := range s.agents {
		n.stop()
	}
	if !s.within(healTime, "all agents end", s.allGone) {
		return
	}
	s.wrong = append(s.wrong, s.store.audit(&s.history)...)
}

func (s *scenario) beginClients() {
	for _, p := range s.producers {
		p.begin()
	}
	for _, c := range s.consumers {
		c.begin()
	}
	if s.janitor != nil {
		s.janitor.begin()
	}
	if s.eraser != nil {
		s.eraser.begin()
	}
	for _, t := range s.teams {
		for _, m := range t.members {
			m.begin()
		}
	}
	for _, a := range s.groupAdmins {
		a.begin()
	}
}

// end leaves nobody behind: whoever does not end with its context hangs the test.
func (s *scenario) end() {
	s.keep = false
	for _, n := range s.agents {
		n.crash()
	}
	wrong := s.wrong
	s.wrong = nil // so that run goes on
	defer func() { s.wrong = append(wrong, s.wrong...) }()
	s.run(s.allGone, time.Minute)
}

// endFaults ends those of stores, networks and paths.
func (s *scenario) endFaults() {
	s.weather = fair()
	clear(s.partings)
	clear(s.slowed)
	clear(s.offline)
	clear(s.throttled)
}

// heal ends all faults, and waits until everybody has what they want.
func (s *scenario) heal() {
	s.endFaults()
	for _, n := range s.agents {
		n.resume()
	}
	s.tracef("faults end")
	healed, at := s.history.tick(), s.now
	s.calmTeams()
	s.expiredSoon()
	s.addProducer().begin()
	s.within(healTime, "producers are acknowledged", func() bool { return s.allAcknowledged(healed) })
	for _, p := range s.producers {
		p.stop()
	}
	if s.janitor != nil {
		s.janitor.stopped = true
	}
	if s.eraser != nil {
		s.eraser.stopped = true
	}
	s.within(healTime, "all that was sent is decided", s.allDecided)
	if s.orderly {
		s.pass(maxFlushInterval + time.Second) // until what acks=1 acknowledged can be seen
	}
	end := s.history.tick()
	s.within(healTime, "consumers are at the end", func() bool { return s.allCaughtUp(end) })
	s.within(at.Add(healTime).Sub(s.now), "members are in a stable generation, and commit", func() bool { return s.teamsStand(healed) })
	s.within(healTime, "groups have committed all that there is", func() bool { return s.teamsAtEnd(end) })
}

// within demands that something comes to be.
func (s *scenario) within(limit time.Duration, what string, done func() bool) bool {
	if !s.run(done, limit) && !(s.uncleanSoon() && s.run(done, uncleanTime)) {
		s.failf("liveness: %v passed before %s", limit, what)
		return false
	}
	return true
}

func (s *scenario) allDecided() bool {
	return !slices.ContainsFunc(s.producers, func(p writer) bool { return !p.decided() })
}

func (s *scenario) allAcknowledged(since moment) bool {
	return !slices.ContainsFunc(s.producers, func(p writer) bool { return !p.acknowledgedSince(since) })
}

func (s *scenario) allCaughtUp(since moment) bool {
	for _, c := range s.consumers {
		if !c.caughtUp(since) {
			return false
		}
	}
	return true
}

// readAll lets a new reader read everything.
func (s *scenario) readAll(name string) {
	c := s.addConsumer(name, true)
	c.begin()
	s.within(passTime, name+" reader has read all", func() bool { return c.stopped })
	c.stopped = true
}

// restart ends the agent, one way or another, and lets another follow, at
// once or after a month.
func (s *scenario) restart() {
	if s.dice.chance(0.5) {
		s.monthOff()
		return
	}
	before := slices.Clone(s.agents)
	hit := s.hit()
	for _, i := range hit {
		s.endNode(s.agents[i])
	}
	s.within(healTime, "other agents follow", func() bool {
		return !slices.ContainsFunc(hit, func(i int) bool { return s.agents[i] == before[i] })
	})
}

func (s *scenario) endNode(n *node) {
	if s.orderly || s.dice.chance(0.5) {
		n.stop()
	} else {
		n.crash()
	}
}

// monthOff ends the agent and lets a month, or a day and an hour, pass without one.
func (s *scenario) monthOff() {
	s.keep = false
	for _, n := range s.agents {
		s.endNode(n)
	}
	if !s.within(healTime, "all agents end", s.allGone) {
		for _, n := range s.agents {
			n.crash()
		}
	}
	off := []time.Duration{25 * time.Hour, 31 * 24 * time.Hour}[s.dice.below(2)]
	s.tracef("switched off for %v", off)
	s.skip(off)
	if off > offsetsRetention && s.history.groups.expires {
		s.expire()
	}
	s.keep = true
	s.bootAll()
}

// offsetsRetention is how long groups' offsets are kept (offsets.retention.minutes).
const offsetsRetention = 7 * 24 * time.Hour

// expire notes that offsets of groups may be gone from now on, until this has
// been looked after.
func (s *scenario) expire() {
	l := &loss{what: "a month off", partition: -1, ends: true, sent: s.history.tick()}
	s.history.groups.losses = append(s.history.groups.losses, l)
	s.expired = append(s.expired, l)
}

// expiredSoon notes, a while after the faults, that what had to go is gone.
func (s *scenario) expiredSoon() {
	s.after(10*time.Second, func() {
		for _, l := range s.expired {
			l.over = s.history.tick()
		}
		s.expired = nil
	})
}
