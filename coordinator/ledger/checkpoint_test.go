package ledger_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	bucketfaulty "github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

func each(rows []ledger.Row) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for _, r := range rows {
			if !yield(r.Key, r.Value) {
				return
			}
		}
	}
}

// object stores a checkpoint, and returns it as its register has it, with its object.
func (r rig) object(t rapid.TB, e ledger.EncodedCheckpoint) (ledger.Checkpoint, []byte) {
	t.Helper()
	ctx := context.Background()
	if err := r.SaveCheckpoint(ctx, e); err != nil {
		t.Fatal(err)
	}
	cp, found, err := r.Newest(ctx, e.Ledger)
	if err != nil || !found {
		t.Fatalf("newest: %v, %v", found, err)
	}
	object, err := r.bucket.Get(ctx, cp.Key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	return cp, object
}

func decode(object []byte) (ledger.Checkpoint, []ledger.Row, error) {
	var rows []ledger.Row
	cp, err := ledger.DecodeCheckpoint(object, func(key, value []byte) error {
		rows = append(rows, ledger.Row{Key: key, Value: value})
		return nil
	})
	return cp, rows, err
}

var goldenAt = ledger.Position{Seq: 4097, Hash: goldenFrame.Prev}

// goldenRows fill a block and begin another.
func goldenRows() []ledger.Row {
	rows := []ledger.Row{{Key: nil, Value: nil}, {Key: []byte("a"), Value: nil}, {Key: []byte("b"), Value: []byte("value")}}
	for i := range 40 {
		rows = append(rows, ledger.Row{Key: fmt.Appendf(nil, "key/%02d", i), Value: bytes.Repeat([]byte{byte(i)}, 1000)})
	}
	return rows
}

func TestCheckpointGolden(t *testing.T) {
	cp, object := newRig().object(t, ledger.EncodeCheckpoint("shard-07", goldenAt, each(goldenRows())))
	if want := "checkpoint/shard-07/00000000000000004097-"; !strings.HasPrefix(cp.Key, want) || len(cp.Key) != len(want)+32 {
		t.Errorf("key %s", cp.Key)
	}
	got, rows, err := decode(golden(t, "checkpoint.v1.golden", object))
	if err != nil || got.Ledger != "shard-07" || got.At != goldenAt {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(goldenRows(), rows, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPointerGolden(t *testing.T) {
	r := newRig()
	r.object(t, ledger.EncodeCheckpoint("shard-07", goldenAt, each(goldenRows())))
	v, err := r.store.Get(t.Context(), "checkpoint/shard-07")
	if err != nil {
		t.Fatal(err)
	}
	stored := golden(t, "pointer.v1.golden", v.Data)
	for i := range stored {
		damaged := bytes.Clone(stored)
		damaged[i] ^= 4
		r := newRig()
		if _, err := r.store.Put(t.Context(), "checkpoint/shard-07", damaged, "", nonce(1)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Newest(t.Context(), "shard-07"); !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
}

func FuzzPointer(f *testing.F) {
	r := newRig()
	r.object(f, ledger.EncodeCheckpoint("toy", goldenAt, each(nil)))
	v, err := r.store.Get(context.Background(), "checkpoint/toy")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(v.Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig()
		if _, err := r.store.Put(t.Context(), "checkpoint/toy", data, "", nonce(1)); err != nil {
			t.Skip(err)
		}
		cp, found, err := r.Newest(t.Context(), "toy")
		if err != nil && !errors.Is(err, siltstone.ErrCorrupt) && !errors.Is(err, siltstone.ErrNewerFormat) {
			t.Fatalf("unclassed error: %v", err)
		}
		if err == nil && found {
			// Whatever it points to, the reads end with an answer.
			_ = r.Restore(t.Context(), cp, newToy().Restore)
			_, _ = r.Lookup(t.Context(), cp, []byte("a"))
		}
	})
}

func TestCheckpointEmpty(t *testing.T) {
	r := newRig()
	cp, object := r.object(t, ledger.EncodeCheckpoint("toy", goldenAt, each(nil)))
	if _, rows, err := decode(object); err != nil || len(rows) != 0 {
		t.Errorf("%v, %v", rows, err)
	}
	if rows, err := r.Lookup(t.Context(), cp, []byte("a")); err != nil || len(rows) != 0 {
		t.Errorf("looked up %v, %v", rows, err)
	}
}

func TestCheckpointRowsMustBeSorted(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("rows out of order were encoded")
		}
	}()
	ledger.EncodeCheckpoint("toy", goldenAt, each([]ledger.Row{{Key: []byte("a")}, {Key: []byte("a")}}))
}

// Whatever byte is damaged, and wherever the object is cut, the error says so
// and names the part.
func TestCheckpointDamage(t *testing.T) {
	r := newRig()
	cp, object := r.object(t, ledger.EncodeCheckpoint("toy", goldenAt, each(goldenRows()[:10])))
	check := func(what string, damaged []byte) {
		t.Helper()
		_, _, err := decode(damaged)
		if !errors.Is(err, siltstone.ErrCorrupt) {
			t.Fatalf("%s: %v", what, err)
		}
		for _, part := range []string{"header", "index", "block", "trailer"} {
			if strings.Contains(err.Error(), part) {
				return
			}
		}
		t.Fatalf("%s: %v names no part", what, err)
	}
	for i := range object {
		damaged := bytes.Clone(object)
		damaged[i] ^= 1
		check(fmt.Sprintf("byte %d changed", i), damaged)
		check(fmt.Sprintf("cut at %d", i), object[:i])
	}
	newer := bytes.Clone(object)
	trailer := newer[len(newer)-42:]
	trailer[37] = 2
	binary.BigEndian.PutUint32(trailer[38:], crc32.Checksum(trailer[:38], crc32.MakeTable(crc32.Castagnoli)))
	if _, _, err := decode(newer); !errors.Is(err, siltstone.ErrNewerFormat) {
		t.Errorf("format 2: %v", err)
	}
	check("bytes at the end", append(bytes.Clone(object), 0))

	// Another checkpoint in the place of the one that was pointed to.
	_, other := newRig().object(t, ledger.EncodeCheckpoint("toy", ledger.Position{Seq: 5}, each(nil)))
	swapped := newRig()
	if err := swapped.bucket.Put(t.Context(), cp.Key, bucket.Body{other}); err != nil {
		t.Fatal(err)
	}
	if err := swapped.Restore(t.Context(), cp, newToy().Restore); !errors.Is(err, siltstone.ErrCorrupt) {
		t.Errorf("another checkpoint: %v", err)
	}
}

func FuzzDecodeCheckpoint(f *testing.F) {
	for _, n := range []int{0, 1, 4} {
		_, object := newRig().object(f, ledger.EncodeCheckpoint("toy", goldenAt, each(goldenRows()[:n])))
		f.Add(object)
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		cp, rows, err := decode(object)
		if err != nil {
			if !errors.Is(err, siltstone.ErrCorrupt) && !errors.Is(err, siltstone.ErrNewerFormat) {
				t.Fatalf("unclassed error: %v", err)
			}
			return
		}
		_, again := newRig().object(t, ledger.EncodeCheckpoint(cp.Ledger, cp.At, each(rows)))
		if _, rowsAgain, err := decode(again); err != nil || !slices.EqualFunc(rows, rowsAgain, func(a, b ledger.Row) bool {
			return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value)
		}) {
			t.Fatalf("encoded again: %v", err)
		}
	})
}

// One lookup is at most two reads of the object, and finds what a scan finds.
func TestLookup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab]{0,6}`), 0, 60, rapid.ID).Draw(t, "keys")
		slices.Sort(keys)
		var rows []ledger.Row
		for _, key := range keys {
			size := rapid.SampledFrom([]int{0, 10, 5_000, 40_000}).Draw(t, "size")
			rows = append(rows, ledger.Row{Key: []byte(key), Value: bytes.Repeat([]byte{'v'}, size)})
		}
		r := newRig()
		cp, _ := r.object(t, ledger.EncodeCheckpoint("toy", goldenAt, each(rows)))
		prefix := rapid.StringMatching(`[abc]{0,4}`).Draw(t, "prefix")
		var want []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		reads := 0
		c := r.client(r.store, bucketfaulty.Wrap(r.bucket, func(op bucketfaulty.Op, _ string) (f bucketfaulty.Fate) {
			reads++
			return f
		}))
		found, err := c.Lookup(context.Background(), cp, []byte(prefix))
		var got []string
		for _, row := range found {
			got = append(got, string(row.Key))
		}
		if err != nil || !slices.Equal(got, want) || reads > 2 {
			t.Fatalf("%q in %q: %q, %v, by %d reads", prefix, keys, got, err, reads)
		}
	})
}

func TestLookupDamage(t *testing.T) {
	r := newRig()
	cp, object := r.object(t, ledger.EncodeCheckpoint("toy", goldenAt, each(goldenRows())))
	for _, at := range []int{50, len(object) - 60} { // a block, the index
		damaged := bytes.Clone(object)
		damaged[at] ^= 1
		b := newRig()
		if err := b.bucket.Put(t.Context(), cp.Key, bucket.Body{damaged}); err != nil {
			t.Fatal(err)
		}
		if rows, err := b.Lookup(t.Context(), cp, []byte("a")); !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("byte %d changed: %v, %v", at, rows, err)
		}
	}
	if _, err := newRig().Lookup(t.Context(), cp, nil); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("the object is gone: %v", err)
	}
}

// checkpointAt is one of an empty fold.
func checkpointAt(seq coordinator.Seq) ledger.EncodedCheckpoint {
	return ledger.EncodeCheckpoint("toy", ledger.Position{Seq: seq}, each(nil))
}

func (r rig) wantNewest(t *testing.T, seq coordinator.Seq) {
	t.Helper()
	cp, found, err := r.Newest(t.Context(), "toy")
	if err != nil || cp.At.Seq != seq || found != (seq > 0) {
		t.Fatalf("newest %d, %v, %v; want %d", cp.At.Seq, found, err, seq)
	}
}

func TestPointerNeverGoesBack(t *testing.T) {
	r := newRig()
	r.wantNewest(t, 0)
	save := func(hook faulty.Hook, seq coordinator.Seq) error {
		return r.client(faulty.Wrap(r.store, hook), r.bucket).SaveCheckpoint(t.Context(), checkpointAt(seq))
	}
	if err := save(faulty.Transparent, 5); err != nil {
		t.Fatal(err)
	}
	if err := save(faulty.Transparent, 3); err != nil {
		t.Fatal(err)
	}
	r.wantNewest(t, 5)
	// Another is pointed to between the look at the register and the put.
	overtaken := script(faulty.Put, behind(func() {
		if err := save(faulty.Transparent, 8); err != nil {
			t.Error(err)
		}
	}))
	if err := save(overtaken, 7); err != nil {
		t.Fatal(err)
	}
	r.wantNewest(t, 8)
	// A put lands late.
	var land func(context.Context) error
	late := script(faulty.Put, func(_ context.Context, c faulty.Call, do func(context.Context) error) error {
		land = do
		return faulty.Unanswered(c)
	})
	if err := save(late, 9); !errors.Is(err, coordinator.ErrUnknown) {
		t.Fatal(err)
	}
	r.wantNewest(t, 8)
	if err := save(faulty.Transparent, 10); err != nil {
		t.Fatal(err)
	}
	if err := land(t.Context()); err == nil {
		t.Error("the late put has replaced a newer pointer")
	}
	r.wantNewest(t, 10)
	if err := save(script(faulty.Put, faulty.LoseReply), 12); !errors.Is(err, coordinator.ErrUnknown) {
		t.Fatal(err)
	}
	r.wantNewest(t, 12)
}

// Nothing points to an object that is not there.
func TestCheckpointIsStoredFirst(t *testing.T) {
	r := newRig()
	b := bucketfaulty.Wrap(r.bucket, func(bucketfaulty.Op, string) bucketfaulty.Fate {
		return bucketfaulty.Fate{Err: errRefused, Applied: true}
	})
	if err := r.client(r.store, b).SaveCheckpoint(t.Context(), checkpointAt(5)); !errors.Is(err, errRefused) {
		t.Errorf("save: %v", err)
	}
	r.wantNewest(t, 0)
}

// What exists under a key that only this checkpoint has is of a try whose
// answer was lost, perhaps in a layer below.
func TestCheckpointThatIsThereAlready(t *testing.T) {
	r := newRig()
	b := bucketfaulty.Wrap(r.bucket, func(op bucketfaulty.Op, _ string) bucketfaulty.Fate {
		if op != bucketfaulty.Put {
			return bucketfaulty.Fate{}
		}
		return bucketfaulty.Fate{Err: bucket.ErrExists, Applied: true}
	})
	if err := r.client(r.store, b).SaveCheckpoint(t.Context(), checkpointAt(5)); err != nil {
		t.Fatal(err)
	}
	r.wantNewest(t, 5)
}

func BenchmarkEncodeCheckpoint(b *testing.B) {
	rows := make([]ledger.Row, 100_000)
	for i := range rows {
		rows[i] = ledger.Row{Key: binary.BigEndian.AppendUint64(nil, uint64(i)), Value: make([]byte, 100)}
	}
	b.ReportAllocs()
	for b.Loop() {
		ledger.EncodeCheckpoint("toy", goldenAt, each(rows))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
}
