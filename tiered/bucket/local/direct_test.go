package local

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

func random(n int64) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(b)
	return b
}

// inParts cuts data into parts of odd sizes, some empty.
func inParts(data []byte) (body bucket.Body) {
	for n := 0; len(data) > 0; n = (n*7 + 13) % 70_001 {
		n = min(n, len(data))
		body = append(body, data[:n:n])
		data = data[n:]
	}
	return body
}

func TestLargeObjects(t *testing.T) {
	b := openIn(t, t.TempDir())
	for _, size := range []int64{
		directBytes - 1, directBytes, directBytes + 1, directBytes + blockBytes - 1, directBytes + blockBytes,
		3*directBuffer - 1, 3*directBuffer + 12_345,
	} {
		t.Run(strconv.FormatInt(size, 10), func(t *testing.T) {
			key, want := strconv.FormatInt(size, 10), random(size)
			if err := b.Put(t.Context(), key, inParts(want)); err != nil {
				t.Fatal(err)
			}
			if onDisk, err := os.ReadFile(filepath.Join(b.dir, key)); err != nil || !bytes.Equal(onDisk, want) {
				t.Fatalf("the file has %d other bytes (%v)", len(onDisk), err)
			}
			for _, r := range [][2]int64{{0, -1}, {1, -1}, {blockBytes - 1, -1}, {blockBytes, size}, {-(size - 3), 0}, {size - 5, -1}, {7, size - 9}, {0, size - 1}, {5, directRead - 1}, {5, directRead}, {size - directRead - 7, directRead + 1}} {
				from, to, err := bucket.Span(size, r[0], r[1])
				if err != nil {
					t.Fatal(err)
				}
				got, err := b.Get(t.Context(), key, r[0], r[1])
				if err != nil || !bytes.Equal(got, want[from:to]) {
					t.Errorf("Get %d, %d: %d bytes, not those from %d to %d (%v)", r[0], r[1], len(got), from, to, err)
				}
				_ = append(got, 'x') // the caller's own, and nobody's behind it
			}
		})
	}
}

// A file system may refuse what lies askew in memory; it is written all the same.
func TestAskew(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := random(5*blockBytes + 77)
	w := directWriter{f: f, direct: setDirect(f, true)}
	for _, b := range [][]byte{data[1 : 1+blockBytes], data[1+blockBytes : 100+2*blockBytes], data[100+2*blockBytes:]} {
		if err := w.write(b); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, data[1:]) {
		t.Errorf("the file has %d other bytes (%v)", len(got), err)
	}
}
