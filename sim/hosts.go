package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxAgents is how many agents a scenario has at most.
const maxAgents = 5

// agentHosts draws where the agents of a scenario are. Most often there is one.
func agentHosts(d *dice) []string {
	hosts := []string{"agent"}
	if d.chance(0.6) {
		return hosts
	}
	for i := range d.between(1, maxAgents) - 1 {
		hosts = append(hosts, fmt.Sprintf("agent%d", i+2))
	}
	return hosts
}

// zoneOf is the zone of a host: the first three are in one each.
func zoneOf(host string) string {
	number, _ := strconv.Atoi(strings.TrimPrefix(host, "agent"))
	return fmt.Sprint("zone", max(number, 1)%3)
}

// hit draws whom something befalls: one agent, some, or all.
func (s *scenario) hit() []int {
	var all []int
	for i := range s.agents {
		all = append(all, i)
	}
	if len(all) == 1 || s.dice.chance(0.2) {
		return all
	}
	from := s.dice.below(len(all))
	return all[from:s.dice.between(from+1, len(all))]
}

func each(nodes []*node, do func(*node)) {
	for _, n := range nodes {
		do(n)
	}
}

// allGone says whether no node runs any more.
func (s *scenario) allGone() bool {
	return !slices.ContainsFunc(s.nodes, func(n *node) bool { return !n.gone() })
}
