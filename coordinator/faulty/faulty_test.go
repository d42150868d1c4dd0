package faulty_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/memory"
)

var slot1 = coordinator.Entry{Seq: 1, Nonce: coordinator.Nonce{1}, Data: []byte("one")}

func filled(t *testing.T, c coordinator.Coordinator) bool {
	t.Helper()
	got, err := c.Read(t.Context(), "a", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	return len(got) == 1 && string(got[0].Data) == "one"
}

func TestFailBefore(t *testing.T) {
	store, failure := memory.New(), errors.New("no")
	c := faulty.Wrap(store, func(context.Context, faulty.Call, func(context.Context) error) error { return failure })
	if err := c.Append(t.Context(), "a", slot1); !errors.Is(err, failure) {
		t.Errorf("append: %v", err)
	}
	if filled(t, store) {
		t.Error("it landed")
	}
}

func TestLoseReply(t *testing.T) {
	store := memory.New()
	c := faulty.Wrap(store, faulty.LoseReply)
	if err := c.Append(t.Context(), "a", slot1); !errors.Is(err, coordinator.ErrUnknown) {
		t.Errorf("append: %v", err)
	}
	if !filled(t, store) {
		t.Error("it did not land")
	}
	if got, err := c.Read(t.Context(), "a", 0, 1); got != nil || err == nil || errors.Is(err, coordinator.ErrUnknown) {
		t.Errorf("read: %v, %v", got, err)
	}
}

func TestLandLateAndTwice(t *testing.T) {
	store := memory.New()
	var late func(context.Context) error
	var seen faulty.Call
	c := faulty.Wrap(store, func(_ context.Context, call faulty.Call, do func(context.Context) error) error {
		seen, late = call, do
		return faulty.Unanswered(call)
	})
	ctx, cancel := context.WithCancel(t.Context())
	e := slot1
	e.Data = []byte("one")
	if err := c.Append(ctx, "a", e); !errors.Is(err, coordinator.ErrUnknown) {
		t.Errorf("append: %v", err)
	}
	if want := (faulty.Call{Op: faulty.Append, Name: "a", Seq: 1, Mark: e.Nonce}); seen != want {
		t.Errorf("the hook saw %+v, want %+v", seen, want)
	}
	cancel()
	clear(e.Data) // the caller has it back
	if filled(t, store) {
		t.Fatal("it landed at once")
	}
	if err := late(context.Background()); err != nil || !filled(t, store) {
		t.Fatalf("landing: %v", err)
	}
	var conflict *coordinator.Conflict
	if err := late(context.Background()); !errors.As(err, &conflict) {
		t.Fatalf("landing again: %v", err)
	}
}

func TestDelayIsDurablyBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, let := memory.New(), make(chan struct{})
		c := faulty.Wrap(store, func(ctx context.Context, call faulty.Call, do func(context.Context) error) error {
			select {
			case <-let:
				return do(ctx)
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		done := make(chan error)
		go func() { done <- c.Append(t.Context(), "a", slot1) }()
		synctest.Wait()
		if filled(t, store) {
			t.Error("it landed before its time")
		}
		close(let)
		if err := <-done; err != nil || !filled(t, store) {
			t.Errorf("append: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		let = nil
		if err := c.Append(ctx, "a", slot1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("append: %v", err)
		}
	})
}
