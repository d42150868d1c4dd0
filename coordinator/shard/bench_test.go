package shard

import (
	"testing"
	"unsafe"

	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// A partition may have millions of ranges.
func TestSpanIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(span{}); size != 32 {
		t.Errorf("a range takes %d bytes, 32 at most", size)
	}
}

// openMany opens n partitions of one topic.
func openMany(n int32) *State {
	s := New()
	o := &Open{Epoch: 1, Writer: alice, Topics: []OpenTopic{{Topic: logs, Number: 7}}}
	for i := range n {
		o.Topics[0].Partitions = append(o.Topics[0].Partitions, i)
	}
	for i, b := range []Body{leadAlice, o} {
		if c, err := s.Apply(ledger.Entry{Seq: coordinator.Seq(i), Kind: b.Kind(), Body: b.Encode()}); err != nil || c.Void != "" {
			panic(c.Void)
		}
	}
	return s
}

// BenchmarkApplySegment folds flushes of a thousand partitions.
func BenchmarkApplySegment(b *testing.B) {
	const partitions = 1000
	s := openMany(partitions)
	var extents []Extent
	for i := range int32(partitions) {
		extents = append(extents, ext(7, i, 100, 8000, 1_800_000_000_000))
	}
	b.ReportAllocs()
	bytes, n := 0, uint64(0)
	for b.Loop() {
		n++
		body := flush(n, extents...).Encode()
		bytes = len(body)
		if c, err := s.Apply(ledger.Entry{Kind: KindSegment, Body: body}); err != nil || c.Void != "" {
			b.Fatal(err, c.Void)
		}
	}
	b.ReportMetric(float64(bytes)/partitions, "B/part")
}

// BenchmarkCheckpoint writes and reads one partition of a million ranges.
func BenchmarkCheckpoint(b *testing.B) {
	s := openMany(1)
	for i := range uint64(1_000_000) {
		if c, err := s.Apply(ledger.Entry{Kind: KindSegment, Body: flush(i+1, ext(7, 0, 100, 8000, int64(i))).Encode()}); err != nil || c.Void != "" {
			b.Fatal(err, c.Void)
		}
	}
	bytes := 0
	for b.Loop() {
		again := New()
		for k, v := range s.Rows {
			bytes = max(bytes, len(v))
			if err := again.Restore(k, v); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(bytes)/1e6, "B/range")
}
