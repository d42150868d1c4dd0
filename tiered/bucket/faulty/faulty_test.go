package faulty_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/buckettest"
	"github.com/siltstone-io/siltstone/tiered/bucket/faulty"
	"github.com/siltstone-io/siltstone/tiered/bucket/memory"
)

func TestSuite(t *testing.T) {
	buckettest.Run(t, func(*testing.T) bucket.Bucket {
		return faulty.Wrap(memory.New(), func(faulty.Op, string) faulty.Fate { return faulty.Fate{Delay: time.Microsecond} })
	})
}

var errLost = errors.New("the reply is lost")

func TestFates(t *testing.T) {
	body := bucket.Body{[]byte("0123"), []byte("4567")}
	for _, c := range []struct {
		name            string
		fate            faulty.Fate
		wantErr         error
		thereAt, landed bool          // right after the call; after Wait
		took, waited    time.Duration // the call; and Wait, from the start
	}{
		{"through", faulty.Fate{}, nil, true, true, 0, 0},
		{"slow", faulty.Fate{Delay: time.Second}, nil, true, true, time.Second, time.Second},
		{"failed", faulty.Fate{Err: errLost}, errLost, false, false, 0, 0},
		{"applied", faulty.Fate{Err: errLost, Applied: true, Delay: time.Second}, errLost, true, true, time.Second, time.Second},
		{"late", faulty.Fate{Err: errLost, Delay: time.Second, Late: time.Minute}, errLost, false, true, time.Second, 61 * time.Second},
		{"late for a dead caller", faulty.Fate{Err: errLost, Delay: time.Hour, Late: time.Minute}, context.DeadlineExceeded, false, true, 10 * time.Second, 61 * time.Minute},
		{"slow for a dead caller", faulty.Fate{Delay: time.Hour}, context.DeadlineExceeded, false, false, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New()
				b := faulty.Wrap(inner, func(faulty.Op, string) faulty.Fate { return c.fate })
				there := func() bool {
					_, err := inner.Size(t.Context(), "k")
					return err == nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				start := time.Now()
				if err := b.Put(ctx, "k", body); !errors.Is(err, c.wantErr) {
					t.Errorf("Put: %v, want %v", err, c.wantErr)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("Put took %v, want %v", took, c.took)
				}
				if there() != c.thereAt {
					t.Errorf("after the call the object is there: %v", there())
				}
				b.Wait()
				if waited := time.Since(start); waited != c.waited {
					t.Errorf("all has landed after %v, want %v", waited, c.waited)
				}
				if there() != c.landed {
					t.Errorf("in the end the object is there: %v", there())
				}
			})
		})
	}
}

func TestReplyAndDelete(t *testing.T) {
	inner := memory.New()
	fates := map[faulty.Op]faulty.Fate{
		faulty.Get:    {Reply: func(b []byte) []byte { return b[:len(b)-1] }},
		faulty.Delete: {Err: errLost, Applied: true},
		faulty.List:   {Err: errLost},
		faulty.Size:   {Err: errLost},
	}
	b := faulty.Wrap(inner, func(op faulty.Op, _ string) faulty.Fate { return fates[op] })
	if err := b.Put(t.Context(), "k", bucket.Body{[]byte("whole")}); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(t.Context(), "k", 0, -1); err != nil || string(got) != "whol" {
		t.Errorf("Get = %q, %v; want it cut", got, err)
	}
	if _, err := b.List(t.Context(), "", "", 1); !errors.Is(err, errLost) {
		t.Errorf("List: %v", err)
	}
	if _, err := b.Size(t.Context(), "k"); !errors.Is(err, errLost) {
		t.Errorf("Size: %v", err)
	}
	if err := b.Delete(t.Context(), []string{"k"}); !errors.Is(err, errLost) {
		t.Errorf("Delete: %v", err)
	}
	if _, err := inner.Size(t.Context(), "k"); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("after a Delete whose reply was lost: %v", err)
	}
}
