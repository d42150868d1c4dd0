package tiered

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/faulty"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// ways are the ways in which an object can be read.
var ways = []struct {
	name       string
	sizes      sizes
	generation uint32
}{
	{"whole", defaultSizes, 0},
	{"whole, though merged", defaultSizes, 1},
	{"whole, in two requests", sizes{whole: 1 << 20, footer: 100, chunk: 1000}, 1},
	{"in chunks", sizes{whole: 500, footer: 4000, chunk: 700}, 1},
	{"in chunks, index apart", sizes{whole: 500, footer: 100, chunk: 700}, 1},
	{"in chunks, found to be large", sizes{whole: 1500, footer: 4000, chunk: 1000}, 0},
	{"in chunks of one batch", sizes{whole: 500, footer: 100, chunk: 1}, 0},
}

func TestReadEveryOffset(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStore(t)
			before, it, after := newRun(t, partition(0), 0, 3, 100), newRun(t, partition(1), 1000, 17, 200), newRun(t, partition(2), 5, 40, 50)
			rng := s.put(before, it, after)[1]
			rng.Generation = way.generation
			r := s.reader(Options{}, way.sizes)
			for from := it.base - 1; from <= it.end; from++ {
				var want [][]byte
				for _, b := range it.batches {
					if h, _ := batch.ParseHeader(b); h.BaseOffset+siltstone.Offset(h.LastOffsetDelta) >= from {
						want = append(want, b)
					}
				}
				for _, maxBytes := range []int{-1, 0, 1, 300, 1000, 1 << 30} {
					if got := readAll(t, r, request(it, rng, from, maxBytes)); !equalBatches(got, want) {
						t.Fatalf("from %d, %d bytes at a time: %d batches, want %d", from, maxBytes, len(got), len(want))
					}
				}
			}
		})
	}
}

func TestReadLimits(t *testing.T) {
	s := newStore(t)
	it := newRun(t, partition(0), 0, 6, 500)
	rng := s.put(it)[0]
	r := s.reader(Options{}, defaultSizes)
	two := len(it.batches[0]) + len(it.batches[1])
	for maxBytes, want := range map[int]int{-5: 1, 0: 1, 1: 1, two - 1: 1, two: 2, two + 1: 2, 1 << 40: 6} {
		found, err := r.Read(t.Context(), request(it, rng, 0, maxBytes))
		if err != nil || !equalBatches(found.Batches, it.batches[:want]) || found.SizeBytes != len(bytes.Join(found.Batches, nil)) {
			t.Errorf("%d bytes: %d batches of %d bytes, %v; want %d", maxBytes, len(found.Batches), found.SizeBytes, err, want)
		}
	}
}

func TestReadAcrossHoles(t *testing.T) {
	s := newStore(t)
	tp := partition(4)
	first, second := newBatch(t, 10, 2, 0, 10), newBatch(t, 100, 1, 0, 10)
	it := run{tp: tp, base: 0, batches: [][]byte{first, second}, end: 500}
	empty := run{tp: partition(5), base: 7, end: 9}
	ranges := s.put(it, empty)
	r := s.reader(Options{}, defaultSizes)
	for from, want := range map[siltstone.Offset][][]byte{
		0: it.batches, 11: it.batches, 12: {second}, 99: {second}, 100: {second}, 101: nil, 499: nil, 500: nil,
	} {
		if got := readAll(t, r, request(it, ranges[0], from, 1<<20)); !equalBatches(got, want) {
			t.Errorf("from %d: %d batches, want %d", from, len(got), len(want))
		}
	}
	if found, err := r.Read(t.Context(), request(it, ranges[0], 0, 1)); err != nil || found.Next != 100 {
		t.Errorf("after the first batch Next is %d, %v; want that of the second", found.Next, err)
	}
	if found, err := r.Read(t.Context(), request(empty, ranges[1], 7, 1)); err != nil || len(found.Batches) != 0 || found.Next != 9 {
		t.Errorf("a run without batches: %+v, %v", found, err)
	}
}

// The fold decides: what a writer stamped otherwise is stamped anew, in a copy.
func TestStamps(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStore(t)
			it := newRun(t, partition(0), 0, 12, 100)
			rng := s.put(it)[0]
			rng.Generation = way.generation
			r := s.reader(Options{}, way.sizes)
			cached := readAll(t, r, request(it, rng, 0, 1<<20))
			elsewhere := rng
			elsewhere.Base = 1 << 20
			next := elsewhere.Base
			for i, b := range readAll(t, r, request(it, elsewhere, elsewhere.Base, 200)) {
				h, err := batch.Validate(b, batch.Rules{Walk: true, MaxDecompressedBytes: 1 << 20})
				if err != nil || h.BaseOffset != next || h.Epoch != 3 {
					t.Errorf("batch %d: offset %d, epoch %d, %v; want offset %d", i, h.BaseOffset, h.Epoch, err, next)
				}
				next += siltstone.Offset(h.Records)
			}
			if !equalBatches(cached, it.batches) {
				t.Error("stamping changed what others read")
			}
		})
	}
	t.Run("without need", func(t *testing.T) {
		s := newStore(t)
		it := newRun(t, partition(0), 0, 2, 100)
		rng := s.put(it)[0]
		r := s.reader(Options{}, defaultSizes)
		a, b := readAll(t, r, request(it, rng, 0, 1<<20)), readAll(t, r, request(it, rng, 0, 1<<20))
		if &a[1][0] != &b[1][0] {
			t.Error("batches are copied that were stamped right")
		}
		if cap(a[0]) != len(a[0]) {
			t.Error("who appends to a batch overwrites the next")
		}
	})
}

