package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone/internal/planted"
)

// TestDrills shows of each bug of agents that share shards that its drill finds
// it, and that the same drill goes well without it.
func TestDrills(t *testing.T) {
	first, within := *flagStart, uint64(20)
	if *flagSeed != 0 {
		first, within = *flagSeed, 1
	}
	play := func(t *testing.T, seed uint64, d drill, plant planted.Bug) []string {
		wrong, trace := playOut(t, seed, func() *scenario { return newDrill(seed, d) }, plant)
		if *flagSeed != 0 && testing.Verbose() {
			fmt.Print(trace)
		}
		return wrong
	}
	for _, d := range drills {
		t.Run(d.bug.String(), func(t *testing.T) {
			t.Parallel()
			bug := planted.ForTest(t, d.bug)
			var wrong []string
			for seed := first; seed < first+within; seed++ {
				if wrong = play(t, seed, d, planted.Bug{}); len(wrong) > 0 {
					t.Fatalf("seed %d, without the bug:\n  %s", seed, strings.Join(wrong, "\n  "))
				}
				wrong = play(t, seed, d, bug)
				for _, s := range wrong {
					if strings.Contains(d.signs, s[:1]) {
						t.Logf("found by seed %d: %s", seed, s)
						return
					}
				}
			}
			t.Errorf("not found by %d seeds; the last one says %q", within, wrong)
		})
	}
}

// TestDrillsAreAll: there is one for each such bug.
func TestDrillsAreAll(t *testing.T) {
	for _, name := range planted.Replication {
		n := 0
		for _, d := range drills {
			if d.bug == name {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d drills for %q", n, name)
		}
	}
}
