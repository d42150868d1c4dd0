package embedded_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone/coordinator"
)

var body = make([]byte, 400)

// report says how long a call took, in the middle and at worst of a hundred.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs-p99")
}

// BenchmarkSync is what an append cannot be quicker than: a page written and
// synced, twice, since a transaction's root is written after its pages.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		for n := range int64(2) {
			if _, err := f.WriteAt(page, (int64(i)*2+n)%1024*4096); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
		took = append(took, time.Since(start))
	}
	report(b, took)
}

func BenchmarkAppend(b *testing.B) {
	c := open(b, filepath.Join(b.TempDir(), "cluster.db"))
	defer closeIt(b, c)
	var took []time.Duration
	for seq := coordinator.Seq(1); b.Loop(); seq++ {
		start := time.Now()
		if err := c.Append(b.Context(), "a", coordinator.Entry{Seq: seq, Data: body}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	report(b, took)
}

// BenchmarkAppend16 is one flush of an agent that leads all shards.
func BenchmarkAppend16(b *testing.B) {
	c := open(b, filepath.Join(b.TempDir(), "cluster.db"))
	defer closeIt(b, c)
	var took []time.Duration
	for seq := coordinator.Seq(1); b.Loop(); seq++ {
		start := time.Now()
		var wg sync.WaitGroup
		for shard := range 16 {
			wg.Go(func() {
				if err := c.Append(b.Context(), string(rune('a'+shard)), coordinator.Entry{Seq: seq, Data: body}); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		took = append(took, time.Since(start))
	}
	report(b, took)
}

// BenchmarkReadDuringAppends shows that readers do not wait for the writer.
func BenchmarkReadDuringAppends(b *testing.B) {
	c := open(b, filepath.Join(b.TempDir(), "cluster.db"))
	defer closeIt(b, c)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for seq := coordinator.Seq(1); !stop.Load(); seq++ {
			if err := c.Append(b.Context(), "a", coordinator.Entry{Seq: seq, Data: body}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := c.Floor(b.Context(), "b"); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	stop.Store(true)
	wg.Wait()
	report(b, took)
}

// BenchmarkAppendDuringTrim is what others notice of a month's trim: 500,000
// entries of one ledger, a flush every 5 s.
func BenchmarkAppendDuringTrim(b *testing.B) {
	const month, writers = 500_000, 512
	for b.Loop() {
		b.StopTimer()
		c := open(b, filepath.Join(b.TempDir(), "cluster.db"))
		var wg sync.WaitGroup
		for w := range coordinator.Seq(writers) {
			wg.Go(func() {
				for seq := w + 1; seq <= month; seq += writers {
					if err := c.Append(b.Context(), "a", coordinator.Entry{Seq: seq, Data: body}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		b.StartTimer()
		trimmed := make(chan error, 1)
		go func() { trimmed <- c.Trim(b.Context(), "a", month-1) }()
		var took []time.Duration
		for seq, done := coordinator.Seq(1), false; !done; seq++ {
			select {
			case err := <-trimmed:
				if err != nil {
					b.Fatal(err)
				}
				done = true
			default:
				start := time.Now()
				if err := c.Append(b.Context(), "b", coordinator.Entry{Seq: seq, Data: body}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
		}
		report(b, took)
		b.ReportMetric(float64(slices.Max(took).Microseconds()), "µs-max")
		b.StopTimer()
		closeIt(b, c)
		b.StartTimer()
	}
}
