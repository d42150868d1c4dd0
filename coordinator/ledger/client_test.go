package ledger_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// script gives the first calls of one method the fates listed; the rest pass.
func script(op faulty.Op, fates ...faulty.Hook) faulty.Hook {
	return func(ctx context.Context, c faulty.Call, do func(context.Context) error) error {
		if c.Op != op || len(fates) == 0 {
			return do(ctx)
		}
		fate := fates[0]
		fates = fates[1:]
		return fate(ctx, c, do)
	}
}

var errRefused = errors.New("refused")

func refuse(context.Context, faulty.Call, func(context.Context) error) error { return errRefused }

func dropped(_ context.Context, c faulty.Call, _ func(context.Context) error) error {
	return faulty.Unanswered(c)
}

// behind is a fate that others get ahead of.
func behind(others func()) faulty.Hook {
	return func(ctx context.Context, _ faulty.Call, do func(context.Context) error) error {
		others()
		return do(ctx)
	}
}

func TestAppend(t *testing.T) {
	const won, lost, trimmed = "won", "lost", "trimmed"
	others := func(r rig, bodies ...string) faulty.Hook {
		return behind(func() { r.fill(t, newLog(), 0, bodies...) })
	}
	trimTo := func(r rig, through coordinator.Seq) {
		if err := r.store.Trim(t.Context(), "toy", through); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		hook func(r rig) faulty.Hook
		want string
		read []string // with it, or instead of it
	}{
		"plain": {func(rig) faulty.Hook { return faulty.Transparent }, won, nil},
		"landed, the reply lost": {func(rig) faulty.Hook {
			return script(faulty.Append, faulty.LoseReply)
		}, won, nil},
		"not landed, no reply": {func(rig) faulty.Hook {
			return script(faulty.Append, dropped, dropped)
		}, won, nil},
		"refused": {func(rig) faulty.Hook {
			return script(faulty.Append, refuse, refuse, refuse)
		}, won, nil},
		"landed, the reply lost, then refused": {func(rig) faulty.Hook {
			return script(faulty.Append, faulty.LoseReply, refuse)
		}, won, nil},
		"another was first": {func(r rig) faulty.Hook {
			return script(faulty.Append, others(r, "x"))
		}, lost, []string{"x"}},
		"not landed, then another was first": {func(r rig) faulty.Hook {
			return script(faulty.Append, dropped, others(r, "x", "y"))
		}, lost, []string{"x", "y"}},
		"the floor cannot be read at first": {func(rig) faulty.Hook {
			return script(faulty.Floor, refuse, refuse, refuse, refuse, refuse, refuse)
		}, won, nil},
		"the winner cannot be read at first": {func(r rig) faulty.Hook {
			first := script(faulty.Append, others(r, "x"))
			then := script(faulty.Read, refuse, refuse, refuse, refuse, refuse, refuse)
			return func(ctx context.Context, c faulty.Call, do func(context.Context) error) error {
				return first(ctx, c, func(ctx context.Context) error { return then(ctx, c, do) })
			}
		}, lost, []string{"x"}},
		"the slot was trimmed before": {func(r rig) faulty.Hook {
			return script(faulty.Append, behind(func() {
				r.fill(t, newLog(), 0, "x", "y")
				trimTo(r, 1)
			}))
		}, trimmed, nil},
		"the slot is trimmed after, and it had won": {func(r rig) faulty.Hook {
			return script(faulty.Floor, behind(func() { trimTo(r, 1) }))
		}, trimmed, nil},
		"lost to one that is trimmed": {func(r rig) faulty.Hook {
			lost, trim := script(faulty.Append, others(r, "x", "y")), script(faulty.Floor, behind(func() { trimTo(r, 1) }))
			return func(ctx context.Context, c faulty.Call, do func(context.Context) error) error {
				return lost(ctx, c, func(ctx context.Context) error { return trim(ctx, c, do) })
			}
		}, trimmed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			c := r.client(faulty.Wrap(r.store, test.hook(r)), r.bucket)
			l := newLog()
			p := mustPropose(t, l, "mine", 0, nonce(1))
			o, err := c.Append(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			changes, err := l.Settle(o)
			switch got := l.Fold().bodies; {
			case l.Busy():
				t.Error("busy after it was settled")
			case test.want == trimmed:
				if !o.Trimmed || o.Won || o.Entries != nil || !errors.Is(err, ledger.ErrTrimmed) {
					t.Errorf("outcome %+v, %v", o, err)
				}
			case test.want == won:
				if !o.Won || err != nil || len(changes) != 1 || !changes[0].Mine || got[0] != "mine" {
					t.Errorf("outcome %+v, %v, folded %q", o, err, got)
				}
			default:
				if o.Won || err != nil || changes[0].Mine {
					t.Errorf("outcome %+v, %v", o, err)
				}
				wantBodies(t, l.Fold(), test.read...)
			}
		})
	}
}

