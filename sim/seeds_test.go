package sim

import (
	"context"
	"flag"
	"fmt"
	"runtime"
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
	seeds := *flagSeeds
	if testing.Short() {
		seeds = min(seeds, 20)
	}
	t.Logf("%d seeds, from %d on", seeds, *flagStart)
	for i := range uint64(seeds) {
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
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	for seed := uint64(1); seed <= 5; seed++ {
		_, first := play(t, seed, planted.Bug{}, 0)
		for _, procs := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(procs)
			_, again := play(t, seed, planted.Bug{}, 0)
			compareTraces(t, seed, first, again)
		}
	}
}

// TestPlantedBugs shows that the checker finds what it is there to find, and
// by what: clients are lied to, or an agent meets what it has done and stops.
func TestPlantedBugs(t *testing.T) {
	const within = 200
	signs := map[planted.Name]string{
		planted.AckBeforeFlush:       "12", // lost, or another record at its offset
		planted.TimedOutIsFailed:     "1239",
		planted.AppendWithoutFolding: "1239",
		planted.TwoAppendsInFlight:   "1239",
		planted.OldGenerationCommits: "6",
	}
	for _, name := range planted.Names {
		t.Run(name.String(), func(t *testing.T) {
			t.Parallel()
			bug := planted.ForTest(t, name)
			for seed := uint64(1); seed <= within; seed++ {
				wrong, _ := play(t, seed, bug, 0)
				for _, s := range wrong {
					if strings.Contains(signs[name], s[:1]) {
						t.Logf("found by seed %d: %s", seed, s)
						return
					}
				}
			}
			t.Errorf("not found by %d seeds", within)
		})
	}
}

// TestSeedsReach shows that the seeds meet what they are there to survive.
func TestSeedsReach(t *testing.T) {
	if testing.Short() {
		t.Skip("the long tests show it")
	}
	reach := map[string]int{
		" is taken":       0, // a conflict
		"lands late":      0,
		"answer lost":     0,
		"object exists":   0, // a PUT again that had landed
		"put checkpoint/": 0,
		"trim shard-":     0,
		"switched off":    0,
		"dies as it land": 0,
		" pauses":         0,
		"is cut":          0,
		"error 7":         0, // an append that timed out
	}
	for seed := uint64(1); seed <= 30; seed++ {
		_, trace := play(t, seed, planted.Bug{}, 0)
		for what := range reach {
			reach[what] += strings.Count(trace, what)
		}
	}
	for what, times := range reach {
		if times < 3 {
			t.Errorf("%q was reached %d times", what, times)
		}
	}
}
