package tiered

import "testing"

// A fetch of 1 MiB of 16 KiB batches out of a cached object.
func BenchmarkRead(b *testing.B) {
	s := newStore(b)
	it := newRun(b, partition(0), 0, 500, 16<<10)
	rng := s.put(it)[0]
	r := s.reader(Options{}, defaultSizes)
	b.ReportAllocs()
	b.SetBytes(1 << 20)
	q := request(it, rng, 0, 1<<20)
	for b.Loop() {
		found, err := r.Read(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		if q.From = found.Next; q.From == rng.End() {
			q.From = 0
		}
	}
}

// The same of an object that is not cached: one GET, checksums and all.
func BenchmarkLoad(b *testing.B) {
	s := newStore(b)
	it := newRun(b, partition(0), 0, 500, 16<<10)
	rng := s.put(it)[0]
	b.ReportAllocs()
	b.SetBytes(rng.LengthBytes)
	for b.Loop() {
		r := s.reader(Options{}, defaultSizes)
		if _, err := r.Read(b.Context(), request(it, rng, 0, 1)); err != nil {
			b.Fatal(err)
		}
		r.Close()
	}
}
