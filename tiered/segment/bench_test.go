package segment

import (
	"slices"
	"testing"
)

// A flush of 8 MiB: 512 batches of 16 KiB over 64 partitions.
func BenchmarkWriter(b *testing.B) {
	one := plain(0, 16, 1, 1_796_162_400_000, string(make([]byte, 16<<10)))
	b.ReportAllocs()
	b.SetBytes(8 << 20)
	for b.Loop() {
		w := NewWriter(sampleHeader)
		for p := range 64 {
			if err := w.Run(uint16(p/4), partition('a', int32(p)), 0); err != nil {
				b.Fatal(err)
			}
			for i := range 8 {
				order.PutUint64(one, uint64(i*16))
				if err := w.Batch(one); err != nil {
					b.Fatal(err)
				}
			}
		}
		if _, _, err := w.Finish(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	one := plain(0, 16, 1, 1_796_162_400_000, string(make([]byte, 16<<10)))
	w := NewWriter(sampleHeader)
	for p := range 512 {
		if err := w.Run(0, partition('a', int32(p)), 0); err != nil {
			b.Fatal(err)
		}
		if err := w.Batch(one); err != nil {
			b.Fatal(err)
		}
	}
	parts, _, err := w.Finish()
	if err != nil {
		b.Fatal(err)
	}
	object := slices.Concat(parts...)
	b.ReportAllocs()
	b.SetBytes(int64(len(object)))
	for b.Loop() {
		if _, err := Parse(object); err != nil {
			b.Fatal(err)
		}
	}
}
