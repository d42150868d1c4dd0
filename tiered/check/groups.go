package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

// checkGroups checks a group shard's fold by itself and against the topics.
func (c *checker) checkGroups(n int, fold *group.State) {
	for g := range fold.Groups() {
		where := fmt.Sprintf("%s, group %q", group.Ledger(n), g.ID)
		c.report.Groups++
		c.report.Offsets += len(g.Offsets)
		if of := group.Of(g.ID); of != n {
			c.problem(where, "it belongs into %s", group.Ledger(of))
		}
		beyond := map[string]int32{} // by topic, the highest partition that it does not have
		for tp := range g.Offsets {
			// An offset whose topic is gone waits to be forgotten.
			if t, known := c.topics.TopicByNumber(tp.Topic); known && tp.Partition >= t.Partitions {
				beyond[t.Name] = max(beyond[t.Name], tp.Partition)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(beyond)) {
			c.problem(where, "it has an offset of partition %d of topic %s, which does not have so many", beyond[name], name)
		}
	}
}
