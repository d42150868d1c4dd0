package segment

import (
	"bytes"
	"errors"
	"hash/crc32"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/siltstone-io/siltstone"
)

func golden(f *testing.F) []byte {
	b, err := os.ReadFile("testdata/v1.golden")
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// FuzzParse mends the CRCs of what it is given, so that it gets past them.
func FuzzParse(f *testing.F) {
	f.Add(golden(f), true)
	f.Add(golden(f), false)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend {
			b = mended(b)
		}
		err := Verify(b)
		if err != nil && !errors.Is(err, siltstone.ErrCorrupt) && !errors.Is(err, siltstone.ErrNewerFormat) {
			t.Errorf("Verify: %v is of no class", err)
		}
	})
}

// mended is b with right CRCs wherever there is room for its parts.
func mended(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < minHeaderBytes+TrailerBytes {
		return b
	}
	if n := int(order.Uint16(b[atHeaderBytes:])); n >= minHeaderBytes && n <= len(b) {
		seal(b[:n])
	}
	trailer := b[len(b)-TrailerBytes:]
	seal(trailer)
	t, err := ParseTrailer(b)
	if err != nil {
		return b
	}
	if index, ok := t.CutIndex(b); ok {
		order.PutUint32(trailer[atIndexCRC:], crc32.Checksum(index, castagnoli))
		seal(trailer)
	}
	return b
}

func FuzzHeader(f *testing.F) {
	f.Add(golden(f)[:66])
	f.Fuzz(func(t *testing.T, b []byte) {
		if b = bytes.Clone(b); len(b) >= minHeaderBytes {
			if n := int(order.Uint16(b[atHeaderBytes:])); n >= crcBytes && n <= len(b) {
				seal(b[:n])
			}
		}
		h, err := ParseHeader(b)
		if err == nil && !bytes.HasPrefix(b, h.encode()) {
			t.Errorf("%+v does not encode to what it was parsed from", h)
		}
	})
}

func FuzzTrailer(f *testing.F) {
	b := golden(f)
	f.Add(b[len(b)-TrailerBytes:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < TrailerBytes {
			return
		}
		b = bytes.Clone(b)
		seal(b[len(b)-TrailerBytes:])
		got, err := ParseTrailer(b)
		if err == nil && !bytes.HasSuffix(b, got.encode()) {
			t.Errorf("%+v does not encode to what it was parsed from", got)
		}
	})
}

func FuzzIndex(f *testing.F) {
	b := golden(f)
	t, err := ParseTrailer(b)
	if err != nil {
		f.Fatal(err)
	}
	index, _ := t.CutIndex(b)
	f.Add(index)
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{b: b}
		runs := d.runs(minHeaderBytes)
		if d.err != nil {
			return
		}
		again := decoder{b: encodeIndex(runs)}
		if diff := cmp.Diff(runs, again.runs(minHeaderBytes), cmpopts.EquateEmpty()); diff != "" || again.err != nil || len(again.b) > 0 {
			t.Errorf("parsed, encoded, parsed: %v, %s", again.err, diff)
		}
	})
}

// FuzzKey: a key that is taken is the one that its id makes.
func FuzzKey(f *testing.F) {
	f.Add(ObjectID{}.Key())
	f.Add(ObjectID{Hour: maxHour, Incarnation: 1, Number: 1<<64 - 1}.Key())
	f.Add("0/2026120122/deadbeef00000001/+000000042")
	f.Add("checkpoint/shard-00/00000000000000000001-ab")
	f.Fuzz(func(t *testing.T, key string) {
		if id, err := ParseKey(key); err == nil && id.Key() != key {
			t.Fatalf("%q is taken for %q", key, id.Key())
		}
	})
}
