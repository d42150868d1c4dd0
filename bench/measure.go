package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// Sample is one cell, once: records produced, then read back; where it has
// followers, produced again and read as they come; where it is cold, read from
// the disk. What is not measured, or not known, is 0.
type Sample struct {
	Run    int // where and when: of the report's
	Round  int
	System string
	Cell   Cell

	WriteMiBPerSecond     float64
	WriteRecordsPerSecond float64
	AckP50Millis          float64
	AckP99Millis          float64
	AckMaxMillis          float64
	WriteCPUPerGiB        float64 // of the server, in seconds
	LoadCPUPerGiB         float64 // of this program, which has the same cores
	AllocatedPerRecord    float64 // bytes, of the server's heap, while writing
	PeakRSSMiB            float64 // of the server, writing and reading back

	ReadMiBPerSecond     float64
	ReadCPUPerGiB        float64
	ColdReadMiBPerSecond float64
	ColdReadCPUPerGiB    float64

	TailP50Millis  float64 // from when a record was due until a follower had it
	TailP99Millis  float64
	TailCPUPerGiB  float64 // for each GiB to a follower, above what writing takes
	FollowedAckP99 float64 // of the acknowledgements meanwhile
}

// turn is a system while its cells are measured.
type turn struct {
	o       options
	s       *server
	admin   *kadm.Client
	samples []Sample
	cold    []coldTopic
}

// measure warms a system up and takes a sample of each cell.
func (t *turn) measure(ctx context.Context, round int, system string) error {
	if err := t.s.while(ctx, func(ctx context.Context) error { return t.measureCells(ctx, round, system) }); err != nil {
		return err
	}
	if len(t.cold) > 0 {
		t.o.say(round, system, "cold reads")
		if err := t.readCold(ctx); err != nil {
			return fmt.Errorf("cold reads: %w", err)
		}
	}
	return nil
}

// while does something with a server that should stay up meanwhile.
func (s *server) while(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := s.untilExit(ctx)
	defer cancel()
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the rest follows from it
	}
	return err
}

func (t *turn) measureCells(ctx context.Context, round int, system string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.s.addr))
	if err != nil {
		return err
	}
	defer client.Close()
	t.admin = kadm.NewClient(client)
	if t.o.warmUp > 0 {
		// A JVM compiles what is used often; memory is touched once.
		warm := Cell{RecordBytes: 1024, Partitions: 16, Producers: 16}
		warm.Cold = slices.ContainsFunc(t.o.cells, func(c Cell) bool { return c.Cold })
		if _, err := t.sample(ctx, warm, t.o.warmUp); err != nil {
			return fmt.Errorf("warming up: %w", err)
		}
		for i := range t.cold {
			t.cold[i].sample = nobodys
		}
	}
	for _, c := range t.o.cells {
		t.o.say(round, system, c.String())
		sample, err := t.sample(ctx, c, t.o.duration)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		sample.Round, sample.System, sample.Cell = round, system, c
		t.samples = append(t.samples, sample)
	}
	return nil
}

// sample measures one cell on topics of its own, which it deletes if nothing
// else is to be done with them.
func (t *turn) sample(ctx context.Context, c Cell, duration time.Duration) (sample Sample, err error) {
	l := workload{addr: t.s.addr, payload: newPayload(c.RecordBytes), duration: duration}
	if err := t.prepare(ctx, &l, c); err != nil {
		return sample, err
	}
	w, err := t.writeAndRead(ctx, l, c, &sample)
	if err != nil {
		return sample, err
	}
	if c.Cold && t.o.cold {
		t.cold = append(t.cold, coldTopic{l, w, len(t.samples)})
	} else if _, err := t.admin.DeleteTopic(ctx, l.topic); err != nil {
		return sample, fmt.Errorf("deleting a topic: %w", err)
	}
	if c.Followers == 0 {
		return sample, nil
	}
	if err := t.prepare(ctx, &l, c); err != nil {
		return sample, err
	}
	if err := t.follow(ctx, l, c, &sample); err != nil {
		return sample, err
	}
	_, err = t.admin.DeleteTopic(ctx, l.topic)
	return sample, err
}

// writeAndRead measures writing, and reading back what is still in memory.
func (t *turn) writeAndRead(ctx context.Context, l workload, c Cell, sample *Sample) (w written, err error) {
	if err := t.s.resetPeak(); err != nil {
		return w, err
	}
	before, err := t.s.used(ctx)
	if err != nil {
		return w, err
	}
	g, writing := errgroup.WithContext(ctx)
	g.Go(func() (err error) { w, err = l.write(writing, c); return err })
	if t.o.profileDir != "" && t.s.profile != "" {
		g.Go(func() error { return t.o.saveProfile(writing, t.s, c.String(), l.duration) })
	}
	if err := g.Wait(); err != nil {
		return w, err
	}
	between, err := t.s.used(ctx)
	if err != nil {
		return w, err
	}
	elapsed, err := l.read(ctx, w)
	if err != nil {
		return w, err
	}
	after, err := t.s.used(ctx)
	if err != nil {
		return w, err
	}
	records, gib := float64(w.records()), l.gib(w.records())
	sample.WriteMiBPerSecond = gib * 1024 / w.elapsed.Seconds()
	sample.WriteRecordsPerSecond = records / w.elapsed.Seconds()
	sample.AckP50Millis = millis(quantile(w.acks, 0.50))
	sample.AckP99Millis = millis(quantile(w.acks, 0.99))
	sample.AckMaxMillis = millis(quantile(w.acks, 1))
	sample.WriteCPUPerGiB = (between.cpu - before.cpu).Seconds() / gib
	sample.LoadCPUPerGiB = (between.loadCPU - before.loadCPU).Seconds() / gib
	sample.AllocatedPerRecord = float64(between.allocatedBytes-before.allocatedBytes) / records
	sample.PeakRSSMiB = float64(after.peakRSSBytes) / (1 << 20)
	sample.ReadMiBPerSecond = gib * 1024 / elapsed.Seconds()
	sample.ReadCPUPerGiB = (after.cpu - between.cpu).Seconds() / gib
	return w, nil
}

// follow measures what is read as it is written.
func (t *turn) follow(ctx context.Context, l workload, c Cell, sample *Sample) error {
	before, err := t.s.used(ctx)
	if err != nil {
		return err
	}
	f, err := l.writeFollowed(ctx, c)
	if err != nil {
		return err
	}
	after, err := t.s.used(ctx)
	if err != nil {
		return err
	}
	if c.Followers > 1 { // one drowns in the noise
		writing := sample.WriteCPUPerGiB * l.gib(f.records())
		sample.TailCPUPerGiB = ((after.cpu - before.cpu).Seconds() - writing) / l.gib(f.delivered)
	}
	sample.TailP50Millis = millis(quantile(f.delays, 0.50))
	sample.TailP99Millis = millis(quantile(f.delays, 0.99))
	sample.FollowedAckP99 = millis(quantile(f.acks, 0.99))
	return nil
}

// saveProfile keeps a CPU profile of the server over the time of what is
// measured, in a file named after it.
func (o options) saveProfile(ctx context.Context, s *server, name string, duration time.Duration) error {
	profile, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.profile, max(1, int(duration.Seconds()))))
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	name = strings.NewReplacer(", ", "-", ": ", "", " ", "-", "/", "-per-").Replace(name) + ".pprof"
	return os.WriteFile(filepath.Join(o.profileDir, name), profile, 0o644)
}

// quantile of sorted times: the smallest that at least the share q of them do not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(0, rank-1)]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
