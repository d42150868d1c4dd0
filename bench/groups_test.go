package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/embedded"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// Every partition is assigned, to one member, and to each as many as to others.
func TestAssign(t *testing.T) {
	topic := groupTopic{"t", 10}
	var members []kmsg.JoinGroupResponseMember
	for _, id := range []string{"c", "a", "b"} {
		members = append(members, kmsg.JoinGroupResponseMember{MemberID: id})
	}
	var all []int32
	for _, a := range topic.assign(members) {
		var share kmsg.ConsumerMemberAssignment
		if err := share.ReadFrom(a.MemberAssignment); err != nil {
			t.Fatal(err)
		}
		parts := share.Topics[0].Partitions
		if share.Topics[0].Topic != "t" || len(parts) < 3 || len(parts) > 4 {
			t.Errorf("%s has %v", a.MemberID, share.Topics)
		}
		all = append(all, parts...)
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 10 || len(all) != 10 {
		t.Errorf("assigned: %v", all)
	}
}

// A crew has settled when the whole topic is shared among as many members as
// there should be, in one generation.
func TestSettled(t *testing.T) {
	for _, tt := range []struct {
		name  string
		heard []news
		want  bool
	}{
		{"all", []news{{generation: 2, partitions: 5}, {generation: 2, partitions: 5}}, true},
		{"one has left", []news{{generation: 2, partitions: 5}, {generation: 2, partitions: 5}, {generation: 1, partitions: 5, gone: true}}, true},
		{"one not heard of", []news{{generation: 1, partitions: 10}, {}}, false},
		{"an older generation", []news{{generation: 2, partitions: 5}, {generation: 1, partitions: 5}}, false},
		{"a part of the topic", []news{{generation: 2, partitions: 5}, {generation: 2, partitions: 4}}, false},
		{"too few", []news{{generation: 2, partitions: 10}}, false},
	} {
		c := newCrew(t.Context(), "g", groupTopic{"t", 10}, time.Second)
		for _, n := range tt.heard {
			c.members = append(c.members, &hand{heard: n})
		}
		if got := c.areSettled(2); got != tt.want {
			t.Errorf("%s: settled is %v", tt.name, got)
		}
	}
}

func TestOneShardGroups(t *testing.T) {
	ids := oneShardGroups("g", 100)
	for _, id := range ids {
		if group.Of(id) != group.Of(ids[0]) {
			t.Errorf("%s is of shard %d", id, group.Of(id))
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 100 {
		t.Errorf("%v", ids)
	}
}

func TestWindow(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	w := window{start: at(10), end: at(20)}
	if n := w.count([]time.Time{at(9), at(10), at(19), at(20)}); n != 2 {
		t.Errorf("%d of two", n)
	}
}

// A probe goes on until it is told to stop, and has a time for each append.
func TestProbeAppends(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*probeInterval)
	defer cancel()
	times, err := probeAppends(ctx, t.TempDir())
	if err != nil || len(times) == 0 || times[0] <= 0 || !slices.IsSorted(times) {
		t.Errorf("%v (%v)", times, err)
	}
}

// Times of appends are those of the ledgers' entries, shard by shard.
func TestReadLedgers(t *testing.T) {
	database := filepath.Join(t.TempDir(), "cluster.db")
	c, err := embedded.Open(database)
	if err != nil {
		t.Fatal(err)
	}
	for seq, ms := range []int64{1000, 2000, 3000} {
		e := coordinator.Entry{Seq: coordinator.Seq(seq + 1), Data: ledger.Frame{TimeMS: ms}.Encode()}
		if err := c.Append(t.Context(), group.Ledger(3), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	shards, err := readLedgers(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	for i, times := range shards {
		if i == 3 {
			if len(times) != 3 || times[1] != time.UnixMilli(2000) {
				t.Errorf("shard 3: %v", times)
			}
		} else if len(times) > 0 {
			t.Errorf("shard %d: %v", i, times)
		}
	}
}

func TestParseHeap(t *testing.T) {
	page := []byte("heap profile: 1: 2 [3: 4] @ heap/1048576\n# Alloc = 9\n# HeapAlloc = 1234567\n# HeapSys = 8\n")
	if n, err := parseHeap(page, goHeapLine, 1); err != nil || n != 1234567 {
		t.Errorf("%d (%v)", n, err)
	}
	info := []byte("42:\n garbage-first heap   total 1048576K, used 53248K [0x00000000c0000000, 0x0000000100000000)\n  region size 1024K, 1 young (1024K)\n Metaspace       used 9K")
	if n, err := parseHeap(info, javaHeapLine, 1<<10); err != nil || n != 53248<<10 {
		t.Errorf("%d (%v)", n, err)
	}
	if _, err := parseHeap(info, goHeapLine, 1); err == nil {
		t.Error("a page without the line passed")
	}
}

// The quantile of what came between two readings of a histogram.
func TestBuckets(t *testing.T) {
	page := func(counts ...string) []byte {
		var b strings.Builder
		b.WriteString("# TYPE h histogram\nh_bucket{kind=\"shard\",le=\"0.001\"} 7\n")
		for i, bound := range []string{"0.001", "0.002", "0.004", "+Inf"} {
			b.WriteString("h_bucket{kind=\"group\",le=\"" + bound + "\"} " + counts[i] + "\n")
		}
		return []byte(b.String())
	}
	read := func(page []byte) buckets {
		b, err := parseBuckets(page, `h_bucket{kind="group",le="`)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	before, after := read(page("10", "10", "10", "10")), read(page("10", "60", "110", "110"))
	for q, want := range map[float64]float64{0.25: 1.5, 0.5: 2, 0.75: 3, 1: 4} {
		if got := millis(after.quantile(before, q)); got != want {
			t.Errorf("quantile %v is %v ms, want %v", q, got, want)
		}
	}
	if _, err := parseBuckets([]byte("h_count 7\n"), "h_bucket"); err == nil {
		t.Error("a page without the histogram passed")
	}
}

// Each aim is met at its limit, and missed beyond it.
func TestAims(t *testing.T) {
	all := []struct {
		name  string
		part  string
		at    float64
		kafka float64 // if that is the limit
		over  float64 // what is too much, or too little
	}{
		{"2 members: one leaves, " + toAllAssigned, groupsPart, 100, 100, 1},
		{"2 members: " + rollingRestart, groupsPart, 100, 100, 1},
		{"groups: " + heapPerGroup, groupsPart, maxHeapPerGroupKiB, 0, 1},
		{"commits: " + appendsOfShard, groupsPart, maxShardAppends, 0, 1},
		{"commits: " + commitP99, groupsPart, 7 + maxOverAppendMS, 0, 1},
		{"producer's " + toolThroughput, toolsPart, 50, 50, -1},
		{"producer's " + toolAckP99, toolsPart, 50, 50, 1},
		{writable + ", after kill -9", startPart, maxWritableMS, 0, 1},
		{idleRSS + ", fresh", startPart, maxIdleRSSMiB, 0, 1},
		{idleCPU + ", fresh", startPart, maxIdleCPU, 0, 1},
	}
	for _, beyond := range []float64{0, 1} {
		r := Report{Runs: []Run{{Commit: "abc"}}}
		for _, f := range all {
			r.Figures = append(r.Figures, Figure{System: siltstoneName, Part: f.part, Name: f.name, Value: f.at + beyond*f.over})
			if f.kafka > 0 {
				r.Figures = append(r.Figures, Figure{System: peerName, Part: f.part, Name: f.name, Value: f.kafka})
			}
		}
		r.Figures = append(r.Figures, Figure{System: siltstoneName, Part: groupsPart, Name: "commits: " + appendP99, Value: 7})
		var page string
		for _, part := range allParts {
			page += r.markdown(part)
		}
		if n := strings.Count(page, "missed"); n != int(beyond)*len(all) || strings.Count(page, "at most")+strings.Count(page, "at least") != len(all) {
			t.Errorf("%v beyond: %d missed of %d:\n%s", beyond, n, len(all), page)
		}
		if !strings.Contains(page, "an append + 20, 27.0") || !strings.Contains(page, peerName+"'s") {
			t.Errorf("limits that depend on other figures:\n%s", page)
		}
	}
}
