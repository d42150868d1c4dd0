package batch_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// edit is a copy of b with bytes replaced, and the CRC right again.
func edit(b []byte, at int, with ...byte) []byte {
	b = slices.Replace(slices.Clone(b), at, at+len(with), with...)
	return sealed(b)
}

func sealed(b []byte) []byte {
	h, _ := batch.ParseHeader(b)
	batch.StampMaxTimestamp(b, h.MaxTimestamp)
	return b
}

// section is a batch of n records made of these bytes.
func section(n int32, codec batch.Codec, records ...byte) []byte {
	b := slices.Concat(make([]byte, batch.HeaderBytes), records)
	batch.Stamp(b, 0, -1)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	b[16] = 2
	b[22] = byte(codec)
	binary.BigEndian.PutUint32(b[23:], uint32(n-1))
	binary.BigEndian.PutUint64(b[43:], math.MaxUint64)
	binary.BigEndian.PutUint32(b[57:], uint32(n))
	return sealed(b)
}

func TestValidate(t *testing.T) {
	good := few(t, batch.None)
	negative := []byte{0xff, 0xff, 0xff, 0xff}
	walk := batch.Rules{Walk: true}
	for _, c := range []struct {
		name   string
		b      []byte
		rules  batch.Rules
		want   error // nil: it passes
		record int   // in the error, from 1; 0: none
	}{
		{name: "good", b: good, rules: walk},
		{name: "good without a walk", b: good},
		{name: "one byte less", b: good[:len(good)-1], want: batch.ErrCorrupt},
		{name: "one byte more", b: append(slices.Clone(good), 0), want: batch.ErrCorrupt},
		{name: "a bit of the CRC", b: slices.Replace(slices.Clone(good), 17, 18, good[17]^1), want: batch.ErrCorrupt},
		{name: "a bit of the last byte", b: append(slices.Clone(good[:len(good)-1]), good[len(good)-1]^1), want: batch.ErrCorrupt},
		{name: "magic 1", b: edit(good, 16, 1), want: batch.ErrMagic},
		{name: "codec 5", b: edit(good, 22, 5), want: batch.ErrCodec},
		{name: "codec 7 without a walk", b: edit(good, 22, 7), want: batch.ErrCodec},

		{name: "no records", b: edit(edit(good, 57, 0, 0, 0, 0), 23, negative...), want: batch.ErrInvalid},
		{name: "negative count", b: edit(good, 57, negative...), want: batch.ErrInvalid},
		{name: "a count past the offsets", b: edit(good, 57, 0, 0, 0, 4), want: batch.ErrInvalid},
		{name: "offsets past the count", b: edit(good, 23, 0, 0, 0, 3), want: batch.ErrInvalid},
		{name: "a record less than counted", b: edit(edit(good, 57, 0, 0, 0, 4), 23, 0, 0, 0, 3), rules: walk, want: batch.ErrInvalid, record: 4},
		{name: "a record more than counted", b: edit(edit(good, 57, 0, 0, 0, 2), 23, 0, 0, 0, 1), rules: walk, want: batch.ErrInvalid},
		{name: "which only a walk sees", b: edit(edit(good, 57, 0, 0, 0, 2), 23, 0, 0, 0, 1)},
		{name: "too many records", b: edit(edit(good, 57, 0, 0x10, 0, 1), 23, 0, 0x10, 0, 0), want: batch.ErrTooLarge},

		{name: "producer id -2", b: edit(good, 43, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0, 0, 0), want: batch.ErrInvalid},
		{name: "producer without an epoch", b: edit(good, 43, 0, 0, 0, 0, 0, 0, 0, 0), want: batch.ErrInvalid},
		{name: "producer without a sequence", b: edit(good, 43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), want: batch.ErrInvalid},
		{name: "producer 0", b: edit(good, 43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), rules: walk},
		{name: "no producer, sequence 0", b: edit(good, 51, 0, 0, 0, 0, 0, 0), rules: walk},
		{name: "transactional without a producer", b: edit(good, 22, 0x10), want: batch.ErrInvalid},

		{name: "null key where one is required", b: good, rules: batch.Rules{KeysRequired: true}, want: batch.ErrInvalid, record: 2},
		{name: "empty key where one is required", b: section(1, 0, 12, 0, 0, 0, 0, 1, 0), rules: batch.Rules{KeysRequired: true}},
		{name: "too early", b: good, rules: batch.Rules{Walk: true, MinTimestamp: 1001, MaxTimestamp: 9999}, want: batch.ErrTimestamp, record: 1},
		{name: "too late", b: good, rules: batch.Rules{Walk: true, MinTimestamp: math.MinInt64, MaxTimestamp: 2999}, want: batch.ErrTimestamp, record: 2},
		{name: "at the window's ends", b: good, rules: batch.Rules{Walk: true, MinTimestamp: 1000, MaxTimestamp: 3000}},
		{name: "too early by the header", b: good, rules: batch.Rules{MinTimestamp: 1001, MaxTimestamp: 9999}, want: batch.ErrTimestamp},
		{name: "too late by the header", b: good, rules: batch.Rules{MinTimestamp: math.MinInt64, MaxTimestamp: 2999}, want: batch.ErrTimestamp},
		{name: "no time is in every window", b: edit(section(1, 0, 12, 0, 1, 0, 1, 1, 0), 35, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
			rules: batch.Rules{Walk: true, MinTimestamp: 1000, MaxTimestamp: 2000}},

		// length, attributes, time delta, offset delta, key, value, headers
		{name: "the smallest record", b: section(1, 0, 12, 0, 0, 0, 1, 1, 0), rules: walk},
		{name: "length below the smallest", b: section(1, 0, 10, 0, 0, 0, 1, 1), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "length 0", b: section(1, 0, 0, 0, 0, 0, 0, 0, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "negative length", b: section(1, 0, 1, 0, 0, 0, 1, 1, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "length past the batch", b: section(1, 0, 14, 0, 0, 0, 1, 1, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "length past the fields", b: section(1, 0, 14, 0, 0, 0, 1, 1, 0, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "fields past the length", b: section(1, 0, 12, 0, 0, 0, 1, 2, 'v', 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "offset delta 1 first", b: section(1, 0, 12, 0, 0, 2, 1, 1, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "offset delta twice", b: section(2, 0, 12, 0, 0, 0, 1, 1, 0, 12, 0, 0, 0, 1, 1, 0), rules: walk, want: batch.ErrInvalid, record: 2},
		{name: "key of -2 bytes", b: section(1, 0, 12, 0, 0, 0, 3, 1, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "key past the record", b: section(1, 0, 12, 0, 0, 0, 8, 1, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "value past the record", b: section(1, 0, 12, 0, 0, 0, 1, 8, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "-1 headers", b: section(1, 0, 12, 0, 0, 0, 1, 1, 1), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "more headers than bytes", b: section(1, 0, 14, 0, 0, 0, 1, 1, 4, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "a header", b: section(1, 0, 16, 0, 0, 0, 1, 1, 2, 0, 1), rules: walk},
		{name: "a header without a name", b: section(1, 0, 16, 0, 0, 0, 1, 1, 2, 1, 1), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "varint of 33 bits", b: section(1, 0, 20, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 1, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "varint of 6 bytes", b: section(1, 0, 22, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 1, 1, 0), rules: walk, want: batch.ErrInvalid, record: 1},
		{name: "padded varint", b: section(1, 0, 20, 0, 0, 0x80, 0x80, 0x80, 0x80, 0, 1, 1, 0), rules: walk},
		{name: "varint of 65 bits", b: section(1, 0, 30, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 0, 1, 1, 0), rules: walk, want: batch.ErrInvalid, record: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := batch.Validate(c.b, c.rules)
			if !errors.Is(err, c.want) {
				t.Fatalf("error is %v, want %v", err, c.want)
			}
			var at *batch.RecordError
			if named := errors.As(err, &at); named != (c.record > 0) || named && int(at.Index) != c.record-1 {
				t.Errorf("error is %v, of record %d", err, c.record-1)
			}
			if err == nil && h.SizeBytes() != len(c.b) {
				t.Errorf("header is %+v", h)
			}
			if _, unread := read(c.b, 0); err == nil && c.rules.Walk && unread != nil {
				t.Errorf("Validate takes it, and Records does not: %v", unread)
			}
		})
	}
}

// TestMaxRecordBytes: a record of a compressed batch is bounded by itself, and
// the bound is reason enough for a walk.
func TestMaxRecordBytes(t *testing.T) {
	for _, codec := range codecs {
		builder := batch.NewBuilder(codec, 0)
		builder.Append(batch.Record{Value: make([]byte, 50)})
		builder.Append(batch.Record{Value: make([]byte, 100)})
		b := must(t)(builder.Build())
		const longest = 1 + 1 + 1 + 1 + 2 + 100 + 1 // attributes, deltas, key, value with its length, headers
		if _, err := batch.Validate(b, batch.Rules{MaxRecordBytes: longest}); err != nil {
			t.Errorf("%s: %v", codec, err)
		}
		_, err := batch.Validate(b, batch.Rules{MaxRecordBytes: longest - 1})
		at, ok := errors.AsType[*batch.RecordError](err)
		if codec == batch.None && err != nil || codec != batch.None && (!ok || at.Index != 1 || !errors.Is(err, batch.ErrInvalid)) {
			t.Errorf("%s, a byte less: %v", codec, err)
		}
	}
}

// TestMaxTimestamp: a wrong one is told apart, and can be put right.
func TestMaxTimestamp(t *testing.T) {
	for _, codec := range codecs {
		for _, wrong := range []int64{-1, 0, 2000, 2999, 3001, math.MaxInt64} {
			b := few(t, codec)
			batch.StampMaxTimestamp(b, wrong)
			h, err := batch.Validate(b, batch.Rules{Walk: true})
			var e *batch.MaxTimestampError
			if !errors.As(err, &e) || !errors.Is(err, batch.ErrInvalid) || e.Header != wrong || e.Records != 3000 || h.MaxTimestamp != wrong {
				t.Fatalf("%s, %d: %+v, %v", codec, wrong, h, err)
			}
			batch.StampMaxTimestamp(b, e.Records)
			if h, err := batch.Validate(b, batch.Rules{Walk: true}); err != nil || h.MaxTimestamp != 3000 {
				t.Errorf("%s, %d: put right, it is %+v, %v", codec, wrong, h, err)
			}
		}
	}
}

func TestMarkers(t *testing.T) {
	make1 := func(edit func(*batch.Builder)) []byte {
		b := batch.NewBuilder(batch.None, 0)
		b.Header.ProducerID, b.Header.ProducerEpoch = 5, 0
		b.Header.Attributes = batch.ControlBit | batch.TransactionalBit
		edit(b)
		return must(t)(b.Build())
	}
	marker := batch.Marker{Type: batch.Commit, CoordinatorEpoch: 9}.Record(1000)
	keyed := func(key, value []byte) func(*batch.Builder) {
		return func(b *batch.Builder) { b.Append(batch.Record{Timestamp: 1000, Key: key, Value: value}) }
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"good":              {make1(func(b *batch.Builder) { b.Append(marker) }), nil},
		"newer version":     {make1(keyed([]byte{0, 1, 0, 0, 0}, []byte{0, 1, 0, 0, 0, 3, 0})), nil},
		"two":               {make1(func(b *batch.Builder) { b.Append(marker); b.Append(marker) }), batch.ErrInvalid},
		"not transactional": {make1(func(b *batch.Builder) { b.Header.Attributes = batch.ControlBit; b.Append(marker) }), batch.ErrInvalid},
		"no producer":       {make1(func(b *batch.Builder) { b.Header.ProducerID = -1; b.Append(marker) }), batch.ErrInvalid},
		"null key":          {make1(keyed(nil, marker.Value)), batch.ErrInvalid},
		"short key":         {make1(keyed([]byte{0, 0, 0}, marker.Value)), batch.ErrInvalid},
		"negative version":  {make1(keyed([]byte{0xff, 0xff, 0, 0}, marker.Value)), batch.ErrInvalid},
		"type 2":            {make1(keyed([]byte{0, 0, 0, 2}, marker.Value)), batch.ErrInvalid},
		"short value":       {make1(keyed(marker.Key, []byte{0, 0, 0, 0, 0})), batch.ErrInvalid},
		"negative value":    {make1(keyed(marker.Key, []byte{0xff, 0xff, 0, 0, 0, 0})), batch.ErrInvalid},
	} {
		if _, err := batch.Validate(c.b, batch.Rules{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if m, err := batch.ParseMarker(make1(func(b *batch.Builder) { b.Append(marker) })); err != nil || m.Type != batch.Commit || m.CoordinatorEpoch != 9 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestValidateAllocatesNothing(t *testing.T) {
	b := sixteen(t, batch.None)
	rules := batch.Rules{KeysRequired: true, MinTimestamp: 1, MaxTimestamp: math.MaxInt64}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := batch.Validate(b, rules); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
