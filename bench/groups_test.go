package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/group"
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
	within := w.of([]appended{{at: at(9)}, {at: at(10)}, {at: at(19)}, {at: at(20)}})
	if len(within) != 2 || within[0].at != at(10) || within[1].at != at(19) {
		t.Errorf("%v", within)
	}
}

// A replay fills each ledger anew and has a time for each append.
func TestReplay(t *testing.T) {
	start := time.Now()
	entries := func(n int) (all []appended) {
		for i := range n {
			all = append(all, appended{start.Add(time.Duration(i) * time.Millisecond), []byte("entry")})
		}
		return append(all, appended{start.Add(2 * replayTime), []byte("too late")})
	}
	times, err := replay(t.Context(), t.TempDir(), start, [][]appended{entries(3), nil, entries(5)})
	if err != nil || len(times) != 8 || times[0] <= 0 || !slices.IsSorted(times) {
		t.Errorf("%v (%v)", times, err)
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

// Each aim is met at its limit, and missed above it.
func TestAims(t *testing.T) {
	figures := func(siltstone, kafka float64, over float64) Report {
		var r Report
		for _, f := range []struct {
			figure  string
			at      float64
			compare bool
		}{
			{"2 members: one leaves, " + toAllAssigned, kafka, true},
			{"2 members: " + rollingRestart, kafka, true},
			{"groups: " + heapPerGroup, maxHeapPerGroupKiB, false},
			{"commits: " + appendsOfShard, maxShardAppends, false},
			{"commits" + commitP99, siltstone + maxOverAppendMS, false},
		} {
			r.GroupSamples = append(r.GroupSamples, GroupSample{1, siltstoneName, f.figure, "", f.at + over})
			if f.compare {
				r.GroupSamples = append(r.GroupSamples, GroupSample{1, "Kafka", f.figure, "", f.at})
			}
		}
		return r
	}
	for _, tt := range []struct {
		over   float64
		missed int
	}{{0, 0}, {1, 5}} {
		r := figures(7, 100, tt.over)
		r.GroupSamples = append(r.GroupSamples, GroupSample{1, siltstoneName, "commits: " + appendAlone, "ms", 7})
		page := r.groupsMarkdown()
		if strings.Count(page, "missed") != tt.missed || strings.Count(page, "at most") != 5 {
			t.Errorf("%v over, %d should be missed of 5:\n%s", tt.over, tt.missed, page)
		}
		if !strings.Contains(page, "an append alone + 20, 27.0") || !strings.Contains(page, "Kafka's") {
			t.Errorf("limits that depend on other figures:\n%s", page)
		}
	}
}
