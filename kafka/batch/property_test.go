package batch_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// maybeBytes are null, empty or some.
func maybeBytes(most int) *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.Just([]byte(nil)),
		rapid.SliceOfN(rapid.Byte(), 0, 20),
		rapid.Map(rapid.IntRange(0, most), func(n int) []byte { return bytes.Repeat([]byte("siltstone "), n/10) }),
	)
}

func records() *rapid.Generator[[]batch.Record] {
	timestamp := rapid.OneOf(rapid.Int64Range(1_750_000_000_000, 1_750_000_100_000), rapid.Int64(), rapid.Just[int64](-1))
	header := rapid.Custom(func(t *rapid.T) batch.RecordHeader {
		return batch.RecordHeader{
			Key:   rapid.SliceOfN(rapid.ByteRange('a', 'd'), 0, 3).Draw(t, "name"),
			Value: maybeBytes(100).Draw(t, "header"),
		}
	})
	return rapid.Custom(func(t *rapid.T) []batch.Record {
		out := make([]batch.Record, rapid.IntRange(1, 40).Draw(t, "records"))
		for i := range out {
			out[i] = batch.Record{
				Attributes: rapid.Int8().Draw(t, "attributes"),
				Offset:     siltstone.Offset(i),
				Timestamp:  timestamp.Draw(t, "timestamp"),
				Key:        maybeBytes(200).Draw(t, "key"),
				Value:      maybeBytes(100_000).Draw(t, "value"),
			}
			if rapid.Bool().Draw(t, "has headers") {
				out[i].Headers = rapid.SliceOfN(header, 1, 4).Draw(t, "headers")
			}
		}
		return out
	})
}

// TestRoundTrip: what goes into a Builder comes out of Records, by us and by
// kgo, and what kgo writes we read; whatever the codec and however often it changes.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := records().Draw(t, "batch")
		codec := rapid.SampledFrom(codecs).Draw(t, "codec")
		level := rapid.IntRange(-2, 25).Draw(t, "level")
		builder := batch.NewBuilder(codec, level)
		latest := int64(-1)
		for _, r := range want {
			builder.Append(r)
			latest = max(latest, r.Timestamp)
		}
		b, err := builder.Build()
		if err != nil {
			t.Fatal(err)
		}
		checkBatch(t, "built", b, codec, want)
		if h, _ := batch.ParseHeader(b); h.MaxTimestamp != latest || h.BaseTimestamp != want[0].Timestamp {
			t.Fatalf("header is %+v", h)
		}
		foreign := kgoWrite(t, codec, want)
		checkBatch(t, "by kgo", foreign, codec, want)

		next := rapid.SampledFrom(codecs).Draw(t, "next codec")
		again, err := batch.Recompress(foreign, next, level, 0)
		if err != nil {
			t.Fatal(err)
		}
		checkBatch(t, "recompressed", again, next, want)

		ms := rapid.OneOf(rapid.Just(latest), rapid.Int64(), rapid.Just(want[len(want)/2].Timestamp)).Draw(t, "ms")
		found := siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}
		for _, r := range want {
			if r.Timestamp >= ms {
				found.Offset, found.Timestamp = r.Offset, r.Timestamp
				break
			}
		}
		if got, err := batch.Find(b, ms, 0); err != nil || got != found && found.Timestamp >= -1 {
			t.Fatalf("at %d: %+v, %v, want %+v", ms, got, err, found)
		}
	})
}

func checkBatch(t *rapid.T, what string, b []byte, codec batch.Codec, want []batch.Record) {
	h, err := batch.Validate(b, batch.Rules{Walk: true})
	if err != nil || int(h.Records) != len(want) || h.Attributes.Codec() != codec {
		t.Fatalf("%s: %+v, %v", what, h, err)
	}
	ours, err := read(b, 0)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	same(t, what, ours, want)
	theirs, err := kgoRead(b)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	same(t, what+", read by kgo", theirs, want)
}

// TestDamage: no byte that the CRC covers can change, nor the CRC, nor the length.
func TestDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := few(t, rapid.SampledFrom(codecs).Draw(t, "codec"))
		at := rapid.IntRange(8, len(b)-1).Draw(t, "at")
		bit := rapid.IntRange(0, 7).Draw(t, "bit")
		b[at] ^= 1 << bit
		_, err := batch.Validate(b, batch.Rules{})
		switch {
		case at >= 12 && at < 16: // the leader epoch
			if err != nil {
				t.Fatal(err)
			}
		case at == 16:
			if !errors.Is(err, batch.ErrMagic) {
				t.Fatal(err)
			}
		case !errors.Is(err, batch.ErrCorrupt):
			t.Fatalf("byte %d, bit %d: %v", at, bit, err)
		}
	})
}
