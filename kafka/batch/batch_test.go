package batch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// few is a small batch of records at offsets 0 to 2, times 1000, 3000, 2000.
func few(tb tb, codec batch.Codec) []byte {
	b := batch.NewBuilder(codec, 0)
	b.Append(batch.Record{Timestamp: 1000, Key: []byte("a"), Value: []byte("one")})
	b.Append(batch.Record{Timestamp: 3000, Value: []byte("two")})
	b.Append(batch.Record{Timestamp: 2000, Key: []byte{}, Headers: []batch.RecordHeader{{Key: []byte("h")}}})
	return must(tb)(b.Build())
}

func TestParseHeader(t *testing.T) {
	b := batch.NewBuilder(batch.LZ4, 0)
	b.Header = batch.Header{
		BaseOffset: 1 << 40, Epoch: 7, Attributes: batch.TransactionalBit,
		ProducerID: 1 << 50, ProducerEpoch: 300, BaseSequence: 70_000, MaxTimestamp: -1,
	}
	b.Append(batch.Record{Timestamp: 1 << 41})
	b.Append(batch.Record{Timestamp: 1<<41 + 5})
	whole := must(t)(b.Build())
	h, err := batch.ParseHeader(whole[:batch.HeaderBytes])
	if err != nil {
		t.Fatal(err)
	}
	want := b.Header
	want.LengthBytes, want.Magic, want.CRC = int32(len(whole)-12), 2, h.CRC
	want.Attributes, want.LastOffsetDelta = batch.TransactionalBit|3, 1
	want.BaseTimestamp, want.MaxTimestamp, want.Records = 1<<41, 1<<41+5, 2
	if h != want {
		t.Errorf("got  %+v\nwant %+v", h, want)
	}
	if h.SizeBytes() != len(whole) {
		t.Errorf("%d bytes of %d", h.SizeBytes(), len(whole))
	}
}

func TestAttributes(t *testing.T) {
	for _, c := range []struct {
		a                                           batch.Attributes
		codec                                       batch.Codec
		appendTime, transactional, control, horizon bool
	}{
		{a: 0},
		{a: 4, codec: batch.Zstd},
		{a: 0x08 | 3, codec: batch.LZ4, appendTime: true},
		{a: 0x10, transactional: true},
		{a: 0x20, control: true},
		{a: 0x40, horizon: true},
		{a: 0x79, codec: batch.Gzip, appendTime: true, transactional: true, control: true, horizon: true},
	} {
		if c.a.Codec() != c.codec || c.a.LogAppendTime() != c.appendTime || c.a.Transactional() != c.transactional ||
			c.a.Control() != c.control || c.a.DeleteHorizon() != c.horizon {
			t.Errorf("%#x is taken for something else", c.a)
		}
	}
}

func TestCodecNames(t *testing.T) {
	for _, c := range codecs {
		if got, err := batch.ParseCodec(c.String()); got != c || err != nil {
			t.Errorf("%s is parsed as %s, %v", c, got, err)
		}
	}
	if _, err := batch.ParseCodec("brotli"); !errors.Is(err, batch.ErrCodec) {
		t.Errorf("brotli: %v", err)
	}
}

func TestParseHeaderRefuses(t *testing.T) {
	good := few(t, batch.None)
	with := func(at int, b ...byte) []byte { return slices.Replace(slices.Clone(good), at, at+len(b), b...) }
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":           {nil, batch.ErrCorrupt},
		"half a header":     {good[:60], batch.ErrCorrupt},
		"short of a header": {with(8, 0, 0, 0, 48), batch.ErrCorrupt},
		"negative length":   {with(8, 0xff, 0xff, 0xff, 0xff), batch.ErrCorrupt},
		"size overflows":    {with(8, 0x7f, 0xff, 0xff, 0xff), batch.ErrCorrupt},
		"magic 0":           {with(16, 0), batch.ErrMagic},
		"magic 1, short":    {with(16, 1)[:30], batch.ErrMagic},
		"magic 3":           {with(16, 3), batch.ErrMagic},
	} {
		if _, err := batch.ParseHeader(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := batch.ParseHeader(with(8, 0, 0, 0, 49)); err != nil {
		t.Errorf("a header without records: %v", err)
	}
}

func TestAll(t *testing.T) {
	one, two := few(t, batch.None), few(t, batch.Zstd)
	set := slices.Concat(one, two, one)
	var got [][]byte
	for b, err := range batch.All(set) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b)
	}
	if !slices.EqualFunc(got, [][]byte{one, two, one}, bytes.Equal) {
		t.Errorf("%d batches", len(got))
	}
	if &got[0][0] != &set[0] || cap(got[0]) != len(one) {
		t.Error("a batch is copied, or reaches into the next")
	}
	for b, err := range batch.All(nil) {
		t.Error("an empty set has a batch", b, err)
	}
	for _, cut := range []int{1, 60, len(two) - 1} {
		var errs, batches int
		for _, err := range batch.All(set[:len(one)+cut]) {
			if err == nil {
				batches++
			} else if errs++; !errors.Is(err, batch.ErrCorrupt) {
				t.Error(err)
			}
		}
		if batches != 1 || errs != 1 {
			t.Errorf("cut at %d: %d batches, %d errors", cut, batches, errs)
		}
	}
}

