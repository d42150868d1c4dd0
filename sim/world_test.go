package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// A toy is a program with the shape of an agent: a loop, workers that do its
// I/O, a goroutine for each connection. It answers each frame once it is
// stored and its entry appended.
func toy(ctx context.Context, n *node) error {
	inbox := make(chan func())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			c, err := n.listener.Accept()
			if err != nil {
				return
			}
			go toyConn(ctx, n, c, inbox)
		}
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case do := <-inbox:
			do()
		case <-tick.C:
			n.log.Info("tick")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func toyConn(ctx context.Context, n *node, c net.Conn, inbox chan<- func()) {
	defer c.Close()
	for {
		frame := make([]byte, 8)
		_ = c.SetReadDeadline(time.Now().Add(3 * time.Second))
		if _, err := io.ReadFull(c, frame); err != nil {
			return
		}
		number := binary.BigEndian.Uint64(frame)
		done := make(chan error, 2)
		select {
		case inbox <- func() {
			// Two workers at once, which the driver must put in order.
			go func() { done <- toyStore(ctx, n, number) }()
			go func() { done <- toyAppend(ctx, n, number) }()
		}:
		case <-ctx.Done():
			return
		}
		err := errors.Join(<-done, <-done)
		if _, err := fmt.Fprintf(c, "%016x %v\n", number, err == nil); err != nil {
			return
		}
	}
}

func toyStore(ctx context.Context, n *node, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return nodeBucket{n}.Put(ctx, fmt.Sprintf("%s/%d", n.name, number), bucket.Body{[]byte("body")})
}

func toyAppend(ctx context.Context, n *node, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	e := coordinator.Entry{Seq: coordinator.Seq(number), Data: []byte("entry")}
	return nodeCoordinator{n}.Append(ctx, "toys", e)
}

// A toyClient sends frames on one connection, several before an answer.
type toyClient struct {
	world *world
	name  string
	sent  uint64
	heard int
}

func (t *toyClient) opened(c *conn) { t.more(c) }
func (t *toyClient) more(c *conn) {
	for range 3 {
		t.sent++
		c.send(binary.BigEndian.AppendUint64(nil, t.sent))
	}
}

func (t *toyClient) received(c *conn, b []byte) {
	t.heard += bytes.Count(b, []byte("\n"))
	t.world.tracef("%s hears %q", t.name, b)
	if bytes.HasSuffix(b, []byte("\n")) {
		t.more(c)
	}
}

func (t *toyClient) closed(_ *conn, err error) {
	t.world.tracef("%s: %v", t.name, err)
	t.world.after(100*time.Millisecond, func() { t.world.dial("a", t.name, t) })
}

// toyWorld runs toys in bad weather, with crashes and pauses, and returns the trace.
func toyWorld(t *testing.T, seed uint64) (trace string, heard int) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed)
		bad := trouble{fast: time.Millisecond, usual: 9 * time.Millisecond, slow: .05, fail: .1, lost: .05, late: .05, never: .05, stall: .05}
		w.weather.bucket, w.weather.coordinator = bad, bad
		w.weather.network.cut, w.weather.network.split, w.weather.network.refuse = .01, .2, .1
		clients := make([]*toyClient, 4)
		for i := range clients {
			clients[i] = &toyClient{world: w, name: fmt.Sprintf("c%d", i)}
			w.dial("a", clients[i].name, clients[i])
		}
		for range 4 {
			n := w.boot("a", toy)
			w.pass(2 * time.Second)
			n.pause()
			w.pass(time.Second)
			n.resume()
			w.pass(2 * time.Second)
			n.crash()
			if !w.run(n.gone, 10*time.Second) {
				t.Errorf("%s goes on after its end", n.name)
			}
		}
		w.skip(31 * 24 * time.Hour)
		for _, c := range clients {
			heard += c.heard
		}
		if got := w.now.Sub(w.start); got < 31*24*time.Hour {
			t.Errorf("a month off took %v", got)
		}
		trace = w.trace.String()
	})
	return trace, heard
}

// TestOneSeedOneTrace is the first test: without it no other means anything.
func TestOneSeedOneTrace(t *testing.T) {
	for _, procs := range []int{2, 1, runtime.NumCPU()} {
		before := runtime.GOMAXPROCS(procs)
		t.Cleanup(func() { runtime.GOMAXPROCS(before) })
		for seed := range uint64(5) {
			first, heard := toyWorld(t, seed)
			if heard < 20 {
				t.Fatalf("seed %d: only %d answers: this shows little", seed, heard)
			}
			for range 4 {
				again, _ := toyWorld(t, seed)
				compareTraces(t, seed, first, again)
			}
		}
	}
	a, _ := toyWorld(t, 1)
	b, _ := toyWorld(t, 2)
	if a == b {
		t.Error("two seeds gave one trace")
	}
}

func compareTraces(t *testing.T, seed uint64, a, b string) {
	t.Helper()
	if a == b {
		return
	}
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range as {
		if i >= len(bs) || as[i] != bs[i] {
			t.Fatalf("seed %d: traces part at line %d:\n%s\n\nand\n%s", seed, i,
				strings.Join(as[max(0, i-5):min(len(as), i+5)], "\n"), strings.Join(bs[max(0, min(i-5, len(bs))):min(len(bs), i+5)], "\n"))
		}
	}
	t.Fatalf("seed %d: one trace has %d lines, another %d", seed, len(as), len(bs))
}
