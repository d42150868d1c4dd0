package agent

import (
	"slices"
	"testing"

	"github.com/siltstone-io/siltstone"
)

// TestPlacement: everybody gets a share, everybody comes to the same result, and
// one that comes or goes moves little but its own.
func TestPlacement(t *testing.T) {
	var live []siltstone.Incarnation
	var before placement
	for n := 1; n <= 40; n++ {
		live = append(live, siltstone.Incarnation(mix(uint64(n))))
		slices.Sort(live)
		plan := logPlacing.of(live)
		led := map[siltstone.Incarnation]int{}
		for s, order := range plan {
			led[order[0]]++
			if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, live) {
				t.Fatalf("shard %d of %d agents: %v", s, n, order)
			}
		}
		for agent, shards := range led {
			if most := (16 + n - 1) / n; shards > most {
				t.Errorf("of %d agents %s leads %d shards, %d are the most", n, agent, shards, most)
			}
		}
		moved := 0
		for s := range before {
			if before[s][0] != plan[s][0] {
				moved++
			}
		}
		if n > 1 && moved > 12 {
			t.Errorf("the %dth agent moves %d shards", n, moved)
		}
		before = plan
	}
	if plan := logPlacing.of(nil); len(plan) != 16 || plan[0] != nil {
		t.Errorf("of nobody: %v", plan)
	}
}
