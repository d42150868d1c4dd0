package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// someLedgers are names as they are in use; the last ones come last in the file.
var someLedgers = []string{"cluster", "group-03", "shard-07", "shard-15"}

// filled is a file with ledgers of some pages, one of them trimmed, and registers.
func filled(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.db")
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for seq := range coordinator.Seq(120) {
		for i, name := range someLedgers {
			if i == 0 && seq >= 3 { // one that is small, and lies inside another page
				continue
			}
			e := coordinator.Entry{Seq: seq + 1, Nonce: coordinator.Nonce{byte(seq)}, Data: bytes.Repeat([]byte{byte(i), byte(seq)}, 60)}
			if err := c.Append(t.Context(), name, e); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range byte(5) {
		if _, err := c.Put(t.Context(), fmt.Sprint("register-", n), bytes.Repeat([]byte{n}, 50), "", coordinator.Nonce{n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(c.Trim(t.Context(), "shard-07", 30), c.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b[:(len(bytes.TrimRight(b, "\x00"))+4095)/4096*4096]
}

// contentOf is all that a file holds.
func contentOf(t *testing.T, c *Coordinator) (string, error) {
	t.Helper()
	var all strings.Builder
	for i, name := range someLedgers {
		floor, err := c.Floor(t.Context(), name)
		for at := floor; err == nil; {
			var got []coordinator.Entry
			if got, err = c.Read(t.Context(), name, at, 1000); len(got) == 0 {
				break
			}
			for _, e := range got {
				if e.Data[0] != byte(i) { // as hashes tell, which real entries have
					return "", fmt.Errorf("an entry of another ledger: %w", siltstone.ErrCorrupt)
				}
			}
			fmt.Fprintln(&all, name, floor, got)
			at = got[len(got)-1].Seq
		}
		if err != nil {
			return "", err
		}
	}
	listed, err := c.List(t.Context(), "")
	for _, l := range listed {
		fmt.Fprintln(&all, l.Key, l.Value)
	}
	return all.String(), err
}

// One bit that is wrong is an error, or changes nothing of what is read: no
// end of a ledger is missing without a word, and no older one comes back.
func TestFlippedBits(t *testing.T) {
	whole := filled(t)
	path := filepath.Join(t.TempDir(), "cluster.db")
	open := func(b []byte, how func(string) (*Coordinator, error)) (string, error) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := how(path)
		if err != nil {
			return "", err
		}
		text, err := contentOf(t, c)
		return text, errors.Join(err, c.Close())
	}
	want, err := open(whole, OpenForReading)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for n := range 1000 {
		// Half of them among what bbolt itself keeps, at the beginning of pages.
		at := r.IntN(len(whole))
		if n%2 == 0 {
			at = at/4096*4096 + r.IntN(120)
		}
		b := bytes.Clone(whole)
		b[at] ^= 1 << r.IntN(8)
		how := OpenForReading
		if n%40 < 2 {
			how = Open
		}
		switch got, err := open(b, how); {
		case err == nil && got != want:
			t.Fatalf("a bit at %d is wrong, and so is what is read", at)
		case err != nil:
			found++
			if !errors.Is(err, siltstone.ErrCorrupt) && !errors.Is(err, siltstone.ErrForeign) && !errors.Is(err, siltstone.ErrNewerFormat) && !errors.Is(err, coordinator.ErrGap) {
				t.Fatalf("a bit at %d is wrong: unclassed error: %v", at, err)
			}
		}
	}
	t.Logf("of 1000 bits %d were found", found)
}

// A root that is damaged is not passed over for the older one.
func TestDamagedRoot(t *testing.T) {
	whole := filled(t)
	path := filepath.Join(t.TempDir(), "cluster.db")
	for _, page := range []int{0, 4096} {
		for at := page + pageHeaderBytes; at < page+pageHeaderBytes+rootBytes; at++ {
			b := bytes.Clone(whole)
			b[at] ^= 0x40
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			for name, how := range map[string]func(string) (*Coordinator, error){"reading": OpenForReading, "writing": Open} {
				if c, err := how(path); !errors.Is(err, siltstone.ErrCorrupt) && !errors.Is(err, siltstone.ErrForeign) {
					t.Fatalf("byte %d, for %s: %v, %v; want an error", at, name, c, err)
				}
			}
		}
	}
}

// A ledger that lies inside another page has a header that nobody reads: until
// it is written anew, and bbolt frees the page that it names.
func TestDamagedHeaderInside(t *testing.T) {
	whole := filled(t)
	path := filepath.Join(t.TempDir(), "cluster.db")
	for _, at := range []int{0, 6, 12, 15} { // of its number, and of its count of pages
		b, found := bytes.Clone(whole), 0
		for rest := 0; ; found++ {
			next := bytes.Index(b[rest:], []byte(someLedgers[0]))
			if next < 0 {
				break
			}
			rest += next + len(someLedgers[0])
			if header := b[rest+bucketValueBytes:]; header[8] == leafPage { // also in pages that are free
				header[at] ^= 1
			}
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for name, how := range map[string]func(string) (*Coordinator, error){"reading": OpenForReading, "writing": Open} {
			if c, err := how(path); found == 0 || !errors.Is(err, siltstone.ErrCorrupt) {
				t.Errorf("byte %d in %d places, for %s: %v, %v; want ErrCorrupt", at, found, name, c, err)
			}
		}
	}
}

// Files of earlier releases do not note where ledgers end; theirs are noted
// from their next appends on.
func TestEndsThatAreNotNoted(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "v1.golden"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cluster.db")
	if err := os.WriteFile(path, golden, 0o600); err != nil {
		t.Fatal(err)
	}
	ends := func() (noted, uint64) {
		t.Helper()
		c, err := OpenForReading(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		tx, err := c.state.Load().db.Begin(false)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		all := tx.Bucket(ledgersBucket)
		return noted(all.Bucket([]byte("shard-07")).Sequence()), all.Sequence()
	}
	if end, sum := ends(); end != 0 || sum != 0 {
		t.Fatalf("noted: %x, %d", end, sum)
	}
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Append(t.Context(), "shard-07", slot(4)), c.Append(t.Context(), "new", slot(1)), c.Close()); err != nil {
		t.Fatal(err)
	}
	if end, sum := ends(); end != note([]byte("shard-07"), 4, encodeSlot(slot(4))) || sum != 5 {
		t.Errorf("noted: %x, %d", end, sum)
	}
}

// What is written to a file that is no longer at its path is lost with this
// process: it is not acknowledged, and another is not made in its place.
func TestFileGone(t *testing.T) {
	for name, away := range map[string]func(path string) error{
		"moved": func(path string) error { return os.Rename(path, path+"-away") },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+"-away"), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := opened(t)
			if err := errors.Join(c.Append(t.Context(), "a", slot(1)), away(c.path)); err != nil {
				t.Fatal(err)
			}
			for _, unknown := range []bool{false, true} {
				if unknown {
					c.publish(nil, c.state.Load().file, 0) // as after a commit whose outcome is unknown
				}
				appended := c.Append(t.Context(), "a", slot(2))
				_, read := c.Read(t.Context(), "a", 0, 10)
				for _, err := range []error{appended, read} {
					if !errors.Is(err, siltstone.ErrUnavailable) || errors.Is(err, coordinator.ErrUnknown) || !strings.Contains(err.Error(), "gone") {
						t.Errorf("%v, want that the file is gone", err)
					}
				}
			}
			if info, err := os.Stat(c.path); err == nil && info.Size() > 0 {
				t.Error("another file was made in its place")
			}
		})
	}
	t.Run("and back", func(t *testing.T) {
		c := opened(t)
		if err := errors.Join(c.Append(t.Context(), "a", slot(1)), os.Rename(c.path, c.path+"-away")); err != nil {
			t.Fatal(err)
		}
		if err := c.Append(t.Context(), "a", slot(2)); err == nil {
			t.Error("appended to a file that is gone")
		}
		if err := errors.Join(os.Rename(c.path+"-away", c.path), c.Append(t.Context(), "a", slot(2))); err != nil {
			t.Error(err)
		}
		wantSlots(t, c, 2)
	})
	t.Run("during a commit", func(t *testing.T) {
		c := opened(t)
		c.commitTx = func(tx *bbolt.Tx) error { return errors.Join(tx.Commit(), os.Rename(c.path, c.path+"-away")) }
		if err := c.Append(t.Context(), "a", slot(1)); !errors.Is(err, coordinator.ErrUnknown) {
			t.Errorf("%v, want that the outcome is unknown", err)
		}
	})
}

// What was cut off is not read: that would be a fault.
func TestFileCut(t *testing.T) {
	c := opened(t)
	if err := errors.Join(c.Append(t.Context(), "a", slot(1)), os.Truncate(c.path, 4096)); err != nil {
		t.Fatal(err)
	}
	appended := c.Append(t.Context(), "a", slot(2))
	_, read := c.Read(t.Context(), "a", 0, 10)
	for _, err := range []error{appended, read} {
		if err == nil || !strings.Contains(err.Error(), "was cut") {
			t.Errorf("%v, want that the file was cut", err)
		}
	}
}
