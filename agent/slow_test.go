package agent

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	cfaulty "github.com/siltstone-io/siltstone/coordinator/faulty"
	bfaulty "github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

// logged is what an agent has logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.text.String()), "\n")
}

func (r *rig) log() *logged {
	l := &logged{}
	r.adjust = func(o *Options) { o.Log = slog.New(slog.NewTextHandler(l, nil)) }
	return l
}

// slowPuts makes objects of records take a while to be stored.
func (r *rig) slowPuts(delay time.Duration) {
	r.set(func() {
		r.fate = func(op bfaulty.Op, _ string) bfaulty.Fate {
			if op == bfaulty.Put {
				return bfaulty.Fate{Delay: delay}
			}
			return bfaulty.Fate{}
		}
	})
}

// TestSlowStores: a disk on which all takes seconds delays acknowledgements,
// and costs nothing else.
func TestSlowStores(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		r.slowPuts(5 * time.Second)
		r.set(func() {
			r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
				if c.Op == cfaulty.Append {
					time.Sleep(3 * time.Second)
				}
				return do(ctx)
			}
		})
		var sent []*siltstone.AppendRequest
		var want []string
		for n := range 20 {
			want = append(want, fmt.Sprint("v", n))
			sent = append(sent, a.send(tp, -1, aBatch(t, 1, 1, want[n])))
			time.Sleep(100 * time.Millisecond)
		}
		if part := a.fetch(tp, 0, 1<<20, 0); len(part.Records) > 0 || part.HighWatermark != 0 {
			t.Errorf("records are read before they are safe: high watermark %d", part.HighWatermark)
		}
		for n, req := range sent {
			<-req.Done
			if err := req.Parts[0].Err; err != nil || req.Parts[0].Base != siltstone.Offset(n) {
				t.Errorf("record %d: offset %d, %v", n, req.Parts[0].Base, err)
			}
		}
		if s := a.Status(); !s.Ready {
			t.Errorf("slow is not broken: %+v", s)
		}
		wantValues(t, a.readAll(tp, 0), want...)
	})
}

// TestTooSlowStores: what takes longer than anybody waits is trouble like any
// other, until it passes.
func TestTooSlowStores(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		log := r.log()
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
		r.slowPuts(2 * tryTimeout)
		req := a.send(tp, -1, aBatch(t, 1, 1, "late"))
		<-req.Done
		time.Sleep(2 * retryMost)
		if err := req.Parts[0].Err; err == nil {
			t.Error("acknowledged before it is stored")
		}
		if s := a.Status(); s.Ready || !strings.Contains(s.Why, "deadline exceeded") {
			t.Errorf("nothing can be stored: %+v", s)
		}
		r.set(func() { r.fate = nil })
		if _, err := a.produce(tp, -1, aBatch(t, 1, 1, "on time")); err != nil {
			t.Error(err)
		}
		if s := a.Status(); !s.Ready {
			t.Errorf("it is over: %+v", s)
		}
		wantValues(t, a.readAll(tp, 0), "late", "on time")
		if lines := log.lines(); len(lines) != 2 || !strings.Contains(lines[1], "again") {
			t.Errorf("logged %q, want that it begins, and that it is over", lines)
		}
	})
}

// TestTroubleIsSaidOnce: hours of a full disk are a few lines of log, and so
// are hours of one that is now full and now not.
func TestTroubleIsSaidOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		log := r.log()
		a := r.start()
		tp := siltstone.TopicPartition{Topic: a.create("t", 8)}
		var full atomic.Bool
		full.Store(true)
		r.set(func() {
			r.fate = func(op bfaulty.Op, _ string) bfaulty.Fate {
				if full.Load() && op == bfaulty.Put {
					return bfaulty.Fate{Err: syscall.ENOSPC}
				}
				return bfaulty.Fate{}
			}
			r.hook = func(ctx context.Context, c cfaulty.Call, do func(context.Context) error) error {
				if full.Load() && c.Op == cfaulty.Append {
					return fmt.Errorf("%w: %w", siltstone.ErrUnavailable, syscall.ENOSPC)
				}
				return do(ctx)
			}
		})
		for p := range int32(8) {
			tp.Partition = p
			a.send(tp, -1, aBatch(t, 1, 1, "x"))
			time.Sleep(10 * time.Minute)
		}
		if s := a.Status(); s.Ready || !strings.Contains(s.Why, "no space left") {
			t.Errorf("the disk is full: %+v", s)
		}
		if lines := log.lines(); len(lines) > 2 || !strings.Contains(lines[0], "no space left") {
			t.Errorf("%d lines, want one or two: %q", len(lines), lines)
		}
		before := len(log.lines())
		const minutes = 30
		for range minutes * 60 {
			full.Store(!full.Load())
			req := a.send(tp, 1, aBatch(t, 1, 1, "y"))
			time.Sleep(time.Second)
			<-req.Done
		}
		if n := len(log.lines()) - before; n > 6*minutes {
			t.Errorf("%d lines in %d minutes", n, minutes)
		}
	})
}
