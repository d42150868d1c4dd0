package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/siltstone-io/siltstone/tiered/segment"
)

// damaged is one way to hurt a data folder, before a start.
type damaged struct {
	name string
	hurt func(t *testing.T, f *stored)
	// names are what check must say; lost is what it says cannot be read.
	names []string
	lost  []offsets
	// refused is what dev says that does not start; empty: it starts, and
	// serves all that is not lost.
	refused string
}

// TestDamage hurts each kind of file of a data folder in each of its regions.
// It is named by check, said by dev in one line or borne, and nobody ever
// reads anything but what was written.
func TestDamage(t *testing.T) {
	folderless(t)
	whole := newStored(t)
	mine := whole.segments(t)[1] // of offsets 4 to 7 of each partition
	key := strings.TrimPrefix(mine, filepath.Join(whole.dir, "objects")+"/")
	all := []offsets{{"t", 0, 4, 7}, {"t", 1, 4, 7}, {"t", 2, 4, 7}}
	second := []offsets{{"t", 1, 6, 7}} // the second batch of partition 1
	object := func(how func(b []byte, o *segment.Object)) func(*testing.T, *stored) {
		return func(t *testing.T, f *stored) {
			change(t, filepath.Join(f.dir, "objects", key), func(b []byte) []byte {
				o, err := segment.Parse(b)
				if err != nil {
					t.Fatal(err)
				}
				how(b, o)
				return b
			})
		}
	}
	flipAt := func(where func(o *segment.Object) int64) func(*testing.T, *stored) {
		return object(func(b []byte, o *segment.Object) { b[where(o)] ^= 0x20 })
	}
	batch := func(o *segment.Object) int64 { return o.Index.Runs[1].Rows[1].Position }
	partition := func(o *segment.Object) []offsets { // whose batch that is
		p := o.Index.Runs[1].Partition.Partition
		return []offsets{{"t", p, second[0].First, second[0].Last}}
	}
	b, err := os.ReadFile(mine)
	if err != nil {
		t.Fatal(err)
	}
	o, err := segment.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	second = partition(o)
	for _, tt := range []damaged{
		{"object gone", remove("objects/" + key), []string{key, "missing"}, all, ""},
		{"object empty", truncate("objects/"+key, 0), []string{key, "no segment"}, all, ""},
		{"object cut", truncate("objects/"+key, len(b)/2), []string{key, "trailer"}, all, ""},
		{"object's header", flipAt(func(*segment.Object) int64 { return 20 }), []string{key, "header"}, nil, ""},
		{"batch's offset, which is stamped", flipAt(func(o *segment.Object) int64 { return batch(o) + 6 }), []string{key, "run"}, nil, ""},
		{"batch's length", flipAt(func(o *segment.Object) int64 { return batch(o) + 11 }), []string{key, "run"}, second, ""},
		{"batch's leader epoch", flipAt(func(o *segment.Object) int64 { return batch(o) + 15 }), []string{key, "run"}, second, ""},
		{"batch's CRC", flipAt(func(o *segment.Object) int64 { return batch(o) + 18 }), []string{key, "run"}, second, ""},
		{"batch's records", flipAt(func(o *segment.Object) int64 { return batch(o) + 200 }), []string{key, "run", "offsets 6 to 7"}, second, ""},
		{"object's index", flipAt(func(o *segment.Object) int64 { return o.Trailer.IndexPosition + 5 }), []string{key, "index"}, all, ""},
		{"object's trailer", object(func(b []byte, _ *segment.Object) { b[len(b)-30] ^= 1 }), []string{key, "trailer"}, all, ""},
		{"folder of objects gone", remove("objects"), []string{"objects is missing"}, nil, "objects is missing"},
		{"cluster id of the bucket", flipIn("objects/cluster", func(b []byte) int { return len(b) - 8 }), []string{"cluster id"}, nil, "belongs to something else"},
		{"cluster id of the bucket gone", remove("objects/cluster"), []string{"the bucket of none"}, nil, "the bucket of none"},
		{"database gone", remove("cluster.db"), []string{"cluster.db is missing"}, nil, "cluster.db is missing"},
		{"database cut", truncate("cluster.db", 20_000), []string{"cluster.db"}, nil, "cluster.db"},
		{"newer root", flipIn("cluster.db", newerRoot), []string{"cluster.db", "root page", "last commit"}, nil, "last commit"},
		{"older root", flipIn("cluster.db", func(b []byte) int { return 4096 - newerRoot(b)/4096*4096 + 40 }), []string{"cluster.db", "root page"}, nil, "root page"},
		{"stamp gone", remove("FORMAT"), []string{"FORMAT is missing"}, nil, "FORMAT is missing"},
		{"stamp", flipIn("FORMAT", func([]byte) int { return 3 }), []string{"FORMAT is missing or damaged"}, nil, "FORMAT is missing or damaged"},
		{"stamp of a newer release", func(t *testing.T, f *stored) {
			change(t, filepath.Join(f.dir, "FORMAT"), func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("1"), []byte("2")) })
		}, []string{"start the newer one"}, nil, "start the newer one"},
		{"checkpoints' headers", everyCheckpoint(func([]byte) int { return 12 }), []string{"checkpoint", "header"}, nil, ""},
		{"checkpoints' rows", everyCheckpoint(func(b []byte) int { return len(b) * 2 / 5 }), []string{"checkpoint"}, nil, ""},
		{"checkpoints' trailers", everyCheckpoint(func(b []byte) int { return len(b) - 3 }), []string{"checkpoint", "trailer"}, nil, ""},
		{"checkpoints gone", func(t *testing.T, f *stored) {
			for _, path := range f.find(t, "objects/checkpoint/*/*") {
				remove(strings.TrimPrefix(path, f.dir))(t, f)
			}
		}, []string{"checkpoint", "no such object"}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := whole.copy(t)
			tt.hurt(t, f)
			lost := f.checkFinds(t, tt.names...)
			if !sameOffsets(lost, tt.lost) {
				t.Errorf("check says that %v cannot be read, want %v", lost, tt.lost)
			}
			if tt.refused != "" {
				_, stderr, code := run(t, "", devArgs(f.dir)...)
				oneClearLine(t, "dev", stderr, code, tt.refused)
				return
			}
			s := start(t, f.dir)
			f.readsAround(t, s, tt.lost...)
			for _, o := range tt.lost {
				for _, how := range [][]string{{"-p", fmt.Sprint(o.Partition)}, {"--group", "g"}} {
					_, stderr, code := run(t, "", append([]string{"consume", o.Topic, "--exit", "--kafka", s.kafka}, how...)...)
					oneClearLine(t, "consume", stderr, code, "is damaged")
				}
			}
			s.cli(t, "more\n", "produce", "t", "-p", "0")
			s.stop(t)
		})
	}
}

