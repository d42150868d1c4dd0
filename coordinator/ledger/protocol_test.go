package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/memory"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	bucketmemory "github.com/siltstone-io/siltstone/tiered/bucket/memory"
)

// This is the model of the ledger in spec/ over the real code: writers whose
// appends are lost, unanswered, late and repeated, and who stall anywhere;
// checkpoints; a floor that is raised in one step, and slots that are deleted
// in others. What was won is in the ledger, once, and all fold the same.

func TestProtocol(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		err := runProtocol(planted.Bug{}, func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, what) })
		if err != nil {
			t.Fatal(err)
		}
	})
}

// The rare ones, by more runs than rapid makes.
func TestProtocolSeeds(t *testing.T) {
	for seed := range uint64(1500) {
		if err := runProtocol(planted.Bug{}, seeded(seed)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func seeded(seed uint64) func(string, int) int {
	r := rand.New(rand.NewPCG(seed, 0))
	return func(_ string, n int) int { return r.IntN(n) }
}

// The search finds what it is for.
func TestProtocolFindsPlantedBugs(t *testing.T) {
	for _, name := range []planted.Name{planted.TimedOutIsFailed, planted.AppendWithoutFolding} {
		bug := planted.ForTest(t, name)
		for seed := uint64(0); ; seed++ {
			err := runProtocol(bug, seeded(seed))
			if err != nil {
				t.Logf("%s: seed %d: %v", name, seed, err)
				break
			}
			if seed == 200 {
				t.Errorf("%s: not found by %d seeds", name, seed)
				break
			}
		}
	}
}

// truth is a store that knows what first took each slot.
type truth struct {
	coordinator.Coordinator
	taken  []coordinator.Entry
	raised coordinator.Seq // a floor whose deletions are still to come
}

func (s *truth) Append(ctx context.Context, name string, e coordinator.Entry) error {
	err := s.Coordinator.Append(ctx, name, e)
	if err == nil && int(e.Seq) == len(s.taken)+1 {
		s.taken = append(s.taken, e)
	}
	return err
}

func (s *truth) Floor(ctx context.Context, name string) (coordinator.Seq, error) {
	floor, err := s.Coordinator.Floor(ctx, name)
	return max(floor, s.raised), err
}

func (s *truth) bodies() ([]string, error) {
	l := newLog()
	_, err := l.Settle(ledger.Outcome{Entries: s.taken})
	return l.Fold().bodies, err
}

// world is one run.
type world struct {
	choose  func(what string, n int) int
	store   *truth
	bucket  bucket.Bucket
	job     *ledger.Client // of one whom nothing befalls
	writers []*writer
	late    []func(context.Context) error
	covered coordinator.Seq // by the newest checkpoint
}

func runProtocol(bug planted.Bug, choose func(what string, n int) int) error {
	return runProtocolOver(memory.New(), bug, choose)
}

// runProtocolOver runs over a store that is empty.
func runProtocolOver(store coordinator.Coordinator, bug planted.Bug, choose func(what string, n int) int) error {
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{choose: choose, store: &truth{Coordinator: store}, bucket: bucketmemory.New()}
	w.job = ledger.NewClient(ledger.Options{Coordinator: w.store, Bucket: w.bucket, Rand: random(99), BackoffMin: 1, BackoffMax: 1})
	for i := range 1 + choose("writers", 3) {
		w.writers = append(w.writers, startWriter(ctx, w, i, bug))
	}
	defer func() {
		cancel()
		for _, wr := range w.writers {
			for !wr.ended {
				wr.answer(context.Canceled)
			}
		}
	}()
	for range 40 + choose("steps", 40) {
		if err := w.step(ctx); err != nil {
			return err
		}
		if err := w.check(); err != nil {
			return err
		}
	}
	return w.heal(ctx)
}

func (w *world) step(ctx context.Context) error {
	switch action := w.choose("action", 10); {
	case action < 6:
		if wr := w.writers[w.choose("writer", len(w.writers))]; !wr.ended {
			w.decide(ctx, wr)
		}
	case action == 6:
		if len(w.late) > 0 {
			_ = w.late[w.choose("late", len(w.late))](ctx) // it may land again
		}
	case action == 7:
		got, err := ledger.LoadFold(ctx, w.job, "toy", newToy)
		if err != nil {
			return err
		}
		w.covered = got.At.Seq
		return w.job.SaveCheckpoint(ctx, ledger.EncodeCheckpoint("toy", got.At, got.Fold.Rows))
	case action == 8:
		if top := min(int(w.covered), len(w.store.taken)-1); top > 0 {
			w.store.raised = max(w.store.raised, coordinator.Seq(1+w.choose("floor", top)))
		}
	default:
		return w.store.Trim(ctx, "toy", coordinator.Seq(w.choose("delete", int(w.store.raised)+1)))
	}
	return nil
}

// decide gives a writer's call its fate.
func (w *world) decide(ctx context.Context, wr *writer) {
	c := wr.current
	if !c.call.Op.Writes() {
		if w.choose("read", 6) == 0 {
			wr.answer(errRefused)
		} else {
			wr.answer(c.do(ctx))
		}
		return
	}
	switch w.choose("fate", 8) {
	case 0:
		wr.answer(errRefused)
	case 1:
		wr.answer(faulty.Unanswered(c.call))
	case 2:
		_ = c.do(ctx)
		wr.answer(faulty.Unanswered(c.call))
	case 3:
		w.late = append(w.late, c.do)
		wr.answer(faulty.Unanswered(c.call))
	case 4:
		w.late = append(w.late, c.do)
		wr.answer(c.do(ctx))
	default:
		wr.answer(c.do(ctx))
	}
}

// check compares what each writer has folded with the truth.
func (w *world) check() error {
	all, err := w.store.bodies()
	if err != nil {
		return fmt.Errorf("the true history: %w", err)
	}
	for _, wr := range w.writers {
		if got := wr.log.Fold().bodies; len(got) > len(all) || !slices.Equal(got, all[:len(got)]) {
			return fmt.Errorf("%s has folded %q, the ledger has %q", wr.name, got, all)
		}
	}
	return nil
}

// heal ends all faults; then all that was to be written is, once.
func (w *world) heal(ctx context.Context) error {
	for _, wr := range w.writers {
		for steps := 0; !wr.ended; steps++ {
			if steps == 10_000 {
				return fmt.Errorf("%s does not come to an end", wr.name)
			}
			wr.answer(wr.current.do(ctx))
		}
		if wr.end != nil {
			return fmt.Errorf("%s: %w", wr.name, wr.end)
		}
	}
	for _, land := range w.late {
		_ = land(ctx)
	}
	if err := w.check(); err != nil {
		return err
	}
	all, err := w.store.bodies()
	if err != nil {
		return err
	}
	got, err := ledger.LoadFold(ctx, w.job, "toy", newToy)
	if err != nil || !slices.Equal(got.Fold.bodies, all) {
		return fmt.Errorf("loaded %q, the ledger has %q: %w", got.Fold.bodies, all, err)
	}
	var want []string
	for _, wr := range w.writers {
		want = append(want, wr.records()...)
	}
	slices.Sort(want)
	slices.Sort(all)
	if !slices.Equal(want, all) {
		return fmt.Errorf("the ledger has %q, want each once of %q", all, want)
	}
	return nil
}

// waiting is a call of a writer that has no fate yet.
type waiting struct {
	call faulty.Call
	do   func(context.Context) error
	fate chan error
}

// writer appends its records one after the other. Its goroutine waits for the
// fate of one call, or is done: between two calls the test waits for it.
type writer struct {
	name    string
	log     *toyLog
	calls   chan waiting
	done    chan error
	current waiting
	ended   bool
	end     error
}

func startWriter(ctx context.Context, w *world, i int, bug planted.Bug) *writer {
	wr := &writer{name: string(rune('a' + i)), log: newLog(), calls: make(chan waiting), done: make(chan error, 1)}
	wr.log.Bug = bug
	client := ledger.NewClient(ledger.Options{
		Coordinator: faulty.Wrap(w.store, wr.wait), Bucket: w.bucket,
		Rand: random(uint64(i)), BackoffMin: 1, BackoffMax: 1, Bug: bug,
	})
	go func() { wr.done <- wr.write(ctx, client) }()
	wr.next()
	return wr
}

func (wr *writer) wait(_ context.Context, c faulty.Call, do func(context.Context) error) error {
	fate := make(chan error, 1)
	wr.calls <- waiting{c, do, fate}
	return <-fate
}

func (wr *writer) next() {
	select {
	case wr.current = <-wr.calls:
	case wr.end = <-wr.done:
		wr.ended = true
	}
}

func (wr *writer) answer(err error) {
	wr.current.fate <- err
	wr.next()
}

func (wr *writer) records() []string { return []string{wr.name + "0", wr.name + "1", wr.name + "2"} }

func (wr *writer) write(ctx context.Context, c *ledger.Client) error {
	tries := byte(0)
	for _, body := range wr.records() {
		for in := false; !in; tries++ {
			var err error
			if in, err = wr.read(ctx, c, body); err != nil {
				return err
			}
			if in {
				break
			}
			p, err := wr.log.Propose(toyKind, []byte(body), 0, nonce(wr.name[0], tries))
			if err != nil {
				return err
			}
			o, err := c.Append(ctx, p)
			if err != nil {
				return err
			}
			if in, err = wr.settle(ctx, c, o, body); err != nil {
				return err
			}
		}
	}
	return nil
}

// read looks for others' entries. One writer only meets them by conflict.
func (wr *writer) read(ctx context.Context, c *ledger.Client, body string) (in bool, err error) {
	if wr.name == "a" {
		return false, nil
	}
	o, err := c.Read(ctx, "toy", wr.log.Position().Seq, 2)
	if err != nil {
		if errors.Is(err, errRefused) {
			err = nil
		}
		return false, err
	}
	return wr.settle(ctx, c, o, body)
}

// settle says whether the writer's record is in the ledger: its own entry was
// folded or, where that was trimmed, the checkpoint tells.
func (wr *writer) settle(ctx context.Context, c *ledger.Client, o ledger.Outcome, body string) (in bool, err error) {
	changes, err := wr.log.Settle(o)
	for _, change := range changes {
		in = in || change.Mine
	}
	if o.Won != in {
		return in, fmt.Errorf("%+v was folded as %+v", o, changes)
	}
	for errors.Is(err, ledger.ErrTrimmed) {
		var got ledger.Loaded[*toy, int]
		got, err = ledger.LoadFold(ctx, c, "toy", newToy)
		if err == nil {
			wr.log.Replace(got.Fold, got.At)
			in = slices.Contains(got.Fold.bodies, body)
		} else if errors.Is(err, errRefused) {
			err = ledger.ErrTrimmed
		}
	}
	return in, err
}
