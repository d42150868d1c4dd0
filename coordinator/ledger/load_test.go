package ledger_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

func TestFoldOfCheckpointAndTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, l := newRig(), newLog()
		bodies := rapid.SliceOfN(rapid.String(), 1, 40).Draw(t, "bodies")
		saved := ledger.Position{}
		for _, body := range bodies {
			p := mustPropose(t, l, body, 0, nonce(1, byte(l.Position().Seq)))
			o, err := r.Append(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Settle(o); err != nil {
				t.Fatal(err)
			}
			switch rapid.IntRange(0, 9).Draw(t, "then") {
			case 0:
				saved = l.Position()
				if err := r.SaveCheckpoint(context.Background(), l.Checkpoint()); err != nil {
					t.Fatal(err)
				}
			case 1:
				if err := r.store.Trim(context.Background(), "toy", coordinator.Seq(rapid.Uint64Range(0, uint64(saved.Seq)).Draw(t, "trim"))); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := r.load(t)
		wantBodies(t, got.Fold, bodies...)
		if got.At != l.Position() || got.Checkpoint != saved || len(got.Tail) != len(bodies)-int(saved.Seq) {
			t.Fatalf("loaded at %v from %v with %d entries after; want %v, %v", got.At, got.Checkpoint, len(got.Tail), l.Position(), saved)
		}
		// The log goes on from there.
		on := newLog()
		on.Replace(got.Fold, got.At)
		if o, err := r.Append(context.Background(), mustPropose(t, on, "more", 0, nonce(2))); err != nil || !o.Won {
			t.Fatalf("%+v, %v", o, err)
		}
		wantBodies(t, r.load(t).Fold, append(slices.Clone(bodies), "more")...)
	})
}

// What a load has begun with may be trimmed or collected under it.
func TestLoadFoldStartsAgain(t *testing.T) {
	r, l := newRig(), newLog()
	bodies := numbered(10)
	save := func() {
		if err := r.SaveCheckpoint(t.Context(), l.Checkpoint()); err != nil {
			t.Fatal(err)
		}
	}
	r.fill(t, l, 0, bodies[:3]...)
	save()
	old, _, err := r.Newest(t.Context(), "toy")
	if err != nil {
		t.Fatal(err)
	}
	r.fill(t, l, 0, bodies[3:8]...)
	trimmed := script(faulty.Read, behind(func() {
		save()
		if err := r.store.Trim(t.Context(), "toy", 7); err != nil {
			t.Fatal(err)
		}
	}))
	got, err := ledger.LoadFold(t.Context(), r.client(faulty.Wrap(r.store, trimmed), r.bucket), "toy", newToy)
	if err != nil || got.Checkpoint.Seq != 8 {
		t.Fatalf("from %v, %v", got.Checkpoint, err)
	}
	wantBodies(t, got.Fold, bodies[:8]...)

	r.fill(t, l, 0, bodies[8:]...)
	collected := script(faulty.Get, func(ctx context.Context, _ faulty.Call, do func(context.Context) error) error {
		err := do(ctx)
		cp, _, _ := r.Newest(ctx, "toy")
		save()
		return errors.Join(err, r.bucket.Delete(ctx, []string{cp.Key, old.Key}))
	})
	got, err = ledger.LoadFold(t.Context(), r.client(faulty.Wrap(r.store, collected), r.bucket), "toy", newToy)
	if err != nil || got.Checkpoint.Seq != 10 {
		t.Fatalf("from %v, %v", got.Checkpoint, err)
	}
	wantBodies(t, got.Fold, bodies...)
}

// What cannot be loaded is damage, and not tried for ever.
func TestLoadFoldFails(t *testing.T) {
	gone := newRig()
	l := newLog()
	gone.fill(t, l, 0, "a")
	cp, _ := gone.object(t, l.Checkpoint())
	err := errors.Join(gone.bucket.Delete(t.Context(), []string{cp.Key}), gone.store.Trim(t.Context(), "toy", 1))
	if err != nil {
		t.Fatal(err)
	}
	trimmed := newRig()
	trimmed.fill(t, newLog(), 0, "a", "b")
	if err := trimmed.store.Trim(t.Context(), "toy", 1); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]rig{"the object is gone": gone, "trimmed without a checkpoint": trimmed} {
		if _, err := ledger.LoadFold(t.Context(), r.Client, "toy", newToy); !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ledger.LoadFold(t.Context(), gone.Client, "toy", newToy); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("%v does not say what is missing", err)
	}
}

