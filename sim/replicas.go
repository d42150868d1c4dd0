package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
)

// uncleanGrace is how long a shard whose whole ISR died has nobody.
const uncleanGrace = 10 * time.Second

// uncleanTime is how long it takes at most until another takes over: the lease, and
// the next look at the registers, come before the grace.
const uncleanTime = uncleanGrace + 10*time.Second

// replicaSettings say how many agents hold what is not flushed, when a flush is
// late, and when a replica is.
func replicaSettings(replicas, lateMS, lagMS int) [][2]string {
	return [][2]string{
		{"siltstone.replicas", strconv.Itoa(replicas)},
		{"siltstone.unclean.grace.ms", strconv.FormatInt(uncleanGrace.Milliseconds(), 10)},
		{"siltstone.flush.late.ms", strconv.Itoa(lateMS)},
		{"replica.lag.time.max.ms", strconv.Itoa(lagMS)},
	}
}

// drawReplicas draws them, where there are several agents.
func (s *scenario) drawReplicas() [][2]string {
	if len(s.hosts) == 1 {
		return nil
	}
	d := newDice(s.seed, "replicas", 0)
	return replicaSettings([...]int{2, 2, 2, 3, 3, 1}[d.below(6)], d.between(100, 5000), [...]int{500, 500, 100, 2000}[d.below(4)])
}

// topicSettings draws when a topic's records are safe.
func (s *scenario) topicSettings(t *kmsg.CreateTopicsRequestTopic) {
	if len(s.hosts) == 1 {
		return
	}
	d := newDice(s.seed, "settings of "+t.Topic, 0)
	if d.chance(.2) {
		t.Configs = append(t.Configs, setting("siltstone.durability", "object"))
	}
	if d.chance(.3) {
		t.Configs = append(t.Configs, setting("min.insync.replicas", fmt.Sprint(d.between(1, 3))))
	}
}

func setting(name, value string) kmsg.CreateTopicsRequestTopicConfig {
	c := kmsg.NewCreateTopicsRequestTopicConfig()
	c.Name, c.Value = name, &value
	return c
}

// uncleanSoon says whether the whole ISR of some shard is dead, or was a short
// time ago: then everything may take the grace longer.
func (s *scenario) uncleanSoon() bool {
	since := s.now.Add(-healTime - uncleanTime)
	for i := range shard.Count {
		office := s.office(i)
		if office == nil {
			continue
		}
		if s.uncleanSince(i, since) || len(office.ISR) > 1 && !slices.ContainsFunc(office.ISR, func(i siltstone.Incarnation) bool { return s.of(i) != nil }) {
			return true
		}
	}
	return false
}
