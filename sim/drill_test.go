package sim

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/siltstone-io/siltstone/internal/planted"
)

// playDrill is play for a drill.
func playDrill(t *testing.T, seed uint64, d drill, plant planted.Bug) (wrong []string, trace string) {
	labels := pprof.Labels("seed", fmt.Sprint(seed))
	pprof.Do(context.Background(), labels, func(context.Context) {
		synctest.Test(t, func(*testing.T) {
			s := newDrill(seed, d)
			s.plant = plant
			s.play()
			wrong, trace = append(s.wrong, s.history.check()...), s.trace.String()
		})
	})
	return wrong, trace
}

// TestDrills shows of each bug of agents that share shards that its drill finds
// it, and that the same drill goes well without it.
func TestDrills(t *testing.T) {
	const within = 20
	for _, d := range drills {
		t.Run(d.bug.String(), func(t *testing.T) {
			t.Parallel()
			bug := planted.ForTest(t, d.bug)
			for seed := *flagStart; seed < *flagStart+within; seed++ {
				if *flagSeed != 0 {
					seed = *flagSeed
				}
				if wrong, trace := playDrill(t, seed, d, planted.Bug{}); len(wrong) > 0 {
					if *flagSeed != 0 && testing.Verbose() {
						fmt.Print(trace)
					}
					t.Fatalf("seed %d, without the bug:\n  %s", seed, strings.Join(wrong, "\n  "))
				}
				wrong, trace := playDrill(t, seed, d, bug)
				if *flagSeed != 0 && testing.Verbose() {
					fmt.Print(trace)
				}
				for _, s := range wrong {
					if strings.Contains(d.signs, s[:1]) {
						t.Logf("found by seed %d: %s", seed, s)
						return
					}
				}
				if *flagSeed != 0 {
					t.Fatalf("not found: %q", wrong)
				}
			}
			t.Errorf("not found by %d seeds", within)
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