func TestFirstAtOrAfter(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStore(t)
			tp := partition(0)
			it := run{tp: tp, base: 0, end: 8, batches: [][]byte{
				newBatch(t, 0, 2, 100, 400), newBatch(t, 2, 2, 500, 400), newBatch(t, 4, 2, 300, 400), newBatch(t, 6, 2, 600, 400),
			}}
			rng := s.put(it)[0]
			rng.Generation = way.generation
			r := s.reader(Options{}, way.sizes)
			for _, c := range []struct {
				from siltstone.Offset
				ts   int64
				want int // index, or -1
			}{
				{0, -1, 0}, {0, 101, 0}, {0, 102, 1}, {0, 501, 1}, {0, 502, 3}, {0, 601, 3}, {0, 602, -1},
				{3, 0, 1}, {4, 102, 2}, {4, 302, 3}, {8, 0, -1},
			} {
				b, err := r.FirstAtOrAfter(t.Context(), request(it, rng, c.from, 0), c.ts)
				if err != nil || (c.want < 0) != (b == nil) || b != nil && !bytes.Equal(b, it.batches[c.want]) {
					t.Errorf("from %d, time %d: %d bytes, %v; want batch %d", c.from, c.ts, len(b), err, c.want)
				}
			}
		})
	}
}

func TestIndex(t *testing.T) {
	s := newStore(t)
	it := newRun(t, partition(0), 0, 30, 200)
	rng := s.put(it)[0]
	r := s.reader(Options{}, sizes{whole: 1 << 20, footer: 100, chunk: 100})
	for range 2 {
		x, err := r.Index(t.Context(), rng.Object)
		if err != nil {
			t.Fatal(err)
		}
		if run, ok := x.Find(it.tp); !ok || len(run.Rows) != 30 {
			t.Errorf("the index has not the run's rows")
		}
		s.wantGets(2, "trailer and index")
	}
	readAll(t, r, request(it, rng, 0, 1<<20))
	s.wantGets(3, "and the object")

	r = s.reader(Options{}, defaultSizes)
	readAll(t, r, request(it, rng, 0, 1<<20))
	if _, err := r.Index(t.Context(), rng.Object); err != nil {
		t.Fatal(err)
	}
	s.wantGets(4, "the index of a cached object")
}

func TestWhatIsWrong(t *testing.T) {
	s := newStore(t)
	it, other := newRun(t, partition(0), 0, 3, 100), newRun(t, partition(1), 0, 3, 100)
	rng := s.put(it)[0]
	r := s.reader(Options{}, defaultSizes)

	missing := rng
	missing.Object.Number = 999
	if _, err := r.Read(t.Context(), request(it, missing, 0, 1)); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("a missing object: %v, want ErrNotFound", err)
	}
	if _, err := r.Index(t.Context(), missing.Object); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("index of a missing object: %v, want ErrNotFound", err)
	}
	if _, err := r.Read(t.Context(), request(other, rng, 0, 1)); !errors.Is(err, siltstone.ErrCorrupt) {
		t.Errorf("no run of the partition: %v, want ErrCorrupt", err)
	}
	more := rng
	more.Offsets++
	if _, err := r.Read(t.Context(), request(it, more, 0, 1)); !errors.Is(err, siltstone.ErrCorrupt) {
		t.Errorf("a range of other offsets: %v, want ErrCorrupt", err)
	}
	moved := segment.ObjectID{Hour: 1, Incarnation: 2, Number: 3}
	b, err := s.memory.Get(t.Context(), rng.Object.Key(), 0, -1)
	s.must(err)
	s.must(s.memory.Put(t.Context(), moved.Key(), bucket.Body{b}))
	if _, err := r.Read(t.Context(), request(it, shard.Range{Object: moved, Offsets: rng.Offsets}, 0, 1)); !errors.Is(err, siltstone.ErrCorrupt) {
		t.Errorf("an object under another's key: %v, want ErrCorrupt", err)
	}
	s.damage(rng.Object, func(b []byte) []byte { b[len(b)-14]++; return b })
	if _, err := s.reader(Options{}, defaultSizes).Read(t.Context(), request(it, rng, 0, 1)); !errors.Is(err, siltstone.ErrCorrupt) {
		t.Errorf("damage: %v, want ErrCorrupt", err)
	}
}

