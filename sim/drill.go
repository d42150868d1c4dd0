package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/internal/planted"
)

// A drill is what befalls agents so that one planted bug comes out soon. The
// same without the bug goes well.
type drill struct {
	bug      planted.Name
	signs    string // the first characters of what shows it
	replicas int
	session  time.Duration // of the group's members, who wait for an answer for a third of it
	rounds   int
	round    func(s *scenario, shard int, leader *node, replicas []*node)
}

const short = 3 * time.Second

var drills = []drill{
	{planted.AckBeforeHeld, "12", 2, short, 3, (*scenario).leaderDiesAheadOfReplicas},
	{planted.NoEpochCheck, "12", 2, short, 3, (*scenario).leaderHasNoNews},
	{planted.LeadWithoutTail, "12", 2, short, 4, (*scenario).leaderDies},
	{planted.TakeOverAlone, "12", 3, short, 4, (*scenario).twoLeadersDie},
	{planted.JoinWithGap, "12", 3, short, 3, (*scenario).onlyTheNewReplicaLives},
	{planted.AckByOldISR, "12", 3, short, 3, (*scenario).onlyTheNewReplicaLives},
	{planted.ShrinkUnflushed, "12", 2, short, 4, (*scenario).loneLeaderDies},
	{planted.LoneAcks, "12", 1, short, 3, (*scenario).leaderDies},
	{planted.DropBeforeAppend, "12", 2, short, 3, (*scenario).leaderDies},
	{planted.RestartedIsSame, "12", 2, short, 3, (*scenario).wholeISRDies},
	{planted.ReuseOffsets, "2", 2, short, 3, (*scenario).wholeISRDies},
	{planted.FetchAboveHigh, "12", 2, short, 3, (*scenario).leaderDiesAheadOfReplicas},
	{planted.DeposedAnswers, "2", 2, short, 4, (*scenario).leaderSleeps},
	{planted.GoOnAfterLoss, "23", 1, short, 6, (*scenario).leaderWakesSlowly},
	{planted.UncleanWhileHeard, "8", 2, short, 4, (*scenario).heirDies},
	{planted.DeposedCommits, "6", 2, 36 * time.Second, 4, (*scenario).coordinatorHasNoNews},
}

// newDrill makes the world of a drill: three agents, one partition, producers
// that want everything acknowledged, readers, and a group.
func newDrill(seed uint64, of drill) *scenario {
	s := newStage(seed, []string{"agent", "agent2", "agent3"})
	s.clocks.drift = 0 // each drill is timed by the leases
	s.options = agentOptions{
		flush:             agent.Flush{Bytes: 1 << 20, Uploads: 2, Wait: 20 * time.Millisecond, Interval: maxFlushInterval},
		memory:            agent.Memory{Unflushed: 8 << 20, Tail: 1 << 20, Cache: 1 << 20},
		checkpointEntries: 50,
		shared:            true,
	}
	s.replicas = replicaSettings(of.replicas, 5000, 1000)
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = "t0", 1, -1
	s.topics, s.parts = append(s.topics, t), append(s.parts, partition{"t0", 0})
	for range 2 {
		p := s.addProducer()
		p.acks, p.pace, p.inFlight, p.retries = -1, 25*time.Millisecond, 5, false
	}
	s.addConsumer("consumer", false)
	for range 3 {
		s.addConsumer("consumer", false).curious = true
	}
	group := &team{group: "team0", protocols: []string{"range"}, parts: s.parts}
	group.follow = func(*member) {}
	s.teams = append(s.teams, group)
	h := s.drawHabits(newDice(seed, "teams", 0), group, 0)
	h.wild, h.pace, h.session = false, 2*time.Second, of.session
	s.addMember(group, h)
	s.drill = func(s *scenario) {
		s.pass(3 * time.Second) // until replicas are in
		id := s.theShard()
		for range of.rounds {
			if leader, replicas := s.leads(id); leader != nil {
				of.round(s, id, leader, replicas)
			}
			s.endFaults()
			s.run(func() bool {
				leader, replicas := s.leads(id)
				return leader != nil && len(replicas) == of.replicas-1
			}, healTime+uncleanTime)
			s.pass(s.dice.duration(time.Second, 3*time.Second))
		}
	}
	return s
}