// An append that is not settled when its context ends is unknown if one of its
// tries was, whatever the last one said, and can be gone on with.
func TestAppendGivesUp(t *testing.T) {
	for name, test := range map[string]struct {
		hook    faulty.Hook
		unknown bool
	}{
		"refused":         {script(faulty.Append, refuse, refuse, refuse, refuse, refuse, refuse, refuse, refuse), false},
		"unknown":         {script(faulty.Append, faulty.LoseReply, dropped, dropped, dropped, dropped, dropped, dropped, dropped), true},
		"unknown, once":   {script(faulty.Append, faulty.LoseReply, refuse, refuse, refuse, refuse, refuse, refuse, refuse), true},
		"no floor":        {script(faulty.Floor, refuse, refuse, refuse, refuse, refuse, refuse, refuse, refuse), true},
		"it is not taken": {script(faulty.Append, hang), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				c := ledger.NewClient(ledger.Options{
					Coordinator: faulty.Wrap(r.store, test.hook), Rand: random(1),
					BackoffMin: time.Second, BackoffMax: time.Second,
				})
				p := mustPropose(t, newLog(), "mine", 0, nonce(1))
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				o, err := c.Append(ctx, p)
				if err == nil || errors.Is(err, coordinator.ErrUnknown) != test.unknown {
					t.Errorf("%+v, %v; unknown should be %v", o, err, test.unknown)
				}
				o, err = r.Append(t.Context(), p)
				if err != nil || !o.Won {
					t.Errorf("gone on with: %+v, %v", o, err)
				}
			})
		})
	}
}

func hang(ctx context.Context, _ faulty.Call, _ func(context.Context) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// A call that hangs is given up and made again.
func TestTryTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		hook := script(faulty.Append, hang, func(ctx context.Context, c faulty.Call, do func(context.Context) error) error {
			_ = do(ctx)
			<-ctx.Done()
			return faulty.Unanswered(c)
		})
		start := time.Now()
		o, err := r.client(faulty.Wrap(r.store, hook), nil).Append(t.Context(), mustPropose(t, newLog(), "mine", 0, nonce(1)))
		if took := time.Since(start).Round(time.Second); err != nil || !o.Won || took != 10*time.Second {
			t.Errorf("%+v, %v after %v", o, err, took)
		}
	})
}

func TestRead(t *testing.T) {
	r := newRig()
	l := newLog()
	if o, err := r.Read(t.Context(), "toy", 0, 10); err != nil || o.Trimmed || len(o.Entries) != 0 {
		t.Errorf("an empty ledger: %+v, %v", o, err)
	}
	r.fill(t, l, 0, numbered(5)...)
	if o, err := r.Read(t.Context(), "toy", 1, 2); err != nil || len(o.Entries) != 2 || o.Entries[0].Seq != 2 {
		t.Errorf("two after 1: %+v, %v", o, err)
	}
	if err := r.store.Trim(t.Context(), "toy", 2); err != nil {
		t.Fatal(err)
	}
	for after, trimmed := range []bool{true, true, false, false, false, false} {
		o, err := r.Read(t.Context(), "toy", coordinator.Seq(after), 10)
		if err != nil || o.Trimmed != trimmed || o.Floor != 2 || len(o.Entries) != map[bool]int{false: 5 - after}[trimmed] {
			t.Errorf("after %d: %+v, %v", after, o, err)
		}
	}
	// What a stalled writer left in a trimmed slot is not to be folded.
	late := coordinator.Entry{Seq: 1, Nonce: nonce(9), Data: []byte("late")}
	if err := r.store.Append(t.Context(), "toy", late); err != nil {
		t.Fatal(err)
	}
	if o, err := r.Read(t.Context(), "toy", 0, 1); err != nil || !o.Trimmed || o.Entries != nil {
		t.Errorf("a trimmed slot, filled: %+v, %v", o, err)
	}
	// A hole above the floor is damage.
	if err := r.store.Append(t.Context(), "toy", coordinator.Entry{Seq: 7}); err != nil {
		t.Fatal(err)
	}
	if o, err := r.Read(t.Context(), "toy", 5, 1); !errors.Is(err, siltstone.ErrCorrupt) || !errors.Is(err, coordinator.ErrGap) {
		t.Errorf("a hole: %+v, %v", o, err)
	}
}

// A floor raised between the read and the look at the floor counts.
func TestReadChecksFloorAfter(t *testing.T) {
	r := newRig()
	r.fill(t, newLog(), 0, numbered(3)...)
	hook := script(faulty.Floor, behind(func() {
		if err := r.store.Trim(t.Context(), "toy", 1); err != nil {
			t.Error(err)
		}
	}))
	o, err := r.client(faulty.Wrap(r.store, hook), nil).Read(t.Context(), "toy", 0, 10)
	if err != nil || !o.Trimmed || o.Entries != nil {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestReadTriesAgain(t *testing.T) {
	r := newRig()
	r.fill(t, newLog(), 0, "a")
	c := r.client(faulty.Wrap(r.store, script(faulty.Read, refuse, refuse)), nil)
	if o, err := c.Read(t.Context(), "toy", 0, 10); err != nil || len(o.Entries) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	c = r.client(faulty.Wrap(r.store, script(faulty.Read, refuse, refuse, refuse, refuse, refuse)), nil)
	if _, err := c.Read(t.Context(), "toy", 0, 10); !errors.Is(err, errRefused) {
		t.Errorf("for ever: %v", err)
	}
}