// What the bucket sends wrongly is never returned, however it is asked for,
// and asked for once more.
func TestDamagedReplies(t *testing.T) {
	for _, way := range ways {
		for name, change := range map[string]func([]byte) []byte{
			"flipped first": func(b []byte) []byte { b[0] ^= 1; return b },
			"flipped last":  func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b },
			"flipped":       func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
			"cut":           func(b []byte) []byte { return b[:len(b)/2] },
			"cut by one":    func(b []byte) []byte { return b[:len(b)-1] },
			"cut in front":  func(b []byte) []byte { return b[1:] },
			"empty":         func([]byte) []byte { return nil },
		} {
			t.Run(way.name+"/"+name, func(t *testing.T) {
				s := newStore(t)
				it := newRun(t, partition(0), 0, 12, 150)
				rng := s.put(it)[0]
				rng.Generation = way.generation
				readAll(t, s.reader(Options{}, way.sizes), request(it, rng, 0, 1))
				for bad := range s.gets.Load() { // each of the requests in turn, once
					s.gets.Store(0)
					s.fate = func(string) faulty.Fate {
						if s.gets.Load() == bad+1 {
							return faulty.Fate{Reply: change}
						}
						return faulty.Fate{}
					}
					r := s.reader(Options{}, way.sizes)
					if got := readAll(t, r, request(it, rng, 0, 1)); !equalBatches(got, it.batches) {
						t.Fatalf("GET %d was damaged, and so is what was read", bad+1)
					}
					r.Close()
				}
				s.fate = func(string) faulty.Fate { return faulty.Fate{Reply: change} }
				found, err := s.reader(Options{}, way.sizes).Read(t.Context(), request(it, rng, 0, 1))
				// Some damage is of bytes that are not used, or of later batches.
				harmless := err == nil && len(found.Batches) == 1 && bytes.Equal(found.Batches[0], it.batches[0])
				if !errors.Is(err, siltstone.ErrCorrupt) && !harmless {
					t.Errorf("every reply is damaged: %d batches, %v; want ErrCorrupt", len(found.Batches), err)
				}
			})
		}
	}
}

// Damage of a batch takes that batch away, and nothing beside it: not the
// other batches of its partition, nor other partitions of the object.
func TestDamagedBatch(t *testing.T) {
	const damaged = 5
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := newStore(t)
			it, other := newRun(t, partition(0), 100, 12, 150), newRun(t, partition(1), 0, 12, 150)
			ranges := s.put(it, other)
			for i := range ranges {
				ranges[i].Generation = way.generation
			}
			s.damage(ranges[0].Object, func(b []byte) []byte {
				at := bytes.Index(b, it.batches[damaged])
				b[at+len(it.batches[damaged])-1] ^= 0x10
				return b
			})
			r := s.reader(Options{}, way.sizes)
			if got := readAll(t, r, request(other, ranges[1], 0, 1)); !equalBatches(got, other.batches) {
				t.Errorf("the other partition has %d batches, want %d", len(got), len(other.batches))
			}
			lost := bounds(t, it.batches[damaged])
			for from := it.base; from < it.end; from++ {
				found, err := r.Read(t.Context(), request(it, ranges[0], from, 1))
				if isLost := from >= lost.first && from <= lost.last; isLost {
					names := fmt.Sprintf("offsets %d to %d of %s", lost.first, lost.last, it.tp)
					if !errors.Is(err, siltstone.ErrCorrupt) || !strings.Contains(err.Error(), names) {
						t.Errorf("offset %d: %v, want ErrCorrupt that names %s", from, err, names)
					}
				} else if err != nil || len(found.Batches) != 1 || !holds(t, found.Batches[0], from) {
					t.Errorf("offset %d: %d batches, %v", from, len(found.Batches), err)
				}
			}
			s.damage(ranges[0].Object, func(b []byte) []byte {
				at := bytes.Index(b, it.batches[damaged][:50])
				copy(b[at:], it.batches[damaged])
				return b
			})
			if got := readAll(t, r, request(it, ranges[0], it.base, 1)); !equalBatches(got, it.batches) {
				t.Error("the object is mended, and not read anew")
			}
		})
	}
}

// span is the offsets of a batch.
type span struct{ first, last siltstone.Offset }

func bounds(t *testing.T, b []byte) span {
	h, err := batch.ParseHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	return span{h.BaseOffset, h.BaseOffset + siltstone.Offset(h.LastOffsetDelta)}
}

func holds(t *testing.T, b []byte, at siltstone.Offset) bool {
	of := bounds(t, b)
	return of.first <= at && at <= of.last
}
