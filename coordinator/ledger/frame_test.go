package ledger_test

import (
	"bytes"
	"errors"
	"flag"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"encoding/binary"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file that every release must go on making and reading.
func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: made %x, the file has %x", path, got, want)
	}
	return want
}

var goldenFrame = ledger.Frame{
	Kind:   7,
	TimeMS: 1_790_000_000_123,
	Prev:   ledger.Hash{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	Body:   []byte("what the fold makes of it"),
}

func TestFrameGolden(t *testing.T) {
	stored := golden(t, "frame.v1.golden", goldenFrame.Encode())
	got, err := ledger.DecodeFrame(stored)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(goldenFrame, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := ledger.HashFrame(stored).String(), "39ed3bb7e29dc58e55dc4cb97a6c662a"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

func TestFrameSize(t *testing.T) {
	f := ledger.Frame{Body: make([]byte, ledger.MaxBodyBytes)}
	if n := len(f.Encode()); n != coordinator.MaxEntryBytes {
		t.Errorf("the longest frame has %d bytes, want %d", n, coordinator.MaxEntryBytes)
	}
}

func TestFrameDamage(t *testing.T) {
	data := goldenFrame.Encode()
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x10
		if _, err := ledger.DecodeFrame(damaged); !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := ledger.DecodeFrame(data[:i]); !errors.Is(err, siltstone.ErrCorrupt) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

func TestFrameVersions(t *testing.T) {
	for version, want := range map[byte]error{0: siltstone.ErrCorrupt, 2: siltstone.ErrNewerFormat, 255: siltstone.ErrNewerFormat} {
		data := goldenFrame.Encode()
		data[0] = version
		end := len(data) - 4
		binary.BigEndian.PutUint32(data[end:], crc32.Checksum(data[:end], crc32.MakeTable(crc32.Castagnoli)))
		if _, err := ledger.DecodeFrame(data); !errors.Is(err, want) {
			t.Errorf("version %d: %v, want %v", version, err, want)
		}
	}
}

func FuzzDecodeFrame(f *testing.F) {
	f.Add(goldenFrame.Encode())
	f.Add(ledger.Frame{}.Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ledger.DecodeFrame(data)
		if err != nil {
			if !errors.Is(err, siltstone.ErrCorrupt) && !errors.Is(err, siltstone.ErrNewerFormat) {
				t.Fatalf("unclassed error: %v", err)
			}
			return
		}
		if !bytes.Equal(got.Encode(), data) {
			t.Fatalf("%x decodes to what encodes to %x", data, got.Encode())
		}
	})
}
