package coordinatortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone/coordinator"
)

// entry is one whose nonce and data follow from its seq and a writer's number.
func entry(seq coordinator.Seq, writer byte) coordinator.Entry {
	return coordinator.Entry{
		Seq:   seq,
		Nonce: coordinator.Nonce{writer, byte(seq), byte(seq >> 8), byte(seq >> 16)},
		Data:  fmt.Appendf(nil, "entry %d of writer %d", seq, writer),
	}
}

func entries(first, last coordinator.Seq) []coordinator.Entry {
	var all []coordinator.Entry
	for seq := first; seq <= last; seq++ {
		all = append(all, entry(seq, 0))
	}
	return all
}

func mustAppend(t *testing.T, c coordinator.Ledger, ledger string, all ...coordinator.Entry) {
	t.Helper()
	for _, e := range all {
		if err := c.Append(t.Context(), ledger, e); err != nil {
			t.Fatalf("append %d: %v", e.Seq, err)
		}
	}
}

func wantRead(t *testing.T, c coordinator.Ledger, ledger string, after coordinator.Seq, limit int, want ...coordinator.Entry) {
	t.Helper()
	got, err := c.Read(t.Context(), ledger, after, limit)
	if err != nil {
		t.Fatalf("read after %d: %v", after, err)
	}
	if len(got) == 0 && len(want) == 0 || reflect.DeepEqual(got, want) { // it is quicker than a diff
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("read after %d, limit %d (-want +got):\n%s", after, limit, diff)
	}
}

func wantGap(t *testing.T, c coordinator.Ledger, ledger string, after coordinator.Seq) {
	t.Helper()
	got, err := c.Read(t.Context(), ledger, after, 100)
	if !errors.Is(err, coordinator.ErrGap) {
		t.Fatalf("read after %d: %v, %v; want ErrGap", after, got, err)
	}
}

func wantConflict(t *testing.T, c coordinator.Ledger, ledger string, e, occupant coordinator.Entry) {
	t.Helper()
	err := c.Append(t.Context(), ledger, e)
	var conflict *coordinator.Conflict
	if !errors.As(err, &conflict) {
		t.Fatalf("append at %d: %v; want a conflict", e.Seq, err)
	}
	if diff := cmp.Diff(occupant, conflict.Occupant); diff != "" {
		t.Fatalf("occupant of %d (-want +got):\n%s", e.Seq, diff)
	}
}

func wantFloor(t *testing.T, c coordinator.Ledger, ledger string, want coordinator.Seq) {
	t.Helper()
	if got, err := c.Floor(t.Context(), ledger); err != nil || got != want {
		t.Fatalf("floor %d, %v; want %d", got, err, want)
	}
}

func mustTrim(t *testing.T, c coordinator.Ledger, ledger string, through coordinator.Seq) {
	t.Helper()
	if err := c.Trim(t.Context(), ledger, through); err != nil {
		t.Fatalf("trim through %d: %v", through, err)
	}
}

func appendAndRead(t *testing.T, open Store) {
	c := opened(t, open)
	wantRead(t, c, "a", 0, 10)
	wantRead(t, c, "a", 7, 10)
	wantFloor(t, c, "a", 0)
	appendMany(t, c, "a", entries(1, 300)) // past one byte of seq
	wantRead(t, c, "a", 0, 1000, entries(1, 300)...)
	wantRead(t, c, "a", 0, 3, entries(1, 3)...)
	wantRead(t, c, "a", 254, 3, entries(255, 257)...)
	wantRead(t, c, "a", 299, 3, entry(300, 0))
	wantRead(t, c, "a", 300, 3)
	wantRead(t, c, "a", 1000, 3)
	wantRead(t, c, "a", ^coordinator.Seq(0), 3)
	wantRead(t, c, "a", 0, 0)
	empty := coordinator.Entry{Seq: 301, Nonce: coordinator.Nonce{1}}
	mustAppend(t, c, "a", empty)
	if got, err := c.Read(t.Context(), "a", 300, 1); err != nil || len(got) != 1 || len(got[0].Data) != 0 {
		t.Fatalf("an entry without data: %v, %v", got, err)
	}
}

func takenSlot(t *testing.T, open Store) {
	c := opened(t, open)
	mustAppend(t, c, "a", entries(1, 2)...)
	wantConflict(t, c, "a", entry(2, 7), entry(2, 0))
	wantConflict(t, c, "a", entry(1, 7), entry(1, 0))
	wantConflict(t, c, "a", entry(1, 0), entry(1, 0)) // its own, of an earlier try
	wantRead(t, c, "a", 0, 10, entries(1, 2)...)
}

