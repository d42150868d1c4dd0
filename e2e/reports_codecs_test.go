package e2e

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// zstdSince is the version of Fetch from which on readers know zstd, and that
// of Produce from which on writers do.
const (
	zstdSinceFetch   = 10
	zstdSinceProduce = 7
	newestFetch      = 18
)

// fetchTopics asks for partition 0 of topics from the beginning, in one request.
func (w *wire) fetchTopics(version int16, topics ...kmsg.MetadataResponseTopic) []kmsg.FetchResponseTopicPartition {
	w.t.Helper()
	q := fetchOf(topics[0], fetchFrom(0, 0, 1<<20))
	for _, topic := range topics[1:] {
		q.Topics = append(q.Topics, fetchOf(topic, fetchFrom(0, 0, 1<<20)).Topics...)
	}
	resp := ask[*kmsg.FetchResponse](w, version, q)
	if resp.ErrorCode != 0 || len(resp.Topics) != len(topics) {
		w.t.Fatalf("Fetch v%d: %s, %d topics", version, errorName(resp.ErrorCode), len(resp.Topics))
	}
	var parts []kmsg.FetchResponseTopicPartition
	for _, rt := range resp.Topics {
		parts = append(parts, rt.Partitions...)
	}
	return parts
}

// valuesIn are the values of the records that a partition was answered with,
// and the codecs of their batches.
func valuesIn(t *testing.T, p kmsg.FetchResponseTopicPartition) (values []string, codecs []batch.Codec) {
	t.Helper()
	headers, all := batchesIn(t, p)
	for i, b := range all {
		codecs = append(codecs, headers[i].Attributes.Codec())
		for r, err := range batch.Records(b, 0) {
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, string(r.Value))
		}
	}
	return values, codecs
}

// TestReport06Fetch: of a topic with compression.type=zstd a reader below Fetch
// v10 is told so, for its partitions alone; what is stored as producers sent it
// is given to everybody. (dpkp/kafka-python#2187, aiokafka#1111, librdkafka#2880)
func TestReport06Fetch(t *testing.T) {
	s := start(t, t.TempDir())
	names := []string{"zstd", "producer", "plain", "squeezed", "switched"}
	for i, configs := range [][]string{{"-c", "compression.type=zstd"}, nil, nil, {"-c", "compression.type=gzip"}, nil} {
		s.cli(t, "", append([]string{"topic", "create", names[i]}, configs...)...)
	}
	const records = 50
	for _, name := range names {
		codec := "zstd"
		if name == "plain" || name == "switched" {
			codec = "lz4"
		}
		s.kcat(t, []byte(lines(records, "record %d")), "-P", "-t", name, "-p", "0", "-z", codec)
	}
	stored := []batch.Codec{batch.Zstd, batch.Zstd, batch.LZ4, batch.Gzip, batch.LZ4}
	var want []string
	for i := range records {
		want = append(want, fmt.Sprintf("record %d", i))
	}
	wantFetched := func(t *testing.T, w *wire, refused ...string) {
		t.Helper()
		var topics []kmsg.MetadataResponseTopic
		for _, name := range names {
			topics = append(topics, w.topic(name))
		}
		for version := int16(4); version <= newestFetch; version++ {
			for i, p := range w.fetchTopics(version, topics...) {
				if version < zstdSinceFetch && slices.Contains(refused, names[i]) {
					if errorName(p.ErrorCode) != "UNSUPPORTED_COMPRESSION_TYPE" || len(p.RecordBatches) > 0 {
						t.Errorf("v%d, topic %s: %q and %d bytes", version, names[i], errorName(p.ErrorCode), len(p.RecordBatches))
					}
					continue
				}
				values, codecs := valuesIn(t, p)
				if p.ErrorCode != 0 || !slices.Equal(values, want) || len(slices.Compact(codecs)) != 1 || codecs[0] != stored[i] {
					t.Errorf("v%d, topic %s: %s, %d records in %v", version, names[i], errorName(p.ErrorCode), len(values), codecs)
				}
			}
		}
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		w := s.dial(t)
		wantFetched(t, w, "zstd")
		// The rule is the setting's, not the bytes': it says what may come.
		s.setConfig(t, "switched", "compression.type", "zstd")
		wantFetched(t, w, "zstd", "switched")
		s.setConfig(t, "switched", "compression.type", "producer")
		wantFetched(t, w, "zstd")
		for _, name := range names {
			if got := s.kcat(t, nil, atOnce("-C", "-t", name, "-o", "beginning", "-e")...); got != lines(records, "record %d") {
				t.Errorf("kcat reads of %s: %.100q", name, got)
			}
		}
		s.wantOldConsumer(t, records)
	})
}