// A checkpoint that is damaged or lost costs nothing as long as an older one,
// or none, and the entries after it are there.
func TestLoadFoldWithoutItsCheckpoint(t *testing.T) {
	bodies := numbered(6)
	for name, lose := range map[string]func(*testing.T, rig, ledger.Checkpoint){
		"lost": func(t *testing.T, r rig, cp ledger.Checkpoint) {
			if err := r.bucket.Delete(t.Context(), []string{cp.Key}); err != nil {
				t.Fatal(err)
			}
		},
		"damaged": flip,
	} {
		t.Run(name, func(t *testing.T) {
			r, l := newRig(), newLog()
			r.fill(t, l, 0, bodies[:2]...)
			older, _ := r.object(t, l.Checkpoint())
			r.fill(t, l, 0, bodies[2:4]...)
			newest, _ := r.object(t, l.Checkpoint())
			r.fill(t, l, 0, bodies[4:]...)
			load := func(from coordinator.Seq) {
				t.Helper()
				got := r.load(t)
				wantBodies(t, got.Fold, bodies...)
				if got.Checkpoint.Seq != from || got.At != l.Position() || len(got.Tail) != len(bodies)-int(from) {
					t.Errorf("loaded from %v to %v with %d entries after, want from %d", got.Checkpoint, got.At, len(got.Tail), from)
				}
			}
			load(4)
			lose(t, r, newest)
			load(2)
			if err := r.store.Trim(t.Context(), "toy", 2); err != nil {
				t.Fatal(err)
			}
			load(2)
			// What only the lost one covers stays, until there is another.
			if floor, err := r.Trim(t.Context(), "toy", time.Hour.Milliseconds()*1000); err == nil || floor != 2 {
				t.Errorf("trimmed through %d on the word of a checkpoint that is lost: %v", floor, err)
			}
			lose(t, r, older)
			if _, err := ledger.LoadFold(t.Context(), r.Client, "toy", newToy); !errors.Is(err, siltstone.ErrCorrupt) {
				t.Errorf("with nothing to start from: %v", err)
			}
			r.object(t, l.Checkpoint()) // whoever has the fold mends it
			load(6)
		})
	}
	t.Run("none is older", func(t *testing.T) {
		r, l := newRig(), newLog()
		r.fill(t, l, 0, bodies...)
		cp, _ := r.object(t, l.Checkpoint())
		flip(t, r, cp)
		got := r.load(t)
		wantBodies(t, got.Fold, bodies...)
		if got.Checkpoint.Seq != 0 || len(got.Tail) != len(bodies) {
			t.Errorf("loaded from %v with %d entries after", got.Checkpoint, len(got.Tail))
		}
	})
}

// flip changes one bit of a checkpoint's object.
func flip(t *testing.T, r rig, cp ledger.Checkpoint) {
	t.Helper()
	b, err := r.bucket.Get(t.Context(), cp.Key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	b = slices.Clone(b)
	b[len(b)/2] ^= 8
	err = errors.Join(r.bucket.Delete(t.Context(), []string{cp.Key}), r.bucket.Put(t.Context(), cp.Key, bucket.Body{b}))
	if err != nil {
		t.Fatal(err)
	}
}

func TestTrim(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	old, young, future := int64(0), 30*hour, 1000*hour
	const now = 48 * hour
	for name, test := range map[string]struct {
		times      []int64
		checkpoint int
		want       coordinator.Seq
	}{
		"nothing there":                    {nil, 0, 0},
		"no checkpoint":                    {[]int64{old, old, old}, 0, 0},
		"covered and old":                  {[]int64{old, old, old, old}, 2, 2},
		"never the newest":                 {[]int64{old, old, old}, 3, 2},
		"only one":                         {[]int64{old}, 1, 0},
		"the first is young":               {[]int64{young, old, old}, 3, 0},
		"up to the first young one":        {[]int64{old, old, young, old, old}, 4, 2},
		"a day old, to the millisecond":    {[]int64{now - 24*hour - 1, now - 24*hour, old}, 3, 1},
		"a clock that was ahead":           {[]int64{old, future, old, young}, 4, 3},
		"a clock that was ahead, at last":  {[]int64{old, future, young, old}, 4, 1},
		"a clock that is slightly ahead":   {[]int64{old, now + hour, old, old}, 4, 1},
		"a clock that was before all time": {[]int64{-future, old, young, old}, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := newRig(), newLog()
			for i, at := range test.times {
				r.fill(t, l, at, "x")
				if i+1 == test.checkpoint {
					r.object(t, l.Checkpoint())
				}
			}
			for range 2 {
				floor, err := r.Trim(t.Context(), "toy", now)
				if err != nil || floor != test.want {
					t.Fatalf("floor %d, %v; want %d", floor, err, test.want)
				}
			}
			if floor, err := r.store.Floor(t.Context(), "toy"); err != nil || floor != test.want {
				t.Errorf("the store's floor is %d, %v; want %d", floor, err, test.want)
			}
			wantBodies(t, r.load(t).Fold, l.Fold().bodies...)
		})
	}
}

// A month's entries go in several calls, all that may.
func TestTrimIsBounded(t *testing.T) {
	r, l := newRig(), newLog()
	const n = 40_000
	r.fill(t, l, 0, make([]string, n)...)
	r.object(t, l.Checkpoint())
	calls, last := 0, coordinator.Seq(0)
	for ; calls < 10; calls++ {
		floor, err := r.Trim(t.Context(), "toy", time.Hour.Milliseconds()*1000)
		if err != nil {
			t.Fatal(err)
		}
		if floor == last {
			break
		}
		last = floor
	}
	if last != n-1 || calls != 3 {
		t.Errorf("floor %d after %d calls", last, calls)
	}
}
