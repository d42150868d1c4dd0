package batch_test

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

const fuzzBound = 1 << 20

// FuzzBatch reads any bytes as a record set, and each batch in it also with its
// length and CRC put right, so that what is behind them is reached.
func FuzzBatch(f *testing.F) {
	for _, file := range append(glob(f, "testdata/java-*.bin", 10), glob(f, "testdata/librdkafka-*.bin", 5)...) {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 4<<10 {
			f.Add(b)
		}
	}
	for _, codec := range codecs {
		f.Add(few(f, codec))
	}
	f.Add(append(few(f, batch.None), few(f, batch.Zstd)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		rest := len(data)
		for b, err := range batch.All(data) {
			if err != nil {
				break
			}
			rest -= len(b)
			agree(t, b)
		}
		if rest < 0 {
			t.Fatal("All gives more than there is")
		}
		if len(data) >= batch.HeaderBytes {
			b := append([]byte(nil), data...)
			b[16] = 2
			binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
			agree(t, sealed(b))
		}
	})
}

// FuzzSection is for the records alone, compressed or not, in a good batch.
func FuzzSection(f *testing.F) {
	for _, codec := range codecs {
		f.Add(few(f, codec)[batch.HeaderBytes:], byte(codec), uint16(3))
	}
	f.Add([]byte{12, 0, 0, 0, 1, 1, 0}, byte(batch.None), uint16(1))
	f.Fuzz(func(t *testing.T, data []byte, codec byte, records uint16) {
		b := section(int32(records), batch.Codec(codec%8), data...)
		var e *batch.MaxTimestampError
		if _, err := batch.Validate(b, batch.Rules{Walk: true, MaxDecompressedBytes: fuzzBound}); errors.As(err, &e) {
			batch.StampMaxTimestamp(b, e.Records)
		}
		agree(t, b)
	})
}

// agree holds the ways to read a batch against each other, and against kgo.
func agree(t *testing.T, b []byte) {
	h, invalid := batch.Validate(b, batch.Rules{Walk: true, MaxDecompressedBytes: fuzzBound})
	got, unread := read(b, fuzzBound)
	if invalid != nil {
		return // Records may be more lenient; that it ended is enough
	}
	if unread != nil || len(got) != int(h.Records) {
		t.Fatalf("Validate takes it, and Records gives %d of %d, %v", len(got), h.Records, unread)
	}
	theirs, err := kgoRead(b)
	if err != nil {
		t.Fatalf("Validate takes it, and kgo does not: %v", err)
	}
	same(t, "kgo", theirs, got)
	latest := int64(-1)
	for i, r := range got {
		if int64(r.Offset) != int64(h.BaseOffset)+int64(i) {
			t.Fatalf("record %d is at %d", i, r.Offset)
		}
		latest = max(latest, r.Timestamp)
	}
	if h.Attributes.Control() {
		if _, err := batch.ParseMarker(b); err != nil {
			t.Fatal(err)
		}
		return
	}
	if latest != h.MaxTimestamp && !h.Attributes.LogAppendTime() {
		t.Fatalf("max timestamp is %d in the header, %d in the records", h.MaxTimestamp, latest)
	}
	if at, err := batch.Find(b, h.MaxTimestamp, fuzzBound); err != nil || at.Offset >= 0 && at.Timestamp != h.MaxTimestamp {
		t.Fatalf("at the max timestamp: %+v, %v", at, err)
	}
	if _, err := batch.Validate(b, batch.Rules{}); err != nil {
		t.Fatalf("with a walk it passes, without: %v", err)
	}
}
