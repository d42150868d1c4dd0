package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const peerName = kafkaName

// measured is a report of one run, of two rounds of a cell in which Siltstone
// and its peer are a little apart.
func measured(commit string, c Cell, ours, peers Sample) Report {
	r := Report{Runs: []Run{{Commit: commit, Date: "2026-12-02"}}}
	for round := range 2 {
		for _, s := range []Sample{peers, ours} {
			s.Round, s.Cell = round+1, c
			s.WriteMiBPerSecond += float64(round) // 1 apart
			r.Samples = append(r.Samples, s)
		}
	}
	return r
}

func ofSystem(system string, mib, p99, cpu float64) Sample {
	return Sample{System: system, WriteMiBPerSecond: mib, AckP99Millis: p99, WriteCPUPerGiB: cpu}
}

func TestMarkdownHasARowPerCellAndSystem(t *testing.T) {
	c := Cell{RecordBytes: 100, Partitions: 1, Producers: 1, BatchBytes: javaBatchBytes}
	r := measured("abc", c, ofSystem(siltstoneName, 200, 2, 3), ofSystem(peerName, 100, 2, 3))
	r.sort()
	want := "| 100 B, 1 partition, 1 producer, flat out | Siltstone | 201 (200–201) |"
	page := r.markdown(recordsPart)
	for _, row := range []string{want, strings.NewReplacer(siltstoneName, peerName, "201", "101", "200", "100").Replace(want)} {
		if !strings.Contains(page, "\n"+row) {
			t.Errorf("no row %q in\n%s", row, page)
		}
	}
	if strings.Index(page, peerName) < strings.Index(page, siltstoneName) {
		t.Errorf("Siltstone is not first in\n%s", page)
	}
	if strings.Count(page, "| abc, 2026-12-02 |") != 4 { // and reading back
		t.Errorf("rows do not say of which commit they are:\n%s", page)
	}
}

// Each aim of a cell is met at its limit, and missed beyond it.
func TestCellAims(t *testing.T) {
	flatOut := Cell{RecordBytes: 1024, Partitions: 16, Producers: 1, BatchBytes: javaBatchBytes}
	slow, fast := flatOut, flatOut
	slow.Rate, slow.Followers = 1000, 1
	fast.Rate, fast.Followers = 50_000, 4
	tail := func(s Sample, cpu float64) Sample { s.TailCPUPerGiB = cpu; return s }
	peer := tail(ofSystem(peerName, 100, 10, 10), 1)
	for _, tt := range []struct {
		name    string
		cell    Cell
		ours    Sample
		writing string
		tailing string
	}{
		{"at the limits", flatOut, ofSystem(siltstoneName, 100, 10, 5), "met", "met"},
		{"slower", flatOut, ofSystem(siltstoneName, 99, 10, 5), "**missed**: throughput", "met"},
		{"later", flatOut, ofSystem(siltstoneName, 100, 11, 5), "**missed**: ack p99", "met"},
		{"dearer", flatOut, ofSystem(siltstoneName, 100, 10, 6), "**missed**: half the CPU, 5.00", "met"},
		{"all", flatOut, ofSystem(siltstoneName, 99, 11, 6), "**missed**: throughput; ack p99; half the CPU, 5.00", "met"},
		{"at a rate", slow, tail(ofSystem(siltstoneName, 99.9, 10, 20), 2), "met", ""},
		{"behind a rate", slow, ofSystem(siltstoneName, 95, 10, 20), "**missed**: throughput", ""},
		{"the tail", fast, tail(ofSystem(siltstoneName, 100, 10, 20), 1), "met", "met"},
		{"a dear tail", fast, tail(ofSystem(siltstoneName, 100, 10, 20), 1.1), "met", "**missed**: tail CPU"},
	} {
		r := measured("abc", tt.cell, tt.ours, peer)
		if got := r.writingAim(tt.cell); got != tt.writing {
			t.Errorf("%s: writing: %q, want %q", tt.name, got, tt.writing)
		}
		if got := r.tailAim(tt.cell); tt.cell.Followers > 0 && got != tt.tailing {
			t.Errorf("%s: the tail: %q, want %q", tt.name, got, tt.tailing)
		}
	}
	beside := measured("abc", flatOut, ofSystem(siltstoneName, 100, 10, 5), ofSystem(peerName, 100, 10, 10))
	beside.Samples = append(beside.Samples, measured("abc", flatOut, ofSystem(syncedName, 300, 1, 1), ofSystem(syncedName, 300, 1, 1)).Samples...)
	if got := beside.writingAim(flatOut); got != "met" {
		t.Errorf("beside one that syncs: %q", got)
	}
	alone := measured("abc", flatOut, ofSystem(siltstoneName, 1, 1, 1), ofSystem(siltstoneName, 1, 1, 1))
	if got := alone.writingAim(flatOut); got != "" {
		t.Errorf("alone: %q", got)
	}
}

