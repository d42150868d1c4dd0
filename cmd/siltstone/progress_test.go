package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

func TestProgressLine(t *testing.T) {
	bar := func(n int) string { return "[" + strings.Repeat("#", n) + strings.Repeat(".", 24-n) + "]" }
	for _, tt := range []struct {
		unit        string
		done, total int64
		want        string
	}{
		{"records", 0, 48, bar(0) + " 0 %, 0 of 48 records"},
		{"records", 12, 48, bar(6) + " 25 %, 12 of 48 records, 30s left"},
		{"records", 48, 48, bar(24) + " 100 %, 48 of 48 records"},
		{"records", 49, 48, bar(24) + " 100 %, 48 of 48 records"},
		{progressBytes, 3 << 30, 4 << 30, bar(18) + " 75 %, 3.0 GiB of 4.0 GiB, 3s left"},
	} {
		if got := progressLine(tt.unit, tt.done, tt.total, 10*time.Second); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestProgressIsQuiet: where nobody reads along nothing is shown.
func TestProgressIsQuiet(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if isTerminal(w) || isTerminal(&bytes.Buffer{}) {
		t.Error("a pipe or a buffer is taken for a terminal")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) {
		t.Error("/dev/null is taken for a terminal")
	}
	called := false
	showProgress(w, "records", 1, func() int64 { called = true; return 0 })()
	if called {
		t.Error("progress of what nobody sees is asked for")
	}
}

// TestIsTerminal: the side of a terminal that programs hold is one, too.
func TestIsTerminal(t *testing.T) {
	terminal, err := os.Open("/dev/ptmx")
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	if !isTerminal(terminal) {
		t.Error("a terminal is taken for none")
	}
}
