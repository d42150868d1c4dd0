// Package foldtest is what the tests of folds share: golden files, fuzzing of
// what is decoded, and that a checkpoint and what follows it are the same as
// the whole ledger. It runs nothing.
package foldtest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone"
)

// Update is the flag to write anew what tests compare with: golden files, and
// tables of pages.
var Update = flag.Bool("update", false, "write anew what tests compare with: golden files, tables of docs")

// Fold is of a ledger.Fold what does not depend on its changes.
type Fold interface {
	Rows(yield func(key, value []byte) bool)
	Restore(key, value []byte) error
}

// Body is what an entry says.
type Body interface {
	Kind() byte
	Encode() []byte
}

// Decode takes entries of a ledger apart.
type Decode[B Body] func(kind byte, body []byte) (B, error)

// Rows is the whole checkpoint as bytes.
func Rows(s Fold) []byte {
	var b []byte
	for k, v := range s.Rows {
		b = append(append(append(b, k...), '='), v...)
	}
	return b
}

// Restore gives an empty fold the rows of another, whose keys ascend.
func Restore[F Fold](t rapid.TB, from, empty F) F {
	t.Helper()
	var last []byte
	for key, value := range from.Rows {
		if last != nil && bytes.Compare(last, key) >= 0 {
			t.Fatalf("row %x comes after %x", key, last)
		}
		last = bytes.Clone(key)
		if err := empty.Restore(key, value); err != nil {
			t.Fatalf("row %x, %x: %v", key, value, err)
		}
	}
	return empty
}

// CheckpointAndTail checks that a fold of all entries is what a checkpoint
// somewhere among them and the entries after it give.
func CheckpointAndTail[F Fold, E any](t *rapid.T, entries []E, empty func() F, fold func(*rapid.T, F, []E)) {
	whole, head := empty(), empty()
	fold(t, whole, entries)
	cut := rapid.IntRange(0, len(entries)).Draw(t, "cut")
	fold(t, head, entries[:cut])
	again := Restore(t, head, empty())
	fold(t, again, entries[cut:])
	if !bytes.Equal(Rows(whole), Rows(again)) {
		t.Fatalf("checkpoint at %d and tail: %x\nall entries:            %x", cut, Rows(again), Rows(whole))
	}
}

// GoldenEntries compares bodies with testdata/entries.v1.golden, and reads those.
func GoldenEntries[B Body](t *testing.T, bodies []B, decode Decode[B]) {
	t.Helper()
	var b strings.Builder
	for _, body := range bodies {
		fmt.Fprintf(&b, "%d %x\n", body.Kind(), body.Encode())
	}
	for i, line := range strings.Split(strings.TrimSpace(golden(t, "entries.v1.golden", b.String())), "\n") {
		var kind byte
		var body []byte
		if _, err := fmt.Sscanf(line, "%d %x", &kind, &body); err != nil {
			t.Fatal(err)
		}
		got, err := decode(kind, body)
		if err != nil || !bytes.Equal(got.Encode(), bodies[i].Encode()) {
			t.Errorf("line %d: %+v, %v", i+1, got, err)
		}
	}
}

// GoldenCheckpoint compares rows with testdata/checkpoint.v1.golden, and restores those.
func GoldenCheckpoint(t *testing.T, state, empty Fold) {
	t.Helper()
	var b strings.Builder
	for key, value := range state.Rows {
		fmt.Fprintf(&b, "%x %x\n", key, value)
	}
	for line := range strings.Lines(golden(t, "checkpoint.v1.golden", b.String())) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		k, _ := hex.DecodeString(key)
		v, _ := hex.DecodeString(value)
		if err := empty.Restore(k, v); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(Rows(empty), Rows(state)) {
		t.Errorf("restored %x, want %x", Rows(empty), Rows(state))
	}
}

// golden compares with a file of testdata, and returns what stands there.
func golden(t *testing.T, name, got string) string {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *Update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
	return string(want)
}

// FuzzDecode decodes whatever comes. What can be decoded is encoded to the
// same again; and whatever it is, apply folds it, or says that it is void,
// without an error.
func FuzzDecode[B Body](f *testing.F, corpus []B, decode Decode[B], apply func(kind byte, body []byte) error) {
	for _, b := range corpus {
		f.Add(b.Kind(), b.Encode())
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		b, err := decode(kind, body)
		if errors.Is(err, siltstone.ErrNewerFormat) {
			return
		}
		if err := apply(kind, body); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			mustBeOurs(t, err)
			return
		}
		again, err := decode(kind, b.Encode())
		if err != nil || !bytes.Equal(again.Encode(), b.Encode()) {
			t.Fatalf("%+v came back as %+v: %v", b, again, err)
		}
	})
}

// FuzzRestore restores whatever comes. A state that takes it is used, and gives
// rows that can be restored to the same.
func FuzzRestore[F Fold](f *testing.F, corpus F, empty func() F, use func(F)) {
	for key, value := range corpus.Rows {
		f.Add(bytes.Clone(key), bytes.Clone(value))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		s := empty()
		if err := s.Restore(key, value); err != nil {
			mustBeOurs(t, err)
			return
		}
		use(s)
		again := Restore(t, s, empty())
		if !bytes.Equal(Rows(s), Rows(again)) {
			t.Fatalf("%x came back as %x", Rows(s), Rows(again))
		}
	})
}

func mustBeOurs(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, siltstone.ErrCorrupt) && !errors.Is(err, siltstone.ErrNewerFormat) {
		t.Fatal(err)
	}
}
