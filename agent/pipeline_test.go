package agent

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	bfaulty "github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

// TestUploadsOverlapAndAppendsJoin: uploads do not wait for each other, up to
// their bound; a shard's appends do, and take along all objects that wait.
func TestUploadsOverlapAndAppendsJoin(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.adjust = func(o *Options) { o.Flush.Bytes, o.Flush.Uploads = 1<<20, 4 }
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		var uploads, mostUploads, appends, mostAppends atomic.Int64
		enter := func(n, most *atomic.Int64) {
			if now := n.Add(1); now > most.Load() {
				most.Store(now)
			}
		}
		r.set(func() {
			r.fate = func(op bfaulty.Op, _ string) bfaulty.Fate {
				if op != bfaulty.Put {
					return bfaulty.Fate{}
				}
				enter(&uploads, &mostUploads)
				time.AfterFunc(time.Second-1, func() { uploads.Add(-1) })
				return bfaulty.Fate{Delay: time.Second}
			}
			r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
				if c.Op == cfaulty.Append && c.Name == shard.Ledger(shard.Of(tp)) {
					enter(&appends, &mostAppends)
					defer appends.Add(-1)
					time.Sleep(4 * time.Second)
				}
				return do(ctx)
			}
		})
		const objects = 12
		start := time.Now()
		var sent []*siltstone.AppendRequest
		for range objects {
			sent = append(sent, a.send(tp, -1, aBatch(t, 1, 1, strings.Repeat("x", 1<<20))))
		}
		for i, req := range sent {
			if <-req.Done; req.Parts[0].Err != nil || req.Parts[0].Base != siltstone.Offset(i) {
				t.Errorf("batch %d: %+v", i, req.Parts[0])
			}
		}
		// The first upload is over after a second, its append after five; all the
		// others are uploaded by then, and need one append more.
		if took := time.Since(start); took != 9*time.Second {
			t.Errorf("took %v, want 9s", took)
		}
		if n := mostUploads.Load(); n != 4 {
			t.Errorf("%d uploads at once, want 4", n)
		}
		if n := mostAppends.Load(); n != 1 {
			t.Errorf("%d appends to one ledger at once", n)
		}
		entries, err := r.coord.Read(context.Background(), shard.Ledger(shard.Of(tp)), 0, 100)
		if err != nil || len(entries) != 4 { // Lead, Open, two Segments
			t.Errorf("%d entries for %d objects, %v", len(entries), objects, err)
		}
	})
}
