package group

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// consumers is a group as Kafka's Java client makes it: members with 100
// offsets among them, all of topics with names of 20 characters.
func consumers(n, members int) *Update {
	u := GroupUpdate{ID: fmt.Sprintf("consumer-group-%06d", n), Set: &Info{
		Type: "consumer", Protocol: "range", Generation: 7, Assigned: true, ChangedMS: 1_800_000_000_000,
	}}
	for i := range members {
		m := Member{
			ID:       fmt.Sprintf("consumer-group-%06d-1-6f1a1bd0-0f62-4d7e-9cd1-%012d", n, i),
			ClientID: fmt.Sprintf("consumer-group-%06d-1", n), ClientHost: "/10.20.30.40", SessionMS: 45_000, RebalanceMS: 300_000,
			Subscription: make([]byte, 60), Assignment: make([]byte, 90),
		}
		u.Set.Members = append(u.Set.Members, m)
		u.Set.Leader = m.ID
	}
	for i := range 100 {
		u.Commit = append(u.Commit, Committed{
			TopicPartition: TopicPartition{uint32(40 + i/50), int32(i % 50)},
			Offset:         1_000_000 + int64(i), Epoch: 12, TimeMS: 1_800_000_000_000 + int64(i), ExpireMS: -1,
		})
	}
	return &Update{Epoch: 1, Writer: alice, Groups: []GroupUpdate{u}}
}

// foldMany is a shard of n groups, of 10 members and 100 offsets each.
func foldMany(n int) *State {
	bodies := []Body{leadAlice}
	for i := range n {
		bodies = append(bodies, consumers(i, 10))
	}
	return folded(bodies...)
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A cluster may have many thousand groups.
func TestGroupIsSmall(t *testing.T) {
	const groups, mostBytes = 500, 24 << 10
	before := heapBytes()
	s := foldMany(groups)
	each := (heapBytes() - before) / groups
	t.Logf("%d bytes", each)
	if each > mostBytes || each < 1000 {
		t.Errorf("a group of 10 members and 100 offsets takes %d bytes, %d at most", each, mostBytes)
	}
	runtime.KeepAlive(s)
}

// BenchmarkApplyCommits folds what a thousand groups commit in 5 ms, of 10 partitions each.
func BenchmarkApplyCommits(b *testing.B) {
	const groups, partitions = 1000, 10
	s, u := folded(leadAlice), update()
	for i := range groups {
		g := consumers(i, 1).Groups[0]
		u.Groups = append(u.Groups, GroupUpdate{ID: g.ID, Commit: g.Commit[:partitions]})
	}
	body := u.Encode()
	b.ReportAllocs()
	for b.Loop() {
		if c, err := s.Apply(ledger.Entry{Kind: KindUpdate, Body: body}); err != nil || c.Void != "" {
			b.Fatal(err, c.Void)
		}
	}
	b.ReportMetric(float64(len(body))/groups/partitions, "B/offset")
}

// BenchmarkCheckpoint writes and reads a thousand groups of 10 members and 100 offsets.
func BenchmarkCheckpoint(b *testing.B) {
	const groups = 1000
	s, bytes := foldMany(groups), 0
	for b.Loop() {
		again := New()
		bytes = 0
		for k, v := range s.Rows {
			bytes += len(k) + len(v)
			if err := again.Restore(k, v); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(bytes)/groups, "B/group")
}
