package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// Sample is one cell, once: records produced, then read back.
type Sample struct {
	Round  int
	System string
	Cell   string

	WriteMiBPerSecond     float64
	WriteRecordsPerSecond float64
	AckP50Millis          float64
	AckP99Millis          float64
	AckMaxMillis          float64
	WriteCPUPerGiB        float64 // of the server, in seconds; 0: not known
	LoadCPUPerGiB         float64 // of this program, which has the same cores
	ReadMiBPerSecond      float64
	ReadRecordsPerSecond  float64
	ReadCPUPerGiB         float64
	PeakRSSMiB            float64 // of the server; 0: not known
	Duplicates            int64   // records that a retry wrote twice
}

// turn starts a system, warms it up, takes a sample of each cell, and stops it.
func (o options) turn(ctx context.Context, round int, sys system) (samples []Sample, err error) {
	dir, err := os.MkdirTemp(o.dir, "siltstone-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := sys.start(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = joinStop(err, s) }()
	ctx, cancel := s.untilExit(ctx)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx) // the rest follows from it
		}
	}()
	if o.warmUp > 0 {
		// A JVM compiles what is used often; memory is touched once.
		if _, err := o.sample(ctx, s, Cell{Producers: 16}, o.warmUp); err != nil {
			return nil, fmt.Errorf("warming up: %w", err)
		}
	}
	for _, c := range o.cells {
		o.say(round, sys.name, c.String())
		sample, err := o.sample(ctx, s, c, o.duration)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		sample.Round, sample.System, sample.Cell = round, sys.name, c.String()
		samples = append(samples, sample)
	}
	return samples, nil
}

func joinStop(err error, s *server) error {
	if stopErr := s.stop(); err == nil {
		return stopErr
	}
	return err
}

// sample measures one cell on a topic of its own, which it deletes.
func (o options) sample(ctx context.Context, s *server, c Cell, duration time.Duration) (Sample, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.addr))
	if err != nil {
		return Sample{}, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	l := workload{addr: s.addr, topic: fmt.Sprintf("bench-%d", time.Now().UnixNano()), payload: newPayload(o.recordBytes), duration: duration}
	if _, err := admin.CreateTopic(ctx, int32(o.partitions), -1, nil, l.topic); err != nil {
		return Sample{}, fmt.Errorf("creating a topic: %w", err)
	}
	// What earlier cells left behind is not this one's: dirty pages, garbage.
	syscall.Sync()
	runtime.GC()
	sample, err := o.measure(ctx, s, l, c)
	if err != nil {
		return Sample{}, err
	}
	if _, err := admin.DeleteTopic(ctx, l.topic); err != nil {
		return Sample{}, fmt.Errorf("deleting a topic: %w", err)
	}
	return sample, nil
}

func (o options) measure(ctx context.Context, s *server, l workload, c Cell) (Sample, error) {
	if err := resetPeak(s.pid); err != nil {
		return Sample{}, err
	}
	before, err := usages(s.pid, os.Getpid())
	if err != nil {
		return Sample{}, err
	}
	var w written
	g, writing := errgroup.WithContext(ctx)
	g.Go(func() (err error) { w, err = l.write(writing, c); return err })
	if o.profileDir != "" && s.profile != "" {
		g.Go(func() error { return o.saveProfile(writing, s, c.String(), l.duration) })
	}
	if err := g.Wait(); err != nil {
		return Sample{}, err
	}
	between, err := usages(s.pid, os.Getpid())
	if err != nil {
		return Sample{}, err
	}
	r, err := l.read(ctx, w)
	if err != nil {
		return Sample{}, err
	}
	after, err := usages(s.pid)
	if err != nil {
		return Sample{}, err
	}
	records := float64(w.records())
	mib := records * float64(l.payload.recordBytes) / (1 << 20)
	gib := mib / 1024
	return Sample{
		WriteMiBPerSecond:     mib / w.elapsed.Seconds(),
		WriteRecordsPerSecond: records / w.elapsed.Seconds(),
		AckP50Millis:          millis(quantile(w.acks, 0.50)),
		AckP99Millis:          millis(quantile(w.acks, 0.99)),
		AckMaxMillis:          millis(quantile(w.acks, 1)),
		WriteCPUPerGiB:        (between[0].cpu - before[0].cpu).Seconds() / gib,
		LoadCPUPerGiB:         (between[1].cpu - before[1].cpu).Seconds() / gib,
		ReadMiBPerSecond:      mib / r.elapsed.Seconds(),
		ReadRecordsPerSecond:  records / r.elapsed.Seconds(),
		ReadCPUPerGiB:         (after[0].cpu - between[0].cpu).Seconds() / gib,
		PeakRSSMiB:            float64(after[0].peakRSSBytes) / (1 << 20),
		Duplicates:            r.duplicates,
	}, nil
}

func usages(pids ...int) ([]usage, error) {
	var all []usage
	for _, pid := range pids {
		u, err := readUsage(pid)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
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
