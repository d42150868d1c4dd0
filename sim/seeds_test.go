package sim

import (
	"context"
	"flag"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone/internal/planted"
)

var (
	flagSeeds = flag.Int("seeds", 200, "how many seeds TestSeeds plays")
	flagStart = flag.Uint64("start", 1, "the first of them")
	flagSeed  = flag.Uint64("seed", 0, "play this seed alone and, with -v, print its trace")
)

// play plays one seed and returns what was wrong, and the trace.
func play(t *testing.T, seed uint64, plant planted.Bug, calm time.Duration) (wrong []string, trace string) {
	// The label names the seed in the trace of a panic.
	labels := pprof.Labels("seed", fmt.Sprint(seed))
	pprof.Do(context.Background(), labels, func(context.Context) {
		synctest.Test(t, func(*testing.T) {
			s := newScenario(seed, calm > 0)
			s.options.plant, s.load = plant, calm
			s.play()
			wrong, trace = append(s.wrong, s.history.check()...), s.trace.String()
		})
	})
	return wrong, trace
}

func report(t *testing.T, seed uint64, wrong []string) {
	t.Helper()
	if len(wrong) > 0 {
		t.Errorf("seed %d: %d things wrong:\n  %s\n(go test ./sim -run TestSeeds -seed %d -v prints the trace)",
			seed, len(wrong), strings.Join(wrong[:min(len(wrong), 8)], "\n  "), seed)
	}
}

// TestSeeds plays agents with restarts, pauses, failing and slow stores,
// unknown outcomes, writes that land late, months off.
func TestSeeds(t *testing.T) {
	if *flagSeed != 0 {
		wrong, trace := play(t, *flagSeed, planted.Bug{}, 0)
		if testing.Verbose() {
			fmt.Print(trace)
		}
		report(t, *flagSeed, wrong)
		return
	}
	for i := range uint64(*flagSeeds) {
		t.Run(fmt.Sprint(*flagStart+i), func(t *testing.T) {
			t.Parallel()
			wrong, _ := play(t, *flagStart+i, planted.Bug{}, 0)
			report(t, *flagStart+i, wrong)
		})
	}
}

// TestCalm plays long worlds in which nothing goes wrong: then nothing may
// fail, nothing may be sent twice, and every record is there.
func TestCalm(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			wrong, _ := play(t, seed, planted.Bug{}, 3*time.Minute)
			report(t, seed, wrong)
		})
	}
}

// TestOneSeedOneTraceOfAgents is TestOneSeedOneTrace with real agents.
func TestOneSeedOneTraceOfAgents(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		_, first := play(t, seed, planted.Bug{}, 0)
		for range 3 {
			_, again := play(t, seed, planted.Bug{}, 0)
			compareTraces(t, seed, first, again)
		}
	}
}

// TestPlantedBugs shows that the checker finds what it is there to find.
func TestPlantedBugs(t *testing.T) {
	const within = 200
	for _, name := range planted.Names {
		t.Run(name.String(), func(t *testing.T) {
			t.Parallel()
			bug := planted.ForTest(t, name)
			for seed := uint64(1); seed <= within; seed++ {
				if wrong, _ := play(t, seed, bug, 0); len(wrong) > 0 {
					t.Logf("found by seed %d: %s", seed, wrong[0])
					return
				}
			}
			t.Errorf("not found by %d seeds", within)
		})
	}
}
