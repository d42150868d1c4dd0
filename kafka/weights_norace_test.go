//go:build !race

package kafka

// The race detector allocates too, so this is run without it: by scripts/test
// in a run of its own.

import (
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestWeights: no request, decoded, served and answered, costs more memory
// than its API's weight says, in lengths of its frame.
func TestWeights(t *testing.T) {
	const n = 3000
	f := start(t)
	f.create("t", n)
	for _, a := range f.server.apis {
		if a == nil || a.key == kmsg.Produce { // see TestDecodeProduceCounts
			continue
		}
		worst, where := 0.0, ""
		for version := a.min; version <= a.max; version++ {
			measure := func(path string, q kmsg.Request) {
				q.SetVersion(version)
				body := q.AppendTo(nil)
				if len(body) < n { // has no such list
					return
				}
				out, _ := newOutbox(t)
				r := &request{server: f.server, api: a, version: version, body: body, size: len(body), frame: newBuffer(len(body)), arrived: time.Now()}
				r.held = int64(r.size) * a.weight
				if !f.server.memory.TryAcquire(r.held) {
					t.Fatal("there is no memory")
				}
				defer r.release()
				c := newConn(t.Context(), f.server, &wire{}, 1)
				if cost := allocated(func() { serve(t, c, r, out) }) / float64(len(body)); cost > worst {
					worst, where = cost, path
				}
			}
			lists(func() kmsg.Request {
				q := a.key.Request()
				q.SetVersion(version)
				return q
			}, n, measure)
			costly(a.key, n, measure)
		}
		t.Logf("%-26s %6.1f %s (%d)", a.name, worst, where, a.weight)
		if worst > float64(a.weight) {
			t.Errorf("%s costs %.0f times its length, by %s; its weight is %d", a.name, worst, where, a.weight)
		}
	}
}

// TestWaitingFactors: a request that waits for other members costs no more
// memory than it says, in lengths of its frame.
func TestWaitingFactors(t *testing.T) {
	const n = 50_000
	f := start(t)
	for key, factor := range map[kmsg.Key]int64{kmsg.JoinGroup: joinFactor, kmsg.SyncGroup: syncFactor} {
		a := f.server.api(int16(key))
		worst, where := 0.0, ""
		for version := a.min; version <= a.max; version++ {
			measure := func(path string, q kmsg.Request) {
				q.SetVersion(version)
				body := q.AppendTo(nil)
				if len(body) < n {
					return
				}
				r := &request{server: f.server, api: a, version: version, body: body, size: len(body), frame: newBuffer(len(body))}
				r.held = int64(r.size) * a.weight
				if !f.server.memory.TryAcquire(r.held) {
					t.Fatal("there is no memory")
				}
				defer r.release()
				c := newConn(t.Context(), f.server, &wire{}, 1)
				before := heap()
				waits, err := a.start(c, r)
				cost := (heap() - before) / float64(len(body))
				if err != nil || r.held != int64(r.size)*factor {
					t.Errorf("%s: %v, %d bytes held", path, err, r.held)
				}
				if cost > worst {
					worst, where = cost, path
				}
				runtime.KeepAlive(waits)
			}
			lists(func() kmsg.Request {
				q := a.key.Request()
				q.SetVersion(version)
				return q
			}, n, measure)
			costly(a.key, n, measure)
		}
		t.Logf("%-26s %6.1f %s (%d)", a.name, worst, where, factor)
		if worst > float64(factor) {
			t.Errorf("%s costs %.0f times its length while it waits, by %s; it says %d", a.name, worst, where, factor)
		}
	}
}

// heap is how many bytes are in use.
func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

func serve(t *testing.T, c *conn, r *request, out *outbox) {
	a, err := r.api.start(c, r)
	if err == nil {
		err = a.respond(t.Context(), out)
	}
	if err != nil {
		t.Error(err)
	}
}