// A later run replaces what it has measured again, of one system too, and
// leaves the rest, with where it comes from.
func TestMerge(t *testing.T) {
	one, other := matrix()[0], matrix()[1]
	path := filepath.Join(t.TempDir(), "all.json")
	var all Report
	merge := func(later Report) {
		t.Helper()
		all.merge(later)
		text, err := all.encode()
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := readReport(path)
		if diff := cmp.Diff(all, again); err != nil || diff != "" {
			t.Fatalf("read again: %v\n%s", err, diff)
		}
	}
	of := func(keep func(Sample) bool) (runs []string) {
		for _, s := range all.Samples {
			if keep(s) {
				runs = append(runs, all.Runs[s.Run].Commit)
			}
		}
		return runs
	}
	first := measured("first", other, ofSystem(siltstoneName, 1, 1, 1), ofSystem(peerName, 1, 1, 1))
	first.Figures = []Figure{{System: siltstoneName, Part: startPart, Name: "a", Value: 1}, {System: siltstoneName, Part: toolsPart, Name: "a", Value: 2}}
	merge(first)
	merge(measured("second", one, ofSystem(siltstoneName, 1, 1, 1), ofSystem(peerName, 1, 1, 1)))
	if all.Samples[0].Cell != one {
		t.Errorf("the matrix begins with %q, the report with %q", one, all.Samples[0].Cell)
	}
	third := measured("third", other, ofSystem(siltstoneName, 2, 2, 2), ofSystem(siltstoneName, 2, 2, 2))
	third.Figures = []Figure{{System: siltstoneName, Part: startPart, Name: "a", Value: 3}}
	merge(third)
	if got, want := of(func(s Sample) bool { return s.Cell == other && s.System == siltstoneName }), slices.Repeat([]string{"third"}, 4); !slices.Equal(got, want) {
		t.Errorf("measured again: of %v, want %v", got, want)
	}
	if got := of(func(s Sample) bool { return s.System == peerName && s.Cell == other }); !slices.Equal(got, []string{"first", "first"}) {
		t.Errorf("the peer, which was not: of %v", got)
	}
	if got := of(func(s Sample) bool { return s.Cell == one }); !slices.Equal(got, slices.Repeat([]string{"second"}, 4)) {
		t.Errorf("another cell: of %v", got)
	}
	values := map[string]float64{}
	for _, f := range all.Figures {
		values[all.Runs[f.Run].Commit+" "+f.Part] = f.Value
	}
	if diff := cmp.Diff(map[string]float64{"third start": 3, "first tools": 2}, values); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	merge(measured("fourth", other, ofSystem(siltstoneName, 2, 2, 2), ofSystem(peerName, 2, 2, 2)))
	if len(all.Runs) != 4 { // figures of the first and third are left
		t.Errorf("runs: %v", all.Runs)
	}
	all.Figures = all.Figures[:0]
	merge(Report{Runs: []Run{{Commit: "nothing"}}})
	if len(all.Runs) != 2 {
		t.Errorf("runs of which nothing is left: %v", all.Runs)
	}
	if none, err := readReport(path + "x"); err != nil || len(none.Samples) > 0 {
		t.Errorf("a file that is not there: %v %v", none, err)
	}
}

// Kafka 4.4.0's tools say this.
func TestTools(t *testing.T) {
	p, err := parseProducerTool("3000 records sent, 599.9 records/sec (0.59 MB/sec), 2.1 ms avg latency, 300.0 ms max latency.\n" +
		"20000 records sent, 47846.889952 records/sec (4.56 MB/sec), 40.90 ms avg latency, 168.00 ms max latency, 38 ms 50th, 66 ms 95th, 70 ms 99th, 72 ms 99.9th.\n")
	if want := (producerTool{4.56, 38, 70}); err != nil || p != want {
		t.Errorf("producer: %v (%v), want %v", p, err, want)
	}
	c, err := parseConsumerTool("WARN something, else\n2026-12-02 07:00:00:000, 2026-12-02 07:00:04:000, 1.9073, 0.4768, 20000, 5000.0, 3210, 790, 2.4143, 25316.5\n")
	if err != nil || c != 2.4143 {
		t.Errorf("consumer: %v (%v)", c, err)
	}
	for _, out := range []string{"", "no records"} {
		if _, err := parseProducerTool(out); err == nil {
			t.Errorf("%q passed as a producer's", out)
		}
		if _, err := parseConsumerTool(out); err == nil {
			t.Errorf("%q passed as a consumer's", out)
		}
	}
}
