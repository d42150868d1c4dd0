package agent

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone"
)

// TestFetchLimitsOverObjectAndMemory: a first batch that comes whole from an
// object, above its partition's limit, leaves that much less room for what
// comes from memory.
func TestFetchLimitsOverObjectAndMemory(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		id := a.create("t", 2)
		cold, warm := siltstone.TopicPartition{Topic: id}, siltstone.TopicPartition{Topic: id, Partition: 1}
		large, small := aBatch(t, 1, 1, strings.Repeat("x", 2000)), aBatch(t, 1, 1, "x")
		if _, err := a.produce(cold, -1, large); err != nil {
			t.Fatal(err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		b := r.start()
		if _, err := b.produce(warm, -1, small, small); err != nil {
			t.Fatal(err)
		}
		both := 2 * len(small)
		for _, tt := range []struct{ maxBytes, partMax, cold, warm int }{
			{1000, 1000, len(large), 0},
			{1000, 100, len(large), 0},
			{len(large), 100, len(large), 0},
			{len(large) + both - 1, 200, len(large), 0},
			{len(large) + both, 200, len(large), both},
			{len(large) + both, 4000, len(large), both},
			{10_000, 10_000, len(large), both},
		} {
			res, err := b.Fetch(context.Background(), &siltstone.FetchRequest{MaxBytes: tt.maxBytes, Parts: []siltstone.FetchPart{
				{Partition: cold, MaxBytes: tt.partMax, Epoch: -1, LastEpoch: -1},
				{Partition: warm, MaxBytes: tt.partMax, Epoch: -1, LastEpoch: -1},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got := []int{sizeOf(res.Parts[0].Records), sizeOf(res.Parts[1].Records)}; got[0] != tt.cold || got[1] != tt.warm {
				t.Errorf("limits %d and %d: %d bytes, want %d and %d", tt.maxBytes, tt.partMax, got, tt.cold, tt.warm)
			}
		}
	})
}

func sizeOf(pieces [][]byte) (n int) {
	for _, p := range pieces {
		n += len(p)
	}
	return n
}

// TestPiecesOfTheTail serves batches that lie side by side, behind another
// partition's, and at like places of two slabs.
func TestPiecesOfTheTail(t *testing.T) {
	s := slabs{limit: 1 << 30}
	p, other := &partition{}, &partition{}
	var want []byte
	for i, put := range []struct {
		p    *partition
		size int
	}{
		{p, slabBytes / 4}, {other, slabBytes / 4}, {other, slabBytes / 4}, {other, 100},
		{other, slabBytes / 4}, {p, 100}, {p, 200}, {other, 1}, {p, 300}, {p, slabBytes/4 + 1}, {p, 1},
	} {
		b := bytes.Repeat([]byte{byte(i)}, put.size)
		in, pos := s.put(put.p, b)
		if put.p == p {
			want = append(want, b...)
			p.tail.push(batchRef{slab: in, pos: pos, size: uint32(put.size), base: p.next, offsets: 1})
			p.next++
		}
	}
	p.flushed, p.hw = p.next, p.next
	for from := range p.next {
		records, size := p.fromTail(from, p.high(), 1<<30, true, everything())
		got := bytes.Join(records, nil)
		if len(got) != size || !bytes.HasSuffix(want, got) || from == 0 && size != len(want) {
			t.Errorf("from offset %d on: %d bytes in %d pieces, which are not those that were appended", from, size, len(records))
		}
	}
	if records, _ := p.fromTail(0, p.high(), 1<<30, true, everything()); len(records) >= p.tail.len() {
		t.Errorf("%d batches are %d pieces", p.tail.len(), len(records))
	}
}

// everything is of a plan with room for all.
func everything() *pins { return &pins{mark: 1, room: 1 << 40} }
