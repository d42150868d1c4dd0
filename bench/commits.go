package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/siltstone-io/siltstone/coordinator/group"
)

const (
	// commitPartitions are committed at once.
	commitPartitions = 10
	// slowHeartbeat is what clients have by default.
	slowHeartbeat = 3 * time.Second
)

// window is when something was measured.
type window struct {
	figures    string // begins with
	start, end time.Time
}

// committers are groups of one member each, which commit.
type committers []*member

// spreadGroups are n groups, over all shards.
func spreadGroups(prefix string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("%s-%d", prefix, i))
	}
	return ids
}

// oneShardGroups are n groups of one of Siltstone's shards.
func oneShardGroups(prefix string, n int) (ids []string) {
	for i := 0; len(ids) < n; i++ {
		if id := fmt.Sprintf("%s-%d", prefix, i); group.Of(id) == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// committers enter their groups, each on a connection of its own.
func (t *groupTurn) committers(ctx context.Context, ids []string) (committers, error) {
	all := make(committers, len(ids))
	g, entering := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, id := range ids {
		g.Go(func() error {
			conn, err := connect(ctx, t.s.addr) // it outlives this errgroup
			if err != nil {
				return err
			}
			all[i] = &member{group: id, topic: t.topic, conn: conn}
			return all[i].enter(entering)
		})
	}
	err := g.Wait()
	if err != nil {
		all.close()
	}
	return all, err
}

func (all committers) close() {
	for _, m := range all {
		if m != nil {
			m.conn.close()
		}
	}
}

// leave takes all out of their groups.
func (all committers) leave(ctx context.Context) error {
	for _, m := range all {
		if err := m.leave(ctx); err != nil {
			return err
		}
	}
	return nil
}

// run commits for a while, each group once an interval, and sends heartbeats as
// clients do. A commit's time runs from when it was due, whatever the server does.
func (all committers) run(ctx context.Context, interval, duration time.Duration) ([]time.Duration, error) {
	times := make([][]time.Duration, len(all))
	start := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i, m := range all {
		share := time.Duration(i) * interval / time.Duration(len(all))
		beat := start.Add(time.Duration(i) * slowHeartbeat / time.Duration(len(all)))
		g.Go(func() error {
			for n := int64(0); ; n++ {
				due := start.Add(share + time.Duration(n)*interval)
				if due.Sub(start) >= duration {
					return nil
				}
				time.Sleep(time.Until(due))
				if err := m.commit(ctx, int32(i), commitPartitions, n); err != nil {
					return err
				}
				times[i] = append(times[i], time.Since(due))
				if time.Now().After(beat) {
					if err := m.heartbeat(ctx); err != nil {
						return err
					}
					beat = beat.Add(slowHeartbeat)
				}
			}
		})
	}
	err := g.Wait()
	sorted := slices.Concat(times...)
	slices.Sort(sorted)
	return sorted, err
}

// beat sends as many heartbeats a second as asked for.
func (all committers) beat(ctx context.Context, perSecond int, duration time.Duration) (sent int, err error) {
	interval := time.Duration(len(all)) * time.Second / time.Duration(perSecond)
	counts := make([]int, len(all))
	start := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i, m := range all {
		share := time.Duration(i) * interval / time.Duration(len(all))
		g.Go(func() error {
			for due := start.Add(share); due.Sub(start) < duration; due = due.Add(interval) {
				time.Sleep(time.Until(due))
				if err := m.heartbeat(ctx); err != nil {
					return err
				}
				counts[i]++
			}
			return nil
		})
	}
	err = g.Wait()
	for _, n := range counts {
		sent += n
	}
	return sent, err
}

// commit measures what it takes when all groups commit.
func (t *groupTurn) commit(ctx context.Context) (windows []window, err error) {
	for _, load := range []struct {
		name     string
		ids      []string
		interval time.Duration
	}{
		{"commit once a second", spreadGroups("spread", t.o.groups), time.Second},
		{"commit 5 times a second", spreadGroups("spread", t.o.groups), time.Second / 5},
		{"of one shard commit once a second", oneShardGroups("one", t.o.groups), time.Second},
	} {
		title := fmt.Sprintf("%d groups %s: ", t.o.groups, load.name)
		w, err := t.commitLoad(ctx, title, load.ids, load.interval)
		if err != nil {
			return nil, fmt.Errorf("%s%w", title, err)
		}
		windows = append(windows, w)
	}
	return windows, nil
}

func (t *groupTurn) commitLoad(ctx context.Context, title string, ids []string, interval time.Duration) (w window, err error) {
	all, err := t.committers(ctx, ids)
	if err != nil {
		return w, err
	}
	defer all.close()
	before, err := t.use(ctx)
	if err != nil {
		return w, err
	}
	w = window{figures: title, start: time.Now()}
	var commits, raw []time.Duration
	err = t.profiled(ctx, title, func(ctx context.Context) error {
		probing, enough := context.WithCancel(ctx)
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) { raw, err = probeAppends(probing, t.o.dir); return err })
		g.Go(func() (err error) {
			defer enough()
			commits, err = all.run(ctx, interval, t.o.duration)
			return err
		})
		return g.Wait()
	})
	if err != nil {
		return w, err
	}
	w.end = time.Now()
	after, err := t.use(ctx)
	if err != nil {
		return w, err
	}
	t.add(title+"p50", "ms", millis(quantile(commits, 0.50)))
	t.add(title+commitP99, "ms", millis(quantile(commits, 0.99)))
	t.add(title+"longest", "ms", millis(quantile(commits, 1)))
	if t.s.metrics != "" {
		t.add(title+"append, p50", "ms", millis(after.appends.quantile(before.appends, 0.50)))
		t.add(title+appendP99, "ms", millis(after.appends.quantile(before.appends, 0.99)))
	}
	t.add(title+"raw append, p50", "ms", millis(quantile(raw, 0.50)))
	t.add(title+"raw append, p99", "ms", millis(quantile(raw, 0.99)))
	t.add(title+"server's CPU per commit", "µs", micros(after.cpu-before.cpu)/float64(len(commits)))
	t.add(title+"load's CPU per commit", "µs", micros(after.loadCPU-before.loadCPU)/float64(len(commits)))
	return w, all.leave(ctx)
}

// loadUse is what was used so far, and what Siltstone's appends took.
type loadUse struct {
	use
	appends buckets
}

func (t *groupTurn) use(ctx context.Context) (u loadUse, err error) {
	if u.use, err = t.s.used(ctx); err != nil {
		return u, err
	}
	u.appends, err = t.s.groupAppends(ctx)
	return u, err
}

// heartbeats measures what one costs the server.
func (t *groupTurn) heartbeats(ctx context.Context) error {
	const perSecond = 5000
	all, err := t.committers(ctx, spreadGroups("beat", t.o.groups))
	if err != nil {
		return err
	}
	defer all.close()
	before, err := t.s.usage()
	if err != nil {
		return err
	}
	var sent int
	title := fmt.Sprintf("%d heartbeats a second: ", perSecond)
	err = t.profiled(ctx, title, func(ctx context.Context) (err error) {
		sent, err = all.beat(ctx, perSecond, t.o.duration)
		return err
	})
	if err != nil {
		return err
	}
	after, err := t.s.usage()
	if err != nil {
		return err
	}
	t.add(title+"server's CPU per heartbeat", "µs", micros(after.cpu-before.cpu)/float64(sent))
	return all.leave(ctx)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