func TestStamp(t *testing.T) {
	for _, codec := range codecs {
		b := few(t, codec)
		batch.Stamp(b, 1<<33, 12)
		h, err := batch.Validate(b, batch.Rules{Walk: true})
		if err != nil || h.BaseOffset != 1<<33 || h.Epoch != 12 {
			t.Fatalf("%s: %+v, %v", codec, h, err)
		}
		got, err := read(b, 0)
		if err != nil || got[2].Offset != 1<<33+2 || got[2].Timestamp != 2000 {
			t.Errorf("%s: %+v, %v", codec, got, err)
		}
	}
}

// TestStampAppendTime: the client's times are gone, in records too.
func TestStampAppendTime(t *testing.T) {
	for _, codec := range codecs {
		b := few(t, codec)
		batch.StampAppendTime(b, 5555)
		h, err := batch.Validate(b, batch.Rules{Walk: true, MinTimestamp: 1, MaxTimestamp: 2})
		if err != nil || !h.Attributes.LogAppendTime() || h.Attributes.Codec() != codec || h.MaxTimestamp != 5555 {
			t.Fatalf("%s: %+v, %v", codec, h, err)
		}
		got, err := read(b, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got {
			if r.Timestamp != 5555 {
				t.Errorf("%s: offset %d has time %d", codec, r.Offset, r.Timestamp)
			}
		}
		if at, err := batch.Find(b, 5555, 0); err != nil || at.Offset != 0 || at.Timestamp != 5555 {
			t.Errorf("%s: Find: %+v, %v", codec, at, err)
		}
	}
}

func TestFind(t *testing.T) {
	for _, codec := range codecs {
		b := few(t, codec)
		batch.Stamp(b, 10, 4)
		for ms, want := range map[int64]siltstone.TimedOffset{
			math.MinInt64: {Offset: 10, Timestamp: 1000, Epoch: 4},
			1000:          {Offset: 10, Timestamp: 1000, Epoch: 4},
			1001:          {Offset: 11, Timestamp: 3000, Epoch: 4},
			2000:          {Offset: 11, Timestamp: 3000, Epoch: 4},
			3000:          {Offset: 11, Timestamp: 3000, Epoch: 4}, // the batch's max timestamp
			3001:          {Offset: -1, Timestamp: -1, Epoch: -1},
		} {
			if got, err := batch.Find(b, ms, 0); got != want || err != nil {
				t.Errorf("%s at %d: %+v, %v", codec, ms, got, err)
			}
		}
	}
}

// TestRecordsOfCompactedBatch: compaction leaves holes, and keeps the end.
func TestRecordsOfCompactedBatch(t *testing.T) {
	b := few(t, batch.None)
	section := b[batch.HeaderBytes:]
	first := 1 + int(section[0]>>1)
	rest := slices.Clone(section[first:])
	b = append(b[:batch.HeaderBytes], rest...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[57:], 2)
	got, err := read(b, 0)
	if err != nil || len(got) != 2 || got[0].Offset != 1 || got[1].Offset != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if at, err := batch.Find(b, 0, 0); err != nil || at.Offset != 1 {
		t.Errorf("Find: %+v, %v", at, err)
	}
	empty := b[:batch.HeaderBytes]
	binary.BigEndian.PutUint32(empty[8:], batch.HeaderBytes-12)
	binary.BigEndian.PutUint32(empty[57:], 0)
	if got, err := read(empty, 0); err != nil || len(got) != 0 {
		t.Errorf("an empty batch: %+v, %v", got, err)
	}
}

// TestRecordsKeepOrder: offsets rise, and stay in their batch.
func TestRecordsKeepOrder(t *testing.T) {
	record := func(delta byte) []byte { return []byte{12, 0, 0, delta << 1, 1, 1, 0} }
	for name, b := range map[string][]byte{
		"twice":        section(2, batch.None, append(record(0), record(0)...)...),
		"back":         section(2, batch.None, append(record(1), record(0)...)...),
		"past the end": section(2, batch.None, append(record(0), record(2)...)...),
	} {
		_, found := batch.Find(b, 1, 0)
		batch.StampAppendTime(b, 5)
		_, unread := read(b, 0)
		if !errors.Is(unread, batch.ErrInvalid) || found != nil {
			t.Errorf("%s: %v, %v", name, unread, found)
		}
	}
}

// TestRecordsStops: a loop that ends early gives its decompressor back whole.
func TestRecordsStops(t *testing.T) {
	for _, codec := range codecs {
		b := few(t, codec)
		for range 3 {
			for r, err := range batch.Records(b, 0) {
				if err != nil || r.Offset != 0 {
					t.Fatal(r, err)
				}
				break
			}
		}
		if got, err := read(b, 0); err != nil || len(got) != 3 {
			t.Errorf("%s: %d records, %v", codec, len(got), err)
		}
	}
}

// TestHole: it reads as a batch that goes to the offset before its end, and has no records.
func TestHole(t *testing.T) {
	for _, size := range []siltstone.Offset{1, siltstone.UncleanJump, 1<<31 - 1, 1 << 40} {
		b := batch.Hole(7, 7+size, 3)
		h, err := batch.ParseHeader(b)
		if err != nil || h.SizeBytes() != len(b) {
			t.Fatalf("%+v, %v", h, err)
		}
		want := min(size, 1<<31-1)
		if h.BaseOffset != 7 || siltstone.Offset(h.LastOffsetDelta)+1 != want || h.Epoch != 3 || h.Records != 0 || h.ProducerID != -1 {
			t.Errorf("of %d offsets: %+v", size, h)
		}
		if got, err := read(b, 0); err != nil || len(got) != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
