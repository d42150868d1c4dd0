package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/siltstone-io/siltstone"
)

func TestReader(t *testing.T) {
	b := binary.AppendUvarint(nil, 300)
	b = binary.AppendVarint(b, math.MinInt64)
	b = AppendString(b, "silt")
	b = AppendBool(AppendBool(b, true), false)
	b = binary.BigEndian.AppendUint64(b, 1<<63)
	r := NewReader(b)
	if v := r.Uvarint(300); v != 300 {
		t.Error(v)
	}
	if v := r.Varint(); v != math.MinInt64 {
		t.Error(v)
	}
	if v := r.String(); v != "silt" {
		t.Error(v)
	}
	if !r.Bool() || r.Bool() {
		t.Error("bools")
	}
	if v := r.Uint64(); v != 1<<63 {
		t.Error(v)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestReaderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		body []byte
		read func(r *Reader)
	}{
		"left over":        {[]byte{1, 2}, func(r *Reader) { r.Byte() }},
		"too short":        {[]byte{1}, func(r *Reader) { r.Uint64() }},
		"no byte":          {nil, func(r *Reader) { r.Byte() }},
		"over the limit":   {[]byte{9}, func(r *Reader) { r.Uvarint(8) }},
		"endless varint":   {[]byte{0x80, 0x80}, func(r *Reader) { r.Varint() }},
		"no bool":          {[]byte{2}, func(r *Reader) { r.Bool() }},
		"long list":        {[]byte{3, 1, 1, 1, 1, 1}, func(r *Reader) { r.Count(2) }},
		"negative length":  {[]byte{1}, func(r *Reader) { r.Bytes(-1) }},
		"long string":      {[]byte{5, 'a'}, func(r *Reader) { _ = r.String() }},
		"what makes sense": {[]byte{1}, func(r *Reader) { r.Byte(); r.Fail("no") }},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(c.body)
			c.read(r)
			if err := r.Close(); !errors.Is(err, siltstone.ErrCorrupt) {
				t.Fatal(err)
			}
			first := r.Err()
			if r.Byte() != 0 || r.Uvarint(9) != 0 || r.String() != "" || r.Count(1) != 0 || !errors.Is(r.Close(), first) {
				t.Error("it reads on after an error")
			}
		})
	}
}
