package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// Members of the groups whose memory is measured, and offsets of each group.
const memoryMembers, memoryOffsets = 10, 100

// memory measures what groups of some members and offsets take. They stay: what
// is measured later is measured beside them.
func (t *groupTurn) memory(ctx context.Context) error {
	before, err := t.memoryNow(ctx)
	if err != nil {
		return err
	}
	const workers = 4
	g, forming := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() error {
			conns, err := t.connect(forming, memoryMembers)
			if err != nil {
				return err
			}
			defer closeAll(conns)
			for i := w; i < t.o.groups; i += workers {
				if err := t.formAndLeaveAlone(forming, fmt.Sprintf("memory-%d", i), conns); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	after, err := t.memoryNow(ctx)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("%d groups of %d members and %d offsets: ", t.o.groups, memoryMembers, memoryOffsets)
	each := func(bytes int64) float64 { return float64(bytes) / float64(t.o.groups) / 1024 }
	t.add(title+heapPerGroup, "KiB", each(after.heapBytes-before.heapBytes))
	t.add(title+"RSS per group", "KiB", each(after.rssBytes-before.rssBytes))
	return nil
}

// formAndLeaveAlone makes a group whose members then are as silent as clients
// between their heartbeats.
func (t *groupTurn) formAndLeaveAlone(ctx context.Context, id string, conns []*connection) error {
	c := newCrew(ctx, id, t.topic, 10*time.Millisecond)
	for _, conn := range conns {
		c.add(conn, nil)
	}
	if _, err := c.settled(len(conns)); err != nil {
		return err
	}
	first := c.members[0]
	if err := c.dismiss(false); err != nil {
		return err
	}
	return first.commit(ctx, 0, memoryOffsets, 1)
}

// memoryUse is of a server's process.
type memoryUse struct {
	heapBytes int64 // reachable
	rssBytes  int64
}

func (t *groupTurn) memoryNow(ctx context.Context) (m memoryUse, err error) {
	if t.s.heap != nil {
		if m.heapBytes, err = t.s.heap(ctx); err != nil {
			return m, err
		}
	}
	m.rssBytes, err = t.s.rss()
	return m, err
}

// rss is the resident memory of all servers.
func (s *server) rss() (sum int64, err error) {
	for _, one := range s.all() {
		if one.pid == 0 {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", one.pid))
		if err != nil {
			return 0, err
		}
		bytes, err := parseStatus(status, "VmRSS:")
		if err != nil {
			return 0, err
		}
		sum += bytes
	}
	return sum, nil
}

var allocatedLine = regexp.MustCompile(`(?m)^go_memstats_alloc_bytes_total (\S+)$`)

// allocated is how many bytes a Siltstone has allocated so far; of a JVM it is
// not to be had from outside.
func (s *server) allocated(ctx context.Context) (int64, error) {
	if s.metrics == "" {
		return 0, nil
	}
	page, err := get(ctx, "http://"+s.metrics+"/metrics")
	if err != nil {
		return 0, err
	}
	m := allocatedLine.FindSubmatch(page)
	if m == nil {
		return 0, fmt.Errorf("no %v on a page of metrics", allocatedLine)
	}
	bytes, err := strconv.ParseFloat(string(m[1]), 64)
	return int64(bytes), err
}

var goHeapLine = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// goHeap is what a Go process has allocated, after a garbage collection.
func goHeap(profiles string) func(ctx context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		page, err := get(ctx, "http://"+profiles+"/debug/pprof/heap?gc=1&debug=1")
		if err != nil {
			return 0, err
		}
		return parseHeap(page, goHeapLine, 1)
	}
}

var javaHeapLine = regexp.MustCompile(`heap\s+total \d+K, used (\d+)K`)

// javaHeap is what a JVM has allocated, after a garbage collection.
func javaHeap(ctx context.Context, pid int) (int64, error) {
	var out []byte
	for _, command := range []string{"GC.run", "GC.heap_info"} {
		var err error
		if out, err = exec.CommandContext(ctx, "jcmd", strconv.Itoa(pid), command).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("jcmd %s: %w: %s", command, err, out)
		}
	}
	return parseHeap(out, javaHeapLine, 1<<10)
}

func parseHeap(text []byte, line *regexp.Regexp, unitBytes int64) (int64, error) {
	m := line.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no %v in %.200q", line, text)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	return n * unitBytes, err
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, page)
	}
	return page, err
}
