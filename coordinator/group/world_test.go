package group

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// world drives a Machine as an agent does: in virtual time, with a ledger that
// folds what is proposed when the test says so.
type world struct {
	t        rapid.TB
	now      time.Time
	fold     *State
	seq      coordinator.Seq
	m        *Machine
	o        Options
	settings Settings
	topics   map[string]uint32 // each of 4 partitions

	inFlight *Update
	waiting  map[Request]bool
	entries  int
	// entryBytes is how long an entry may be.
	entryBytes int

	answers func(Request) // told of each answer,
	updates func(*Update) // and of each Update that is about to be folded
	taken   func()        // and of each proposal
}

func newWorld(t rapid.TB) *world {
	w := &world{
		t: t, now: time.UnixMilli(1_800_000_000_000), fold: New(),
		topics:  map[string]uint32{"a": 1, "b": 2, "c": 3},
		waiting: map[Request]bool{}, entryBytes: ledger.MaxBodyBytes,
		settings: Settings{
			InitialDelayMS: 0, MinSessionMS: 6000, MaxSessionMS: 1_800_000, MaxMembers: 1000,
			MaxMetadataBytes: 4096, RetentionMS: 7 * 24 * 3600 * 1000, RetentionCheckMS: 600_000,
		},
	}
	w.o = Options{
		Writer: alice, Rand: rand.New(rand.NewPCG(1, 2)).Uint64,
		Settings: func() Settings { return w.settings },
		Topic:    func(name string) (uint32, bool) { n, ok := w.topics[name]; return n, ok },
		Exists: func(tp TopicPartition) bool {
			for _, n := range w.topics {
				if n == tp.Topic {
					return tp.Partition >= 0 && tp.Partition < 4
				}
			}
			return false
		},
	}
	w.elect()
	return w
}

func (w *world) apply(b Body) {
	w.t.Helper()
	w.seq++
	body := b.Encode()
	if len(body) > w.entryBytes {
		w.t.Fatalf("an entry of %d bytes", len(body))
	}
	if u, ok := b.(*Update); ok && w.updates != nil {
		w.updates(u)
	}
	c, err := w.fold.Apply(ledger.Entry{Seq: w.seq, Kind: b.Kind(), Body: body})
	if err != nil || c.Void != "" {
		w.t.Fatalf("%T is void: %s, %v", b, c.Void, err)
	}
}

// elect begins the next epoch, with a Machine that knows only the fold.
func (w *world) elect() {
	w.o.Epoch = w.fold.Epoch() + 1
	w.apply(&Lead{w.o.Epoch, alice})
	w.m = NewMachine(w.fold, w.o, w.now)
	w.m.entryBytes = w.entryBytes
	w.collect()
}

// crash loses the Machine and all that waits. What is in flight is folded, or not.
func (w *world) crash(folded bool) {
	if w.inFlight != nil && folded {
		w.apply(w.inFlight)
	}
	w.inFlight = nil
	clear(w.waiting)
	w.elect()
}

// depose stops the Machine, and goes on with another.
func (w *world) depose(folded bool) {
	w.t.Helper()
	if w.inFlight != nil && folded {
		w.apply(w.inFlight)
	}
	w.inFlight = nil
	w.m.Stop(ErrNotCoordinator)
	for _, r := range w.collect() {
		if !errors.Is(r.Common().Err, ErrNotCoordinator) {
			w.t.Errorf("stopped, %T is answered %v", r, r.Common().Err)
		}
	}
	if len(w.waiting) > 0 {
		w.t.Errorf("stopped, and %d requests wait", len(w.waiting))
	}
	w.elect()
}

// handle hands a request over, and says whether it is answered.
func (w *world) handle(r Request) bool {
	w.t.Helper()
	w.waiting[r] = true
	w.m.Handle(r, w.now)
	w.collect()
	return !w.waiting[r]
}

// collect takes the answers, each once.
func (w *world) collect() []Request {
	w.t.Helper()
	list := slices.Clone(w.m.Answered())
	for _, r := range list {
		if !w.waiting[r] {
			w.t.Fatalf("%T is answered twice, or was never asked: %+v", r, r)
		}
		delete(w.waiting, r)
		if w.answers != nil {
			w.answers(r)
		}
	}
	return list
}

// propose takes the next entry, if none is in flight.
func (w *world) propose() bool {
	if w.inFlight == nil {
		w.inFlight = w.m.Propose()
		w.collect()
		if w.inFlight != nil && w.taken != nil {
			w.taken()
		}
	}
	return w.inFlight != nil
}

// folds folds the entry in flight.
func (w *world) folds() {
	w.t.Helper()
	w.apply(w.inFlight)
	w.inFlight = nil
	w.entries++
	w.m.Folded(w.now)
	w.collect()
}

// settle proposes and folds until there is nothing left.
func (w *world) settle() {
	w.t.Helper()
	for range 1000 {
		if !w.propose() {
			return
		}
		w.folds()
	}
	w.t.Fatal("it proposes without end")
}

// tick lets time pass to a moment.
func (w *world) tick(now time.Time) {
	w.t.Helper()
	w.now = now
	w.m.Tick(now)
	w.collect()
	if due := w.m.Due(); due.IsZero() || !due.After(now) {
		w.t.Fatalf("ticked, and due %v ago", now.Sub(due))
	}
}

// pass lets time pass, with all that is due in it done when it is, and folded.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.settle()
	end := w.now.Add(d)
	for !w.m.Due().After(end) {
		w.tick(w.m.Due())
		w.settle()
	}
	w.tick(end)
	w.settle()
}

// waits says whether a request waits.
func (w *world) waits(r Request) bool { return w.waiting[r] }

// answer is the error that a request is answered with at once.
func (w *world) answer(r Request) error {
	w.t.Helper()
	if !w.handle(r) {
		w.t.Fatalf("%T waits: %+v", r, r)
	}
	return r.Common().Err
}

// must fails unless an error is, or wraps, another.
func must(t rapid.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func (w *world) describe(id string) Description {
	w.t.Helper()
	r := &Describe{Call: Call{Group: id}}
	err := w.answer(r)
	if (err != nil) != (r.Description.Phase == Dead) {
		w.t.Errorf("%s is %s, %v", id, r.Description.Phase, err)
	}
	return r.Description
}

// is fails unless a group is in a phase, with so many members.
func (w *world) is(id string, phase Phase, generation int32, members int) {
	w.t.Helper()
	d := w.describe(id)
	if d.Phase != phase || d.Generation != generation || len(d.Members) != members {
		w.t.Errorf("%s is %s in generation %d with %d members; want %s, %d, %d", id, d.Phase, d.Generation, len(d.Members), phase, generation, members)
	}
}

// committed is the offset of a partition, -1 for none.
func (w *world) committed(id string, tp TopicPartition) int64 {
	w.t.Helper()
	r := &Fetch{Call: Call{Group: id}, Generation: -1, Parts: []FetchPart{{TopicPartition: tp}}}
	must(w.t, "fetch", w.answer(r), nil)
	return r.Parts[0].Offset
}

// outsider commits an offset of nobody in the group.
func outsider(id string, tp TopicPartition, off int64) *Commit {
	return &Commit{Call: Call{Group: id}, Generation: -1, Parts: []CommitPart{{Committed: Committed{TopicPartition: tp, Offset: off, Epoch: -1, ExpireMS: -1}}}}
}
