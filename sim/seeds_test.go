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
	flagMood  = flag.String("mood", "stormy", "of that seed: stormy, calm, steady")
)

func moodOf(name string) (mood, bool) {
	for m := stormy; m <= steady; m++ {
		if m.String() == name {
			return m, true
		}
	}
	return 0, false
}

// play plays one seed and returns what was wrong, and the trace.
func play(t *testing.T, seed uint64, m mood, plant planted.Bug) (wrong []string, trace string) {
	return playOut(t, seed, func() *scenario { return newScenario(seed, m) }, plant)
}

// playOut is play for whatever is made of the seed.
func playOut(t *testing.T, seed uint64, of func() *scenario, plant planted.Bug) (wrong []string, trace string) {
	// The label names the seed in the trace of a panic.
	labels := pprof.Labels("seed", fmt.Sprint(seed))
	pprof.Do(context.Background(), labels, func(context.Context) {
		synctest.Test(t, func(*testing.T) {
			s := of()
			s.plant = plant
			s.play()
			wrong, trace = append(s.wrong, s.history.check()...), s.trace.String()
		})
	})
	return wrong, trace
}

func report(t *testing.T, seed uint64, m mood, wrong []string) {
	t.Helper()
	if len(wrong) > 0 {
		t.Errorf("seed %d: %d things wrong:\n  %s\n(go test ./sim -run TestSeeds -seed %d -mood %s -v prints the trace)",
			seed, len(wrong), strings.Join(wrong[:min(len(wrong), 8)], "\n  "), seed, m)
	}
}

// TestSeeds plays agents with restarts, pauses, failing and slow stores,
// unknown outcomes, writes that land late, months off.
func TestSeeds(t *testing.T) {
	if *flagSeed != 0 {
		m, known := moodOf(*flagMood)
		if !known {
			t.Fatalf("no mood %q", *flagMood)
		}
		wrong, trace := play(t, *flagSeed, m, planted.Bug{})
		if testing.Verbose() {
			fmt.Print(trace)
		}
		report(t, *flagSeed, m, wrong)
		return
	}
	seeds := *flagSeeds
	if testing.Short() {
		seeds = min(seeds, 20)
	}
	began := time.Now()
	t.Cleanup(func() {
		t.Logf("%d seeds, from %d on: %.0f a minute", seeds, *flagStart, float64(seeds)/time.Since(began).Minutes())
	})
	for i := range uint64(seeds) {
		t.Run(fmt.Sprint(*flagStart+i), func(t *testing.T) {
			t.Parallel()
			wrong, _ := play(t, *flagStart+i, stormy, planted.Bug{})
			report(t, *flagStart+i, stormy, wrong)
		})
	}
}

// TestCalm plays long worlds in which nothing goes wrong: then nothing may
// fail, nothing may be sent twice, and every record is there.
func TestCalm(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			wrong, _ := play(t, seed, calm, planted.Bug{})
			report(t, seed, calm, wrong)
		})
	}
}

// TestSteady plays worlds in which agents follow one another, each when the
// last has ended in its own time, and members of groups stay as they are: then
// none has to join again.
func TestSteady(t *testing.T) {
	for seed := *flagStart; seed < *flagStart+uint64(*flagSeeds/20); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			wrong, _ := play(t, seed, steady, planted.Bug{})
			report(t, seed, steady, wrong)
		})
	}
}

// TestOneSeedOneTraceOfAgents is TestOneSeedOneTrace with real agents.
func TestOneSeedOneTraceOfAgents(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	for seed := uint64(1); seed <= 5; seed++ {
		_, first := play(t, seed, stormy, planted.Bug{})
		for _, procs := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(procs)
			_, again := play(t, seed, stormy, planted.Bug{})
			compareTraces(t, seed, first, again)
		}
	}
}

// TestPlantedBugs shows that the checker finds what it is there to find, and
// by what: clients are lied to, or an agent meets what it has done and stops.
func TestPlantedBugs(t *testing.T) {
	const within = 200
	signs := map[planted.Name]string{
		planted.AckBeforeFlush:           "12", // lost, or another record at its offset
		planted.TimedOutIsFailed:         "1239",
		planted.AppendWithoutFolding:     "1239",
		planted.TwoAppendsInFlight:       "1239",
		planted.OldGenerationCommits:     "6",
		planted.DuplicateBeforeSafe:      "12", // lost, or another record at its offset
		planted.SequencesNotCheckpointed: "4",  // there twice
	}
	for _, name := range planted.Names {
		t.Run(name.String(), func(t *testing.T) {
			t.Parallel()
			bug := planted.ForTest(t, name)
			for seed := uint64(1); seed <= within; seed++ {
				wrong, _ := play(t, seed, stormy, bug)
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

		"commits late":     0,
		"a heartbeat late": 0,
		": error 22":       0, // of another generation
		": error 25":       0, // of no member
		": error 82":       0, // of a static member whose place another has
		"sleeps for":       0,
		"leaves team":      0,
		"done: delete ":    0,
		"goes on with ep":  0,
		"gives up":         0,
		"eraser: t":        0,
	}
	for seed := uint64(1); seed <= 30; seed++ {
		_, trace := play(t, seed, stormy, planted.Bug{})
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