func boundedReads(t *testing.T, open Store) {
	c := opened(t, open)
	const n = coordinator.MaxReadEntries + 5
	appendMany(t, c, "many", entries(1, n))
	got, err := c.Read(t.Context(), "many", 0, n)
	if err != nil || len(got) != coordinator.MaxReadEntries {
		t.Fatalf("%d entries, %v; want %d", len(got), err, coordinator.MaxReadEntries)
	}
	long := bytes.Repeat([]byte{'x'}, coordinator.MaxEntryBytes)
	const longs = coordinator.MaxReadBytes/coordinator.MaxEntryBytes + 2
	for seq := range coordinator.Seq(longs) {
		mustAppend(t, c, "long", coordinator.Entry{Seq: seq + 1, Data: long})
	}
	var read coordinator.Seq
	for read < longs {
		got, err := c.Read(t.Context(), "long", read, longs)
		size := 0
		for _, e := range got {
			read++
			size += len(e.Data)
			if e.Seq != read || !bytes.Equal(e.Data, long) {
				t.Fatalf("slot %d of %d bytes, want %d of %d", e.Seq, len(e.Data), read, len(long))
			}
		}
		if err != nil || len(got) == 0 || size > coordinator.MaxReadBytes {
			t.Fatalf("%d entries of %d bytes, %v", len(got), size, err)
		}
	}
}

// appendMany appends from several goroutines, which saves time where each append waits for a disk.
func appendMany(t *testing.T, c coordinator.Ledger, ledger string, all []coordinator.Entry) {
	t.Helper()
	const writers = 256
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < len(all); i += writers {
				if err := c.Append(t.Context(), ledger, all[i]); err != nil {
					t.Errorf("append %d: %v", all[i].Seq, err)
				}
			}
		})
	}
	wg.Wait()
}

func gaps(t *testing.T, open Store) {
	c := opened(t, open)
	mustAppend(t, c, "a", entry(3, 0))
	wantGap(t, c, "a", 0)
	wantGap(t, c, "a", 1)
	wantRead(t, c, "a", 2, 10, entry(3, 0))
	mustAppend(t, c, "a", entry(1, 0))
	wantGap(t, c, "a", 0)
	wantRead(t, c, "a", 0, 1, entry(1, 0))
	wantGap(t, c, "a", 1)
	mustAppend(t, c, "a", entry(2, 0))
	wantRead(t, c, "a", 0, 10, entries(1, 3)...)
}

func badAppends(t *testing.T, open Store) {
	c := opened(t, open)
	largest := coordinator.Entry{Seq: 1, Data: make([]byte, coordinator.MaxEntryBytes)}
	longest := strings.Repeat("n", coordinator.MaxNameBytes)
	mustAppend(t, c, longest, largest)
	wantRead(t, c, longest, 0, 1, largest)
	for _, bad := range []struct {
		ledger string
		e      coordinator.Entry
		want   error
	}{
		{"a", entry(0, 0), coordinator.ErrName},
		{"", entry(1, 0), coordinator.ErrName},
		{longest + "n", entry(1, 0), coordinator.ErrTooLarge},
		{"a", coordinator.Entry{Seq: 1, Data: make([]byte, coordinator.MaxEntryBytes+1)}, coordinator.ErrTooLarge},
	} {
		if err := c.Append(t.Context(), bad.ledger, bad.e); !errors.Is(err, bad.want) || errors.Is(err, coordinator.ErrUnknown) {
			t.Errorf("append of %d bytes at %d of %.5q: %v, want %v", len(bad.e.Data), bad.e.Seq, bad.ledger, err, bad.want)
		}
	}
	wantRead(t, c, "a", 0, 10)
	if _, err := c.Read(t.Context(), "", 0, 1); !errors.Is(err, coordinator.ErrName) {
		t.Errorf("read without a name: %v", err)
	}
	if _, err := c.Floor(t.Context(), ""); !errors.Is(err, coordinator.ErrName) {
		t.Errorf("floor without a name: %v", err)
	}
	if err := c.Trim(t.Context(), "", 1); !errors.Is(err, coordinator.ErrName) {
		t.Errorf("trim without a name: %v", err)
	}
}

func ledgersApart(t *testing.T, open Store) {
	c := opened(t, open)
	names := []string{"a", "a/", "ab", "a\x00", "B", "a/b"}
	for i, name := range names {
		mustAppend(t, c, name, entry(1, byte(i)), entry(2, byte(i)))
	}
	mustTrim(t, c, "a", 1)
	for i, name := range names[1:] {
		wantRead(t, c, name, 0, 10, entry(1, byte(i+1)), entry(2, byte(i+1)))
		wantFloor(t, c, name, 0)
	}
	wantRead(t, c, "a", 1, 10, entry(2, 0))
	wantFloor(t, c, "a", 1)
}