// theShard is that of the one partition there is.
func (s *scenario) theShard() (id int) {
	fold := topic.New()
	for _, e := range s.store.archive[topic.Ledger] {
		if f, err := ledger.DecodeFrame(e.Data); err == nil {
			_, _ = fold.Apply(ledger.Entry{Seq: e.Seq, Kind: f.Kind, TimeMS: f.TimeMS, Body: f.Body})
		}
	}
	for _, t := range fold.View().All() {
		id = shard.Of(siltstone.TopicPartition{Topic: t.ID})
	}
	return id
}

// office is the last Lead in a shard's ledger; nil if there is none.
func (s *scenario) office(id int) *shard.Lead { return lastLead(s.store.archive[shard.Ledger(id)]) }

// lastLead is the last Lead among entries of a log shard; nil if there is none.
func lastLead(entries []coordinator.Entry) *shard.Lead {
	for _, e := range slices.Backward(entries) {
		if l := leadIn(e); l != nil {
			return l
		}
	}
	return nil
}

// leadIn is the Lead that an entry of a log shard is; nil for another.
func leadIn(e coordinator.Entry) *shard.Lead {
	f, err := ledger.DecodeFrame(e.Data)
	if err != nil || f.Kind != shard.KindLead {
		return nil
	}
	body, err := shard.Decode(f.Kind, f.Body)
	if err != nil {
		return nil
	}
	return body.(*shard.Lead)
}

// leads are who leads a shard, and the rest of its ISR, as far as they live.
func (s *scenario) leads(id int) (leader *node, replicas []*node) {
	lead := s.office(id)
	if lead == nil {
		return nil, nil
	}
	for _, i := range lead.ISR {
		switch n := s.of(i); {
		case n == nil:
		case i == lead.Leader:
			leader = n
		default:
			replicas = append(replicas, n)
		}
	}
	return leader, replicas
}

// onLead does something at the instant at which a Lead of a shard lands that is looked for.
func (s *scenario) onLead(id int, looked func(*shard.Lead) bool, do func(*shard.Lead)) {
	s.store.landed = func(name string, e coordinator.Entry) {
		if name != shard.Ledger(id) {
			return
		}
		if l := leadIn(e); l != nil && looked(l) {
			s.store.landed = func(string, coordinator.Entry) {}
			s.soon(func() { do(l) })
		}
	}
}

// of is the agent of an incarnation that lives; nil if it does not.
func (s *scenario) of(i siltstone.Incarnation) *node {
	for _, n := range s.agents {
		if n.incarnation == i && !n.dead {
			return n
		}
	}
	return nil
}

// leaderDies in the middle of something.
func (s *scenario) leaderDies(_ int, leader *node, _ []*node) {
	s.pass(s.dice.duration(500*time.Millisecond, maxFlushInterval))
	leader.crash()
}

// leaderDiesAheadOfReplicas: what it sends them takes long.
func (s *scenario) leaderDiesAheadOfReplicas(_ int, leader *node, replicas []*node) {
	for _, r := range replicas {
		s.drag(leader.host, r.host, 700*time.Millisecond)
	}
	s.pass(s.dice.duration(600*time.Millisecond, 1500*time.Millisecond))
	leader.crash()
}

// leaderSleeps for so long that another leads, and goes on with what it was about.
func (s *scenario) leaderSleeps(_ int, leader *node, _ []*node) {
	leader.pause()
	s.pass(s.dice.duration(9*time.Second, 14*time.Second))
	leader.resume()
	s.pass(s.dice.duration(time.Second, 3*time.Second))
}

// leaderWakesSlowly is leaderSleeps, and then the coordinator takes its time.
func (s *scenario) leaderWakesSlowly(_ int, leader *node, _ []*node) {
	s.pass(s.dice.duration(0, maxFlushInterval))
	leader.pause()
	s.pass(s.dice.duration(11*time.Second, 14*time.Second))
	s.weather.coordinator.fast, s.weather.coordinator.usual = 300*time.Millisecond, 600*time.Millisecond
	leader.resume()
	s.pass(5 * time.Second)
}

