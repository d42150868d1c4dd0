package batch_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// The same format by other hands: franz-go's messages and codecs.

var kgoCodecs = map[batch.Codec]kgo.CompressionCodec{
	batch.None:   kgo.NoCompression(),
	batch.Gzip:   kgo.GzipCompression(),
	batch.Snappy: kgo.SnappyCompression(),
	batch.LZ4:    kgo.Lz4Compression(),
	batch.Zstd:   kgo.ZstdCompression(),
}

var kgoDecompressor = kgo.DefaultDecompressor()

// kgoRead decodes a batch without the package under test.
func kgoRead(b []byte) ([]batch.Record, error) {
	var rb kmsg.RecordBatch
	if err := rb.ReadFrom(b); err != nil {
		return nil, err
	}
	section, err := kgoDecompressor.Decompress(rb.Records, kgo.CompressionCodecType(rb.Attributes&7))
	if err != nil {
		return nil, err
	}
	var out []batch.Record
	for range rb.NumRecords {
		size, n := binary.Varint(section)
		if n <= 0 || size < 0 || int(size) > len(section)-n {
			return nil, fmt.Errorf("record %d: length %d of %d", len(out), size, len(section))
		}
		var r kmsg.Record
		if err := r.ReadFrom(section[:n+int(size)]); err != nil {
			return nil, fmt.Errorf("record %d: %w", len(out), err)
		}
		section = section[n+int(size):]
		rec := batch.Record{
			Attributes: r.Attributes,
			Offset:     siltstone.Offset(rb.FirstOffset + int64(r.OffsetDelta)),
			Timestamp:  rb.FirstTimestamp + r.TimestampDelta64,
			Key:        r.Key, Value: r.Value,
		}
		if rb.Attributes&8 != 0 {
			rec.Timestamp = rb.MaxTimestamp
		}
		for _, h := range r.Headers {
			rec.Headers = append(rec.Headers, batch.RecordHeader{Key: []byte(h.Key), Value: h.Value})
		}
		out = append(out, rec)
	}
	if len(section) > 0 {
		return nil, fmt.Errorf("%d bytes after the last record", len(section))
	}
	return out, nil
}

// kgoWrite encodes records as a producer would, without the package under test.
func kgoWrite(tb tb, codec batch.Codec, records []batch.Record) []byte {
	var section []byte
	latest := int64(-1)
	for i, r := range records {
		rec := kmsg.Record{
			Attributes:       r.Attributes,
			TimestampDelta64: r.Timestamp - records[0].Timestamp,
			OffsetDelta:      int32(i),
			Key:              r.Key, Value: r.Value,
		}
		for _, h := range r.Headers {
			rec.Headers = append(rec.Headers, kmsg.Header{Key: string(h.Key), Value: h.Value})
		}
		body := rec.AppendTo(nil)[1:] // past the length, 0 so far
		section = append(binary.AppendVarint(section, int64(len(body))), body...)
		latest = max(latest, r.Timestamp)
	}
	compressor, err := kgo.DefaultCompressor(kgoCodecs[codec])
	if err != nil {
		tb.Fatal(err)
	}
	if compressor != nil {
		section, _ = compressor.Compress(new(bytes.Buffer), section)
	}
	rb := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1,
		Magic:                2,
		Attributes:           int16(codec),
		LastOffsetDelta:      int32(len(records) - 1),
		FirstTimestamp:       records[0].Timestamp,
		MaxTimestamp:         latest,
		ProducerID:           -1,
		ProducerEpoch:        -1,
		FirstSequence:        -1,
		NumRecords:           int32(len(records)),
		Records:              section,
	}
	b := rb.AppendTo(nil)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// read collects the records of a batch; what it returns is its own.
func read(b []byte, maxDecompressed int) ([]batch.Record, error) {
	var out []batch.Record
	for r, err := range batch.Records(b, maxDecompressed) {
		if err != nil {
			return out, err
		}
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		headers := r.Headers
		r.Headers = nil
		for _, h := range headers {
			r.Headers = append(r.Headers, batch.RecordHeader{Key: bytes.Clone(h.Key), Value: bytes.Clone(h.Value)})
		}
		out = append(out, r)
	}
	return out, nil
}

// same fails unless both are equal, null and empty told apart.
func same(tb tb, what string, got, want []batch.Record) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%s: %d records, want %d", what, len(got), len(want))
	}
	for i, g := range got {
		if w := want[i]; g.Attributes != w.Attributes || g.Offset != w.Offset || g.Timestamp != w.Timestamp ||
			!sameBytes(g.Key, w.Key) || !sameBytes(g.Value, w.Value) || !slices.EqualFunc(g.Headers, w.Headers, sameHeader) {
			tb.Fatalf("%s: record %d is %.300s, want %.300s", what, i, fmt.Sprintf("%#v", g), fmt.Sprintf("%#v", w))
		}
	}
}

func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func sameHeader(a, b batch.RecordHeader) bool {
	return bytes.Equal(a.Key, b.Key) && sameBytes(a.Value, b.Value)
}

// tb is what helpers need of a testing.TB, or of a *rapid.T.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
