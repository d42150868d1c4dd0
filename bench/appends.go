package main

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/embedded"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// replayTime bounds how much of a window's appends is made again.
const replayTime = 5 * time.Second

// appended is one entry of a group shard's ledger.
type appended struct {
	at   time.Time
	data []byte
}

// addAppends reads from the ledgers of a Siltstone that has stopped how often
// group shards were appended to, and makes the same appends at the same times
// again to a coordinator of their own: what an append takes by itself.
func (t *groupTurn) addAppends(ctx context.Context, windows []window) error {
	shards, err := readLedgers(ctx, t.s.database)
	if err != nil {
		return err
	}
	for _, w := range windows {
		var busiest, appends int
		within := make([][]appended, len(shards))
		for i, entries := range shards {
			within[i] = w.of(entries)
			busiest, appends = max(busiest, len(within[i])), appends+len(within[i])
		}
		seconds := w.end.Sub(w.start).Seconds()
		t.add(w.figures+appendsOfShard, "1/s", float64(busiest)/seconds)
		t.add(w.figures+"appends, all shards", "1/s", float64(appends)/seconds)
		times, err := replay(ctx, t.o.dir, w.start, within)
		if err != nil {
			return err
		}
		t.add(w.figures+"an append alone, p50", "ms", millis(quantile(times, 0.50)))
		t.add(w.figures+appendAlone, "ms", millis(quantile(times, 0.99)))
	}
	return nil
}

// of are the entries of a window.
func (w window) of(entries []appended) (within []appended) {
	for _, e := range entries {
		if !e.at.Before(w.start) && e.at.Before(w.end) {
			within = append(within, e)
		}
	}
	return within
}

// readLedgers reads all group shards.
func readLedgers(ctx context.Context, database string) (shards [group.Count][]appended, err error) {
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
				shards[i] = append(shards[i], appended{time.UnixMilli(frame.TimeMS), e.Data})
				after = e.Seq
			}
		}
	}
	return shards, nil
}

// replay appends again, each entry as long after the start as it was, or once
// the one before it is done; the times that it took are sorted.
func replay(ctx context.Context, dir string, start time.Time, shards [][]appended) (times []time.Duration, err error) {
	dir, err = os.MkdirTemp(dir, "siltstone-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c, err := embedded.Open(filepath.Join(dir, "replay.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var mu sync.Mutex
	later := time.Since(start)
	g, ctx := errgroup.WithContext(ctx)
	for i, entries := range shards {
		g.Go(func() error {
			for n, e := range entries {
				if e.at.Sub(start) > replayTime {
					break
				}
				time.Sleep(time.Until(e.at.Add(later)))
				seq := coordinator.Seq(n + 1)
				var nonce coordinator.Nonce
				binary.BigEndian.PutUint64(nonce[:], uint64(seq))
				began := time.Now()
				if err := c.Append(ctx, group.Ledger(i), coordinator.Entry{Seq: seq, Nonce: nonce, Data: e.data}); err != nil {
					return err
				}
				took := time.Since(began)
				mu.Lock()
				times = append(times, took)
				mu.Unlock()
			}
			return nil
		})
	}
	err = g.Wait()
	slices.Sort(times)
	return times, err
}
