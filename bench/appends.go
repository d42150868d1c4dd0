package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/embedded"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

const (
	// probeInterval and probeBytes are how often, and with how much, an append is tried.
	probeInterval = 10 * time.Millisecond
	probeBytes    = 2 << 10
)

// probeAppends makes appends to a coordinator of its own, which has nothing
// else to do, beside whatever the machine does: what one takes by itself. It
// goes on until ctx ends; the times are sorted.
func probeAppends(ctx context.Context, dir string) (times []time.Duration, err error) {
	dir, err = os.MkdirTemp(dir, "siltstone-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c, err := embedded.Open(filepath.Join(dir, "probe.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for seq := coordinator.Seq(1); ; seq++ {
		e := coordinator.Entry{Seq: seq, Data: make([]byte, probeBytes)}
		binary.BigEndian.PutUint64(e.Nonce[:], uint64(seq))
		start := time.Now()
		if err := c.Append(context.WithoutCancel(ctx), "probe", e); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
		select {
		case <-ctx.Done():
			slices.Sort(times)
			return times, nil
		case <-tick.C:
		}
	}
}

// appendMetric is Siltstone's histogram of what appends to ledgers took.
const appendMetric = `siltstone_agent_ledger_append_seconds_bucket{kind="group",le="`

// buckets of a histogram: how many took at most so long.
type buckets []bucket

type bucket struct {
	atMost time.Duration
	count  float64
}

// groupAppends asks a Siltstone how long its appends to group shards took since
// it started; nil for who is none.
func (s *server) groupAppends(ctx context.Context) (buckets, error) {
	if s.metrics == "" {
		return nil, nil
	}
	page, err := get(ctx, "http://"+s.metrics+"/metrics")
	if err != nil {
		return nil, err
	}
	return parseBuckets(page, appendMetric)
}

// parseBuckets finds a histogram on a page of metrics; prefix is its lines' as
// far as the bound.
func parseBuckets(page []byte, prefix string) (all buckets, err error) {
	for line := range strings.Lines(string(page)) {
		rest, ours := strings.CutPrefix(line, prefix)
		if !ours {
			continue
		}
		bound, count, _ := strings.Cut(strings.TrimSpace(rest), `"} `)
		seconds, err := strconv.ParseFloat(bound, 64)
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseFloat(count, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, bucket{time.Duration(min(seconds, 3600) * float64(time.Second)), n})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no %s on a page of metrics", prefix)
	}
	return all, nil
}

// quantile of what came after an earlier reading, as evenly spread within its bucket.
func (b buckets) quantile(earlier buckets, q float64) time.Duration {
	since := func(i int) float64 { return b[i].count - earlier[i].count }
	rank := q * since(len(b)-1)
	var below time.Duration
	var n float64
	for i := range b {
		if in := since(i) - n; in > 0 && since(i) >= rank {
			return below + time.Duration(float64(b[i].atMost-below)*(rank-n)/in)
		}
		below, n = b[i].atMost, since(i)
	}
	return below
}

// addAppends reads from the ledgers of a Siltstone that has stopped how often
// group shards were appended to.
func (t *groupTurn) addAppends(ctx context.Context, windows []window) error {
	shards, err := readLedgers(ctx, t.s.database)
	if err != nil {
		return err
	}
	for _, w := range windows {
		var busiest, all int
		for _, appends := range shards {
			n := w.count(appends)
			busiest, all = max(busiest, n), all+n
		}
		seconds := w.end.Sub(w.start).Seconds()
		t.add(w.figures+appendsOfShard, "1/s", float64(busiest)/seconds)
		t.add(w.figures+"appends, all shards", "1/s", float64(all)/seconds)
	}
	return nil
}

// count says how many of some times are in the window.
func (w window) count(times []time.Time) (n int) {
	for _, at := range times {
		if !at.Before(w.start) && at.Before(w.end) {
			n++
		}
	}
	return n
}

// readLedgers says when each group shard was appended to.
func readLedgers(ctx context.Context, database string) (shards [group.Count][]time.Time, err error) {
	c, err := embedded.OpenForReading(database)
	if err != nil {
		return shards, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for i := range shards {
		for after := coordinator.Seq(0); ; {
			entries, err := c.Read(ctx, group.Ledger(i), after, coordinator.MaxReadEntries)
			if err != nil {
				return shards, err
			}
			if len(entries) == 0 {
				break
			}
			for _, e := range entries {
				frame, err := ledger.DecodeFrame(e.Data)
				if err != nil {
					return shards, err
				}
				shards[i] = append(shards[i], time.UnixMilli(frame.TimeMS))
				after = e.Seq
			}
		}
	}
	return shards, nil
}