// wantOldConsumer reads with a client of Kafka 1.0 (Fetch v6): it learns of the
// zstd topic that it cannot read it, and the others flow.
func (s *server) wantOldConsumer(t *testing.T, records int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl := s.franz(t, kgo.MaxVersions(kversion.V1_0_0()), kgo.ConsumeTopics("zstd", "producer", "plain"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	seen := map[string]int{}
	told := false
	for seen["plain"] < records || seen["producer"] < records || !told {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("an old consumer read %v, and heard of zstd: %v", seen, told)
		}
		fetches.EachError(func(topic string, _ int32, err error) {
			if topic != "zstd" || kerr.TypedErrorForCode(kerr.UnsupportedCompressionType.Code) != err { //nolint:errorlint // it is given as it is
				t.Errorf("topic %s: %v", topic, err)
			}
			told = true
		})
		fetches.EachRecord(func(r *kgo.Record) { seen[r.Topic]++ })
	}
	if seen["zstd"] > 0 {
		t.Errorf("an old consumer was given %d records of zstd", seen["zstd"])
	}
}

// TestReport06Produce: zstd in a Produce request that is older than zstd is
// refused, for its partition alone.
func TestReport06Produce(t *testing.T) {
	s := start(t, t.TempDir())
	settings := append([]string{"producer"}, codecs[1:]...)
	for _, name := range settings {
		s.cli(t, "", "topic", "create", name, "-p", "2", "-c", "compression.type="+name)
	}
	w := s.dial(t)
	for _, name := range settings {
		topic := w.topic(name)
		for version := int16(3); version <= 13; version++ {
			q := produceTo(topic, 0, batchOf(t, batch.Zstd, value("zstd")))
			beside := kmsg.NewProduceRequestTopicPartition()
			beside.Partition, beside.Records = 1, batchOf(t, batch.Gzip, value("gzip"))
			q.Topics[0].Partitions = append(q.Topics[0].Partitions, beside)
			parts := ask[*kmsg.ProduceResponse](w, version, q).Topics[0].Partitions
			want := ""
			if version < zstdSinceProduce {
				want = "UNSUPPORTED_COMPRESSION_TYPE"
			}
			if errorName(parts[0].ErrorCode) != want || parts[1].ErrorCode != 0 {
				t.Errorf("topic %s, v%d: %q and beside it %q", name, version, errorName(parts[0].ErrorCode), errorName(parts[1].ErrorCode))
			}
		}
		ends := w.listOffsets(1, topic, -1, -1)
		if ends[0].Offset != 13-zstdSinceProduce+1 || ends[1].Offset != 13-3+1 {
			t.Errorf("topic %s ends at %d and %d", name, ends[0].Offset, ends[1].Offset)
		}
	}
}

// xerial is how Java's snappy begins: a magic, its version, the oldest that can read it.
var xerial = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}

// TestReport06Recompressed: a topic with a codec of its own holds nothing else,
// whatever it is sent, in the form that every client reads. (dpkp/kafka-python#2414)
func TestReport06Recompressed(t *testing.T) {
	s := start(t, t.TempDir())
	settings := []string{"uncompressed", "gzip", "snappy", "lz4", "zstd"}
	w := s.dial(t)
	for _, setting := range settings {
		s.cli(t, "", "topic", "create", setting, "-c", "compression.type="+setting)
		for _, codec := range allCodecs {
			w.mustProduce(w.topic(setting), 0, batchOf(t, codec, mixes(nulls...)...))
		}
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		w := s.dial(t)
		for i, setting := range settings {
			headers, all := batchesIn(t, w.fetchTopics(12, w.topic(setting))[0])
			if len(headers) != len(allCodecs) {
				t.Fatalf("%s: %d batches", setting, len(headers))
			}
			for j, h := range headers {
				if h.Attributes.Codec() != batch.Codec(i) {
					t.Errorf("%s: batch %d is %s", setting, j, h.Attributes.Codec())
				}
				// What came as snappy is left as it came.
				if sent := allCodecs[j]; setting == "snappy" && sent != batch.Snappy && !bytes.HasPrefix(all[j][batch.HeaderBytes:], xerial) {
					t.Errorf("snappy, sent as %s, begins with % x", sent, all[j][batch.HeaderBytes:][:len(xerial)])
				}
			}
			var want []plain
			for j := range allCodecs {
				want = append(want, plainRecords(int64(j*len(nulls)*len(nulls)), mixes(nulls...))...)
			}
			s.wantRecords(t, setting, want)
		}
	})
}