func sameOffsets(a, b []offsets) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func remove(name string) func(*testing.T, *stored) {
	return func(t *testing.T, f *stored) {
		if err := os.RemoveAll(filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func truncate(name string, size int) func(*testing.T, *stored) {
	return func(t *testing.T, f *stored) {
		change(t, filepath.Join(f.dir, name), func(b []byte) []byte { return b[:size] })
	}
}

// flipIn flips a bit of a file.
func flipIn(name string, at func([]byte) int) func(*testing.T, *stored) {
	return func(t *testing.T, f *stored) {
		change(t, filepath.Join(f.dir, name), func(b []byte) []byte {
			b[at(b)] ^= 1
			return b
		})
	}
}

func everyCheckpoint(at func([]byte) int) func(*testing.T, *stored) {
	return func(t *testing.T, f *stored) {
		for _, path := range f.find(t, "objects/checkpoint/*/*") {
			flipIn(strings.TrimPrefix(path, f.dir), at)(t, f)
		}
	}
}

// newerRoot is a byte of the root of the database that was written last.
func newerRoot(b []byte) int {
	const page, transaction = 4096, 16 + 48 // its number lies there
	if bytes.Compare(reversed(b[transaction:][:8]), reversed(b[page+transaction:][:8])) > 0 {
		return 40
	}
	return page + 40
}

// reversed is a number in the order of bytes in which it compares.
func reversed(b []byte) []byte {
	var r []byte
	for i := range b {
		r = append(r, b[len(b)-1-i])
	}
	return r
}

// TestLostWhileRunning: what goes from under a running server is said, nothing
// is acknowledged that is not there, and what comes back is served again.
func TestLostWhileRunning(t *testing.T) {
	folderless(t)
	whole := newStored(t)
	t.Run("an object", func(t *testing.T) {
		f := whole.copy(t)
		key := strings.TrimPrefix(f.segments(t)[1], f.dir)
		s := start(t, f.dir)
		away := filepath.Join(t.TempDir(), "away")
		rename(t, filepath.Join(f.dir, key), away)
		lost := []offsets{{"t", 0, 4, 7}, {"t", 1, 4, 7}, {"t", 2, 4, 7}}
		for range 3 {
			f.readsAround(t, s, lost...)
		}
		s.cli(t, "more\n", "produce", "t", "-p", "0")
		s.complaints(t, filepath.Base(key))
		rename(t, away, filepath.Join(f.dir, key))
		f.readsAround(t, s)
		s.stop(t)
		check(t, f.dir)
	})
	for _, name := range []string{"cluster.db", "objects", "objects/~tmp"} {
		t.Run(name, func(t *testing.T) {
			f, h := whole.copy(t), newHistory()
			s := start(t, f.dir)
			away := filepath.Join(filepath.Dir(f.dir), "away")
			rename(t, filepath.Join(f.dir, name), away)
			if err := s.tryProduce(t, h, &kgo.Record{Topic: "t", Value: []byte("lost?")}); err == nil {
				t.Error("a record is acknowledged, and is nowhere")
			}
			s.notReady(t, "gone")
			s.complaints(t, "gone")
			rename(t, away, filepath.Join(f.dir, name))
			s.readyAgain(t)
			if err := s.tryProduce(t, h, &kgo.Record{Topic: "t", Value: []byte("kept")}); err != nil {
				t.Errorf("it is back: %v", err)
			}
			f.readsAround(t, s)
			s.stop(t)
			check(t, f.dir)
		})
	}
	t.Run("cluster.db is cut", func(t *testing.T) {
		f, h := whole.copy(t), newHistory()
		s := start(t, f.dir)
		if err := os.Truncate(filepath.Join(f.dir, "cluster.db"), 8192); err != nil {
			t.Fatal(err)
		}
		if err := s.tryProduce(t, h, &kgo.Record{Topic: "t", Value: []byte("lost?")}); err == nil {
			t.Error("a record is acknowledged")
		}
		s.notReady(t, "was cut")
		s.kill()
		f.checkFinds(t, "cluster.db")
	})
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := errors.Join(os.Rename(from, to)); err != nil {
		t.Fatal(err)
	}
}

// TestOlderRoot: docs/troubleshooting.md says how to go on from the older of
// two roots, without the last commit.
func TestOlderRoot(t *testing.T) {
	folderless(t)
	f := newStored(t)
	flipIn("cluster.db", newerRoot)(t, f)
	f.checkFinds(t, "root page")
	change(t, filepath.Join(f.dir, "cluster.db"), func(b []byte) []byte {
		const page = 4096
		bad := newerRoot(b) / page * page
		copy(b[bad:bad+page], b[page-bad:2*page-bad])
		return b
	})
	check(t, f.dir)
	s := start(t, f.dir)
	f.readsAround(t, s)
	s.stop(t)
	check(t, f.dir)
}
