package ledger_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/coordinator/memory"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	bucketmemory "github.com/siltstone-io/siltstone/tiered/bucket/memory"
	"pgregory.net/rapid"
)

// toy is a fold whose state is all bodies in order, so that any difference
// between two histories shows.
type toy struct{ bodies []string }

const toyKind = 1

var errUnknownKind = errors.New("unknown kind")

func newToy() *toy { return &toy{} }

// Apply returns how many entries came before.
func (f *toy) Apply(e ledger.Entry) (int, error) {
	if e.Kind != toyKind {
		return 0, fmt.Errorf("kind %d: %w", e.Kind, errUnknownKind)
	}
	f.bodies = append(f.bodies, string(e.Body))
	return len(f.bodies) - 1, nil
}

func (f *toy) Rows(yield func(key, value []byte) bool) {
	for i, body := range f.bodies {
		if !yield(binary.BigEndian.AppendUint32(nil, uint32(i)), []byte(body)) {
			return
		}
	}
}

func (f *toy) Restore(key, value []byte) error {
	if len(key) != 4 || int(binary.BigEndian.Uint32(key)) != len(f.bodies) {
		return fmt.Errorf("row %x comes as number %d", key, len(f.bodies))
	}
	f.bodies = append(f.bodies, string(value))
	return nil
}

type toyLog = ledger.Log[*toy, int]

func newLog() *toyLog { return ledger.New("toy", newToy()) }

// random is a source that many goroutines may use.
func random(seed uint64) func() uint64 {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 0))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Uint64()
	}
}

// rig is a client over memory.
type rig struct {
	*ledger.Client
	store  *memory.Coordinator
	bucket *bucketmemory.Bucket
}

func newRig() rig {
	r := rig{store: memory.New(), bucket: bucketmemory.New()}
	r.Client = r.client(r.store, r.bucket)
	return r
}

// client is one over the rig's stores, wrapped as the test likes.
func (r rig) client(c coordinator.Coordinator, b bucket.Bucket) *ledger.Client {
	return ledger.NewClient(ledger.Options{Coordinator: c, Bucket: b, Rand: random(1), BackoffMin: 1, BackoffMax: 1})
}

func nonce(n ...byte) (nonce coordinator.Nonce) {
	copy(nonce[:], n)
	return nonce
}

func mustPropose(t rapid.TB, l *toyLog, body string, timeMS int64, n coordinator.Nonce) ledger.Proposal {
	t.Helper()
	p, err := l.Propose(toyKind, []byte(body), timeMS, n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fill appends bodies through a log, each at its time, and wins every time.
func (r rig) fill(t rapid.TB, l *toyLog, timeMS int64, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		p := mustPropose(t, l, body, timeMS, nonce(0xff, byte(l.Position().Seq), byte(l.Position().Seq>>8)))
		o, err := r.Append(context.Background(), p)
		if err != nil || !o.Won {
			t.Fatalf("append %q: %+v, %v", body, o, err)
		}
		if _, err := l.Settle(o); err != nil {
			t.Fatal(err)
		}
	}
}

func (r rig) load(t rapid.TB) ledger.Loaded[*toy, int] {
	t.Helper()
	got, err := ledger.LoadFold(context.Background(), r.Client, "toy", newToy)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantBodies(t rapid.TB, f *toy, want ...string) {
	t.Helper()
	if !slices.Equal(f.bodies, want) {
		t.Fatalf("folded %q, want %q", f.bodies, want)
	}
}

func numbered(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("body %d", i+1)
	}
	return all
}