// leaderHasNoNews: it cannot reach the stores for so long that another leads,
// and is then connected to its replicas anew.
func (s *scenario) leaderHasNoNews(_ int, leader *node, _ []*node) {
	s.offline[leader.host] = true
	s.pass(s.dice.duration(9*time.Second, 11*time.Second))
	for _, host := range s.hosts {
		if host != leader.host {
			s.part(host, leader.host)
			s.part(leader.host, host)
		}
	}
	s.pass(silence + time.Second)
	clear(s.partings)
	s.pass(5 * time.Second)
}

// twoLeadersDie: the second as soon as it has taken over.
func (s *scenario) twoLeadersDie(id int, leader *node, _ []*node) {
	s.onLead(id, func(l *shard.Lead) bool { return l.Leader != leader.incarnation && l.Leader != 0 }, func(l *shard.Lead) {
		if n := s.of(l.Leader); n != nil {
			n.crash()
		}
	})
	s.pass(s.dice.duration(500*time.Millisecond, maxFlushInterval))
	leader.crash()
}

// onlyTheNewReplicaLives: one that has just come into the ISR, over a slow
// link; the others die as it does.
func (s *scenario) onlyTheNewReplicaLives(id int, leader *node, replicas []*node) {
	if len(replicas) == 0 {
		return
	}
	gone := replicas[0]
	gone.crash()
	s.weather.coordinator.fast, s.weather.coordinator.usual = 200*time.Millisecond, 300*time.Millisecond
	s.drag(leader.host, gone.host, s.dice.duration(300*time.Millisecond, 400*time.Millisecond))
	s.onLead(id, func(l *shard.Lead) bool {
		n := s.of(l.Leader)
		return n != nil && len(l.ISR) == 3
	}, func(l *shard.Lead) {
		for _, i := range l.ISR {
			if n := s.of(i); n != nil && n.host != gone.host {
				n.crash()
			}
		}
	})
	s.pass(12 * time.Second)
}

// loneLeaderDies as soon as it is its own ISR, and the bucket takes its time.
func (s *scenario) loneLeaderDies(id int, leader *node, replicas []*node) {
	s.onLead(id, func(l *shard.Lead) bool { return len(l.ISR) == 1 && l.Leader == leader.incarnation }, func(*shard.Lead) { leader.crash() })
	s.weather.bucket.fast, s.weather.bucket.usual = 2*time.Second, 3*time.Second
	s.pass(s.dice.duration(200*time.Millisecond, time.Second))
	each(replicas, (*node).crash)
	s.pass(8 * time.Second)
}

// heirDies a while after the leader, as it could not take over.
func (s *scenario) heirDies(_ int, leader *node, replicas []*node) {
	s.pass(s.dice.duration(500*time.Millisecond, maxFlushInterval))
	for _, r := range replicas {
		s.throttled[r.host] = true
	}
	leader.crash()
	s.pass(s.dice.duration(4*time.Second, 6*time.Second))
	each(replicas, (*node).crash)
	s.pass(10 * time.Second)
	clear(s.throttled)
}

// wholeISRDies while it holds what is not flushed.
func (s *scenario) wholeISRDies(_ int, leader *node, replicas []*node) {
	s.pass(s.dice.duration(500*time.Millisecond, maxFlushInterval))
	leader.crash()
	each(replicas, (*node).crash)
}

// coordinatorHasNoNews: it cannot reach the stores for so long that another
// coordinates, while somebody waits for a commit; then another member goes on.
func (s *scenario) coordinatorHasNoNews(int, *node, []*node) {
	m := s.teams[0].members[len(s.teams[0].members)-1]
	if s.at(m.line.host) == nil {
		return
	}
	s.offline[m.line.host] = true
	s.pass(s.dice.duration(7*time.Second, 8*time.Second))
	s.addMember(s.teams[0], m.habits).begin()
	s.pass(4 * time.Second)
}
