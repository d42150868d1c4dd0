package group

import (
	"fmt"
	"runtime"
	"testing"
)

// crowd is a stable group g of many members; the first leads.
func crowd(t testing.TB, members int) (*world, []*client) {
	w := newWorld(t)
	w.settings.MaxMembers = members
	cs := make([]*client, members)
	for i := range cs {
		cs[i] = w.client("g", "client")
		cs[i].session = 1_800_000
	}
	settleIn(cs...)
	w.is("g", Stable, 1, members)
	return w, cs
}

// again lets all of a group join, and sync, once more.
func again(w *world, cs []*client) {
	settleIn(cs...)
	if w.describe("g").Phase != Stable {
		w.t.Fatal("it is not stable")
	}
}

func BenchmarkHeartbeat(b *testing.B) {
	w, cs := crowd(b, 1000)
	list := make([]Heartbeat, len(cs))
	for i, c := range cs {
		list[i] = Heartbeat{Call: c.call(), Member: c.id, Generation: 1}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.m.Handle(&list[i%len(list)], w.now)
		w.m.Answered()
	}
	if err := list[0].Err; err != nil {
		b.Fatal(err)
	}
}

// A rebalance of 1,000 members, from the first JoinGroup to the last answer to
// a SyncGroup, the entries and the fold included.
func BenchmarkRebalance(b *testing.B) {
	for _, members := range []int{100, 1000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			w, cs := crowd(b, members)
			b.ReportAllocs()
			for b.Loop() {
				again(w, cs)
			}
		})
	}
}

// 1,000 groups commit 10 offsets each, in one entry.
func BenchmarkCommits(b *testing.B) {
	w := newWorld(b)
	requests := make([]*Commit, 1000)
	for i := range requests {
		requests[i] = outsider(fmt.Sprintf("consumer-group-%06d", i), at(1, 0), 1)
		for p := range 9 {
			requests[i].Parts = append(requests[i].Parts, partOf(at(1+uint32(p/4), int32(p%4)), 1))
		}
	}
	b.ReportAllocs()
	for off := int64(1); b.Loop(); off++ {
		for _, r := range requests {
			for i := range r.Parts {
				r.Parts[i].Offset = off
			}
			w.handle(r)
		}
		w.settle()
	}
	b.ReportMetric(float64(w.entries)/float64(b.N), "entries/op")
}

// Members send a heartbeat every few seconds, thousands of them.
func TestHeartbeatsAllocateNothing(t *testing.T) {
	w, cs := stable(t, 3)
	r := &Heartbeat{Call: cs[1].call(), Member: cs[1].id, Generation: 1}
	allocs := testing.AllocsPerRun(100, func() {
		w.m.Handle(r, w.now)
		if len(w.m.Answered()) != 1 || r.Err != nil {
			t.Fatal(r.Err)
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// Ten times the members take about ten times as much.
func TestRebalanceOfMany(t *testing.T) {
	cost := func(members int) float64 {
		w, cs := crowd(t, members)
		return testing.AllocsPerRun(2, func() { again(w, cs) })
	}
	few, many := cost(50), cost(500)
	t.Logf("%.0f and %.0f allocations", few, many)
	if many > 15*few {
		t.Errorf("%.0f allocations for 50 members, %.0f for 500", few, many)
	}
}

// A group takes little, fold and coordinator together.
func TestCoordinatedGroupIsSmall(t *testing.T) {
	const groups, mostBytes = 300, 64 << 10
	before := heapBytes()
	w := newWorld(t)
	for i := range groups {
		w.apply(consumers(i, 10))
	}
	w.crash(false)
	for i := range groups { // each client says all that it offers
		for _, f := range w.fold.groups[fmt.Sprintf("consumer-group-%06d", i)].Members {
			w.handle(&Join{
				Call: Call{Group: fmt.Sprintf("consumer-group-%06d", i)}, Member: f.ID, ClientID: f.ClientID, Type: "consumer",
				Protocols: []Protocol{{"range", make([]byte, 60)}, {"cooperative-sticky", make([]byte, 200)}},
				SessionMS: 45_000, RebalanceMS: 300_000,
			})
		}
	}
	w.settle()
	each := (heapBytes() - before) / groups
	t.Logf("%d bytes", each)
	if each > mostBytes || each < 1000 {
		t.Errorf("a group of 10 members and 100 offsets takes %d bytes, %d at most", each, mostBytes)
	}
	runtime.KeepAlive(w)
}
