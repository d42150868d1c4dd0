package e2e

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

var franzCodecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// franz is a client of the server. Idempotence waits for producer state.
func (s *server) franz(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.kafka), kgo.DisableIdempotentWrite(), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// read reads n records of a partition from an offset on.
func (s *server) read(t *testing.T, topic string, partition int32, from int64, n int, opts ...kgo.Opt) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl := s.franz(t, append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(from)}}))...)
	defer cl.Close()
	var got []*kgo.Record
	for len(got) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d of %d records of %s: %v", len(got), n, topic, err)
		}
		got = append(got, fetches.Records()...)
	}
	return got
}

// plain is a record as it must come back: nil and empty differ.
type plain struct {
	Offset     int64
	Key, Value []byte
	Headers    []kgo.RecordHeader
}

func plainOf(r *kgo.Record) plain { return plain{r.Offset, r.Key, r.Value, r.Headers} }

// TestFranzNulls writes every mix of null, empty and present, in one batch for
// each codec, and reads it from every offset.
func TestFranzNulls(t *testing.T) {
	some := [][]byte{nil, {}, []byte("x")}
	headers := []kgo.RecordHeader{{Key: "h", Value: nil}, {Key: "h", Value: []byte{}}, {Key: "", Value: []byte("y")}, {Key: "h", Value: []byte("x")}}
	s := start(t, t.TempDir())
	for name, codec := range franzCodecs {
		t.Run(name, func(t *testing.T) {
			s.cli(t, "", "topic", "create", name)
			var records []*kgo.Record
			var want []plain
			for _, key := range some {
				for _, value := range some {
					records = append(records, &kgo.Record{Topic: name, Key: key, Value: value, Headers: headers})
					want = append(want, plain{int64(len(want)), key, value, headers})
				}
			}
			if err := s.franz(t, kgo.ProducerBatchCompression(codec)).ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			for from := range want {
				var got []plain
				for _, r := range s.read(t, name, 0, int64(from), len(want)-from) {
					got = append(got, plainOf(r))
				}
				if diff := cmp.Diff(want[from:], got); diff != "" {
					t.Errorf("from offset %d (-want +got):\n%s", from, diff)
				}
			}
		})
	}
}

// TestFranzFetchLimits: limits below one batch give the batch whole, over
// several partitions, and never an empty answer for ever.
func TestFranzFetchLimits(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t", "-p", "2")
	cl := s.franz(t)
	large := make([]byte, 900<<10)
	const small = 10
	for p := range int32(2) {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Partition: p, Value: large}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		for i := range small {
			r := &kgo.Record{Topic: "t", Partition: p, Value: fmt.Append(nil, i)}
			if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, limit := range []int32{1, 1000, 1 << 20} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		reader := s.franz(t, kgo.ConsumeTopics("t"), kgo.FetchMaxBytes(limit), kgo.FetchMaxPartitionBytes(limit), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		next := map[int32]int64{}
		for next[0]+next[1] < 2*(small+1) {
			fetches := reader.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				t.Fatalf("limit %d: at %v: %v", limit, next, err)
			}
			for _, r := range fetches.Records() {
				if r.Offset != next[r.Partition] {
					t.Fatalf("limit %d, partition %d: offset %d, want %d", limit, r.Partition, r.Offset, next[r.Partition])
				}
				next[r.Partition]++
			}
		}
	}
}

// TestFranzLarge: records of 1 MiB, in each codec, alone and two in a batch,
// come back as they went.
func TestFranzLarge(t *testing.T) {
	s := start(t, t.TempDir())
	for name, codec := range franzCodecs {
		t.Run(name, func(t *testing.T) {
			s.cli(t, "", "topic", "create", name, "-c", "max.message.bytes=4194304")
			text := varied(t, 3<<20)
			var records []*kgo.Record
			for i := range 3 {
				records = append(records, &kgo.Record{Topic: name, Key: fmt.Append(nil, i), Value: text[i<<20:][:1<<20]})
			}
			cl := s.franz(t, kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(4<<20), kgo.ProducerLinger(time.Second))
			for _, together := range [][]*kgo.Record{records[:1], records[1:]} {
				if err := cl.ProduceSync(t.Context(), together...).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			for from := range records {
				for i, r := range s.read(t, name, 0, int64(from), len(records)-from) {
					if want := records[from+i]; !bytes.Equal(r.Value, want.Value) || !bytes.Equal(r.Key, want.Key) || r.Offset != int64(from+i) {
						t.Errorf("from offset %d: offset %d, key %q, %d bytes", from, r.Offset, r.Key, len(r.Value))
					}
				}
			}
		})
	}
}