func dataCopied(t *testing.T, open Store) {
	c := opened(t, open)
	e := entry(1, 0)
	mustAppend(t, c, "a", e)
	clear(e.Data)
	for range 2 {
		got, err := c.Read(t.Context(), "a", 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(entry(1, 0), got[0]); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		clear(got[0].Data)
		var conflict *coordinator.Conflict
		if err := c.Append(t.Context(), "a", entry(1, 5)); !errors.As(err, &conflict) {
			t.Fatal(err)
		}
		clear(conflict.Occupant.Data)
	}
	wantConflict(t, c, "a", entry(1, 5), entry(1, 0))
}

func trim(t *testing.T, open Store) {
	c := opened(t, open)
	mustTrim(t, c, "a", 0)
	wantFloor(t, c, "a", 0)
	mustAppend(t, c, "a", entries(1, 9)...)
	mustTrim(t, c, "a", 4)
	wantFloor(t, c, "a", 4)
	for after := range coordinator.Seq(4) {
		wantGap(t, c, "a", after)
	}
	wantRead(t, c, "a", 4, 10, entries(5, 9)...)
	mustTrim(t, c, "a", 4)
	mustTrim(t, c, "a", 2)
	wantFloor(t, c, "a", 4)
	wantConflict(t, c, "a", entry(5, 1), entry(5, 0))
	mustTrim(t, c, "a", 9)
	wantFloor(t, c, "a", 9)
	wantRead(t, c, "a", 0, 10)
	wantRead(t, c, "a", 9, 10)
	mustTrim(t, c, "a", 20) // above the last slot
	wantFloor(t, c, "a", 20)
	mustTrim(t, c, "never written", 3)
	wantFloor(t, c, "never written", 3)
	mustAppend(t, c, "a", entry(21, 0))
	wantRead(t, c, "a", 20, 10, entry(21, 0))
}

func trimmedSlot(t *testing.T, open Store) {
	c := opened(t, open)
	mustAppend(t, c, "a", entries(1, 4)...)
	mustTrim(t, c, "a", 3)
	// The condition holds again; the floor tells.
	mustAppend(t, c, "a", entry(2, 8))
	wantFloor(t, c, "a", 3)
	wantRead(t, c, "a", 3, 10, entry(4, 0))
	wantConflict(t, c, "a", entry(2, 9), entry(2, 8))
	// A lower trim deletes what came below it.
	mustTrim(t, c, "a", 2)
	wantFloor(t, c, "a", 3)
	mustAppend(t, c, "a", entry(2, 9))
	mustTrim(t, c, "a", 1)
	wantConflict(t, c, "a", entry(2, 8), entry(2, 9))
	mustTrim(t, c, "a", 3)
	wantGap(t, c, "a", 1)
}

func (of counts) trimMany(t *testing.T, open Store) {
	c := opened(t, open)
	n := coordinator.Seq(of.trimmed)
	appendMany(t, c, "a", entries(1, n))
	mustTrim(t, c, "a", n-3)
	wantFloor(t, c, "a", n-3)
	wantRead(t, c, "a", n-3, 10, entries(n-2, n)...)
	wantGap(t, c, "a", 0)
	wantGap(t, c, "a", n-4)
}

func (of counts) manyWriters(t *testing.T, open Store) {
	c := opened(t, open)
	writers, each := of.writers, of.wins
	won := make([][]coordinator.Seq, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for seq := coordinator.Seq(1); len(won[w]) < each; seq++ {
				err := c.Append(t.Context(), "a", entry(seq, byte(w)))
				var conflict *coordinator.Conflict
				switch {
				case err == nil:
					won[w] = append(won[w], seq)
				case !errors.As(err, &conflict):
					t.Errorf("append: %v", err)
					return
				case conflict.Occupant.Seq != seq || conflict.Occupant.Nonce == entry(seq, byte(w)).Nonce:
					t.Errorf("conflict at %d with %v", seq, conflict.Occupant)
					return
				}
				// What has returned is seen by every read.
				if got, err := c.Read(t.Context(), "a", seq-1, 1); err != nil || len(got) != 1 || err == nil && conflict != nil && got[0].Nonce != conflict.Occupant.Nonce {
					t.Errorf("read of %d: %v, %v", seq, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
	want := map[coordinator.Seq]coordinator.Nonce{}
	for w, seqs := range won {
		for _, seq := range seqs {
			want[seq] = entry(seq, byte(w)).Nonce
		}
	}
	got, err := c.Read(context.Background(), "a", 0, coordinator.MaxReadEntries)
	if err != nil || len(got) != writers*each || len(want) != writers*each {
		t.Fatalf("%d entries for %d wins, %v; want %d", len(got), len(want), err, writers*each)
	}
	for _, e := range got {
		if e.Nonce != want[e.Seq] {
			t.Errorf("slot %d holds %v, its winner was %v", e.Seq, e.Nonce, want[e.Seq])
		}
	}
}
