package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseCell(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"producers=16", "1.0 KiB, 16 partitions, 16 producers, flat out"},
		{"record=100,partitions=1000,producers=16,rate=10000", "100 B, 1,000 partitions, 16 producers, 10,000 records/s"},
		{"rate=10,followers=2,partitions=1", "1.0 KiB, 1 partition, 1 producer, 10 records/s, 2 followers"},
		{"batch=0", "1.0 KiB, 16 partitions, 1 producer, flat out, large batches"},
		{"batch=65536", "1.0 KiB, 16 partitions, 1 producer, flat out, 64 KiB batches"},
	} {
		if got, err := parseCell(c.in); err != nil || got.String() != c.want {
			t.Errorf("%q is %q (%v), want %q", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{"", "rate", "rate=x", "rate=-1", "consumers=1", "record=10", "followers=1"} {
		if got, err := parseCell(in); err == nil {
			t.Errorf("%q was taken for %q", in, got)
		}
	}
}

// The matrix has a cell for each mix of what it varies, and no name twice.
func TestMatrix(t *testing.T) {
	names := map[string]bool{}
	halves := 0
	for _, c := range matrix() {
		if names[c.String()] {
			t.Errorf("two cells are %q", c)
		}
		names[c.String()] = true
		if c.halfCPU() {
			halves++
		}
	}
	if halves != 2 {
		t.Errorf("%d cells should cost half of Kafka's CPU, want 2", halves)
	}
	for _, size := range []string{"1.0 KiB", "100 B"} {
		for _, partitions := range []string{"1 partition", "16 partitions", "1,000 partitions"} {
			for _, producers := range []string{"1 producer", "16 producers"} {
				for _, rate := range []string{"flat out", "10,000 records/s"} {
					if name := strings.Join([]string{size, partitions, producers, rate}, ", "); !names[name] {
						t.Errorf("no cell %q", name)
					}
				}
			}
		}
	}
	some, err := matching(matrix(), "1.0 KiB, 16 .*flat out$")
	if err != nil || len(some) != 2 {
		t.Errorf("%v match (%v)", some, err)
	}
	for _, pattern := range []string{"(", "2 KiB"} {
		if some, err := matching(matrix(), pattern); err == nil {
			t.Errorf("%q matches %v", pattern, some)
		}
	}
}

// Records of all producers together keep the rate, evenly spaced, whatever the clock says.
func TestScheduleIgnoresTheClock(t *testing.T) {
	const late = time.Hour
	var due []time.Duration
	for number := range uint64(3) {
		for p := range 4 {
			due = append(due, schedule{rate: 1000, producers: 4, producer: p}.due(number, late))
		}
	}
	for i, d := range due {
		if want := time.Duration(i) * time.Millisecond; d != want {
			t.Errorf("record %d is due at %v, want %v", i, d, want)
		}
	}
	if d := (schedule{producers: 4}).due(7, late); d != late {
		t.Errorf("flat out, a record asked for at %v is due at %v", late, d)
	}
}

func TestReadBackFindsWhatIsWrong(t *testing.T) {
	p := newPayload(1024)
	key, value := p.key(3, 500), p.value(3, 500)
	if len(key)+len(value) != 1024 {
		t.Errorf("a record of %d bytes, want 1024", len(key)+len(value))
	}
	if producer, number, err := p.identify(key, value); producer != 3 || number != 500 || err != nil {
		t.Errorf("identified as record %d of producer %d (%v)", number, producer, err)
	}
	if _, _, err := p.identify(key, p.value(3, 501)); err == nil {
		t.Error("another record's value passed")
	}
	if _, _, err := p.identify(key[1:], value); err == nil {
		t.Error("half a key passed")
	}

	s := newSeen([]uint64{1, 65})
	for _, r := range []struct {
		producer uint32
		number   uint64
	}{{0, 0}, {1, 64}} {
		if err := s.tick(r.producer, r.number); err != nil {
			t.Error(err)
		}
	}
	if s.missing != 64 {
		t.Errorf("%d missing, want 64", s.missing)
	}
	for _, r := range []uint32{0, 1, 2} { // never produced, there already, of nobody
		if err := s.tick(r, 64); err == nil {
			t.Errorf("record 64 of producer %d passed", r)
		}
	}
}

func TestProc(t *testing.T) {
	stat := "7 (a ) b) S 1 7 7 0 -1 4194304 100 200 0 0 150 50 25 5 20 0 1 0 99 1 2"
	if got, err := parseCPU([]byte(stat)); err != nil || got != 2300*time.Millisecond {
		t.Errorf("%v of CPU (%v), want 2.3s", got, err)
	}
	if _, err := parseCPU([]byte("7 (a) S 1 7")); err == nil {
		t.Error("a short line passed")
	}
	if got, err := parseStatus([]byte("Name:\tjava\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"), "VmHWM:"); err != nil || got != 2<<20 {
		t.Errorf("%d bytes (%v), want 2 MiB", got, err)
	}
	if u, err := readUsage(os.Getpid()); err != nil || u.peakRSSBytes < 1<<20 {
		t.Errorf("this process used %+v (%v)", u, err)
	}
}

func TestQuantile(t *testing.T) {
	var ms []time.Duration
	for i := range 100 {
		ms = append(ms, time.Duration(i+1)*time.Millisecond)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 0.995: 100, 1: 100} {
		if got := millis(quantile(ms, q)); got != want {
			t.Errorf("quantile %v is %v ms, want %v", q, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestSpread(t *testing.T) {
	for want, figures := range map[string][]float64{
		"–":                        {},
		"0.00 (0.00–0.00)":         {0, 0},
		"1,235":                    {1234.6},
		"2.00 (1.00–30.0)":         {30, 1, 2},
		"15.0 (10.0–20.0)":         {20, 10},
		"12,000 (9,000–1,000,000)": {1e6, 9e3, 12e3},
	} {
		if got := spread(slices.Clone(figures)); got != want {
			t.Errorf("%v is %q, want %q", figures, got, want)
		}
	}
}

func TestFiguresReplaceOnlyFigures(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(s string) {
		if err := os.WriteFile(page, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begin, end := marks("x")
	other, otherEnd := marks("y")
	below := "below\n" + other + "kept\n" + otherEnd
	write("above\n" + begin + "old\n" + end + below)
	for range 2 { // again, and nothing grows
		if err := writeInto(page, "x", "| new |\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if want := "above\n" + begin + "\n| new |\n\n" + end + below; err != nil || string(got) != want {
		t.Errorf("the page is %q (%v), want %q", got, err, want)
	}
	write("a page without marks\n")
	if err := writeInto(page, "x", "| new |\n"); err == nil {
		t.Error("a page without a place for figures was written to")
	}
}
