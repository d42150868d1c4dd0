package e2e

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// limitedTopic is a topic for fetches below a batch: partition 0 stays empty, 1
// and 2 begin with a batch of many bytes, which small ones follow, 3 has small
// ones alone. It returns where each partition ends.
func limitedTopic(t *testing.T, s *server) (ends []int64) {
	t.Helper()
	s.cli(t, "", "topic", "create", "t", "-p", "4")
	ends = make([]int64, 4)
	w := s.dial(t)
	topic := w.topic("t")
	for p := int32(1); p <= 3; p++ {
		ends[p] += writeLimited(w, topic, p)
	}
	return ends
}

// writeLimited writes ten small batches, and in partitions 1 and 2 before them
// one large of ten records. It returns how many records that is.
func writeLimited(w *wire, topic kmsg.MetadataResponseTopic, partition int32) (records int64) {
	w.t.Helper()
	var batches [][]byte
	if partition < 3 {
		var many []batch.Record
		for range 10 {
			many = append(many, value(strings.Repeat("large ", 2000)))
		}
		batches = append(batches, batchOf(w.t, batch.None, many...))
		records += 10
	}
	for i := range 10 {
		batches = append(batches, batchOf(w.t, batch.None, value(fmt.Sprint(i))))
		records++
	}
	if partition == 1 { // in two objects or more
		w.mustProduce(topic, partition, batches[0])
		batches = batches[1:]
	}
	w.mustProduce(topic, partition, batches...)
	return records
}

// TestReport05Limits: whatever the limits, the first batch of the first
// partition that has any comes whole, and no other goes over them.
// (librdkafka#482, pykafka#102)
func TestReport05Limits(t *testing.T) {
	s := start(t, t.TempDir())
	ends := limitedTopic(t, s)
	const large = 100 << 10 // less than the large batches
	limits := []int32{math.MinInt32, -1, 0, 1, 100, 1000, large, 4 * large, math.MaxInt32}
	first := true
	inEveryState(t, s, func(t *testing.T, s *server) {
		w := s.dial(t)
		topic := w.topic("t")
		old := slices.Clone(ends)
		for p := int32(1); !first && p <= 3; p++ { // what is in objects, then what is in memory
			ends[p] += writeLimited(w, topic, p)
		}
		first = false
		for name, from := range map[string]func(i int, p int32) int64{
			"from 0":            func(int, int32) int64 { return 0 },
			"from 5":            func(int, int32) int64 { return 5 }, // inside the large batch
			"from 9":            func(int, int32) int64 { return 9 },
			"from 10":           func(int, int32) int64 { return 10 },
			"in memory":         func(_ int, p int32) int64 { return old[p] },
			"object and memory": func(i int, p int32) int64 { return old[p] * int64(i%2) },
			"memory and object": func(i int, p int32) int64 { return old[p] * int64(1-i%2) },
		} {
			for _, order := range [][]int32{{1, 2}, {2, 1}, {0, 1, 2}, {0, 3, 1}, {3, 0, 2}, {1, 3}, {1}, {0}} {
				for n := range len(limits) * len(limits) {
					maxBytes, partMax := limits[n/len(limits)], limits[n%len(limits)]
					var parts []kmsg.FetchRequestTopicPartition
					for i, p := range order {
						parts = append(parts, fetchFrom(p, min(from(i, p), ends[p]), partMax))
					}
					q := fetchOf(topic, parts...)
					q.MaxBytes, q.MinBytes = maxBytes, 1
					version := []int16{4, 7, 12, 13, 18}[n%5]
					resp := ask[*kmsg.FetchResponse](w, version, q)
					what := fmt.Sprintf("v%d, partitions %v %s, limits %d and %d", version, order, name, maxBytes, partMax)
					wantWithinLimits(t, what, q, resp, ends)
				}
			}
		}
	})
}

// wantWithinLimits holds an answer against the rule of Fetch v3 and later.
func wantWithinLimits(t *testing.T, what string, q *kmsg.FetchRequest, resp *kmsg.FetchResponse, ends []int64) {
	t.Helper()
	if resp.ErrorCode != 0 || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != len(q.Topics[0].Partitions) {
		t.Fatalf("%s: %+v", what, resp)
	}
	total, first := 0, true
	for i, p := range resp.Topics[0].Partitions {
		asked := q.Topics[0].Partitions[i]
		if p.ErrorCode != 0 || p.Partition != asked.Partition || p.HighWatermark != ends[p.Partition] {
			t.Fatalf("%s: %+v", what, p)
		}
		headers, all := batchesIn(t, p)
		some := asked.FetchOffset < ends[p.Partition]
		if (len(all) > 0) != some && first {
			t.Errorf("%s: %d batches of partition %d, the first with any", what, len(all), p.Partition)
		}
		next := asked.FetchOffset
		for j, h := range headers {
			last := int64(h.BaseOffset) + int64(h.LastOffsetDelta)
			if int64(h.BaseOffset) > next || last < next {
				t.Errorf("%s: offsets %d to %d of partition %d, asked from %d", what, h.BaseOffset, last, p.Partition, next)
			}
			next = last + 1
			whole := first && j == 0
			if total += len(all[j]); !whole && total > int(q.MaxBytes) {
				t.Errorf("%s: %d bytes", what, total)
			}
		}
		if n := len(p.RecordBatches); n > max(0, int(asked.PartitionMaxBytes)) && !(first && len(all) == 1) {
			t.Errorf("%s: %d bytes in %d batches of partition %d", what, n, len(all), p.Partition)
		}
		first = first && !some
	}
}

// TestReport05Session: with room for less than one batch, a reader still gets
// everything, for in a fetch session partitions take turns.
func TestReport05Session(t *testing.T) {
	s := start(t, t.TempDir())
	ends := limitedTopic(t, s)
	inEveryState(t, s, func(t *testing.T, s *server) {
		for _, limit := range []int32{0, 1, 1000} {
			w := s.dial(t)
			topic := w.topic("t")
			next := make([]int64, len(ends))
			q := fetchOf(topic, fetchFrom(0, 0, limit), fetchFrom(1, 0, limit), fetchFrom(2, 0, limit), fetchFrom(3, 0, limit))
			q.SessionEpoch, q.MaxBytes = 0, limit
			var turns []int32
			for fetches := 0; next[1]+next[2]+next[3] < ends[1]+ends[2]+ends[3]; fetches++ {
				if fetches > 40 {
					t.Fatalf("limit %d: no further than %v after %d fetches", limit, next, fetches)
				}
				resp := ask[*kmsg.FetchResponse](w, 12, q)
				if resp.ErrorCode != 0 {
					t.Fatalf("limit %d: %s", limit, errorName(resp.ErrorCode))
				}
				q = fetchOf(topic)
				q.Topics[0].Partitions = nil
				q.SessionID, q.SessionEpoch, q.MaxBytes = resp.SessionID, int32(fetches+1), limit
				for _, rt := range resp.Topics {
					for _, p := range rt.Partitions {
						headers, _ := batchesIn(t, p)
						for _, h := range headers {
							next[p.Partition] = int64(h.BaseOffset) + int64(h.LastOffsetDelta) + 1
						}
						if len(headers) > 0 {
							turns = append(turns, p.Partition)
							q.Topics[0].Partitions = append(q.Topics[0].Partitions, fetchFrom(p.Partition, next[p.Partition], limit))
						}
					}
				}
			}
			if len(turns) < 3 || turns[0] == turns[1] || turns[1] == turns[2] || turns[0] == turns[2] {
				t.Errorf("limit %d: partitions were served in turns %v", limit, turns)
			}
		}
	})
}

// TestReport05Waits: limits below a batch, and a minimum above what is there
// to come, neither hold a reader up nor send it away empty.
func TestReport05Waits(t *testing.T) {
	s := start(t, t.TempDir())
	ends := limitedTopic(t, s)
	inEveryState(t, s, func(t *testing.T, s *server) {
		reader, writer := s.dial(t), s.dial(t)
		topic := reader.topic("t")
		// A wait that is no wait: the answer comes long before it is over.
		forever := int32(10 * patience.Milliseconds())
		q := fetchOf(topic, fetchFrom(0, ends[0], 1), fetchFrom(1, 0, 1))
		q.MaxBytes, q.MinBytes, q.MaxWaitMillis = 1, 1<<20, forever
		wantWithinLimits(t, "a minimum above the maximum", q, ask[*kmsg.FetchResponse](reader, 12, q), ends)

		// A partition that fails is no reason to wait, nor to keep the others empty.
		for _, wrong := range []kmsg.FetchRequestTopicPartition{fetchFrom(99, 0, 1), fetchFrom(3, 1000, 1)} {
			q = fetchOf(topic, wrong, fetchFrom(0, ends[0], 1), fetchFrom(1, 0, 1))
			q.MaxBytes, q.MinBytes, q.MaxWaitMillis = 1, 1<<20, forever
			parts := ask[*kmsg.FetchResponse](reader, 12, q).Topics[0].Partitions
			if headers, _ := batchesIn(t, parts[2]); parts[0].ErrorCode == 0 || len(headers) != 1 {
				t.Errorf("beside a partition that fails: %+v, %d batches", parts[0], len(headers))
			}
		}

		// What arrives while a reader with a small limit waits comes whole.
		for _, limit := range []int32{1, 1000} {
			q = fetchOf(topic, fetchFrom(0, ends[0], limit))
			q.MaxBytes, q.MinBytes, q.MaxWaitMillis = limit, 1, forever
			q.SetVersion(12)
			reader.send(q)
			b := batchOf(t, batch.Gzip, value(strings.Repeat("arrives ", 20_000)), value("late"))
			writer.mustProduce(topic, 0, b)
			ends[0] += 2
			resp, _ := reader.receive(q).(*kmsg.FetchResponse)
			if _, all := batchesIn(t, resp.Topics[0].Partitions[0]); len(all) != 1 || len(all[0]) != len(b) {
				t.Errorf("limit %d: %d batches, want the one that arrived", limit, len(all))
			}
		}
	})
}

// TestReport05Kcat is the report itself: 900 KiB and ten small records, past a
// limit of 1,000 bytes.
func TestReport05Kcat(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	w := s.dial(t)
	w.mustProduce(w.topic("t"), 0, batchOf(t, batch.None, batch.Record{Timestamp: 1, Value: bytes.Repeat([]byte("x"), 900<<10)}))
	for i := range 10 {
		w.mustProduce(w.topic("t"), 0, batchOf(t, batch.None, value(fmt.Sprint(i))))
	}
	want := "0 921600\n"
	for i := range 10 {
		want += fmt.Sprintf("%d 1\n", i+1)
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		for _, limit := range []string{"fetch.message.max.bytes=1000", "fetch.message.max.bytes=1"} {
			got := s.kcat(t, nil, atOnce("-C", "-t", "t", "-o", "beginning", "-e", "-f", "%o %S\n", "-X", limit)...)
			if got != want {
				t.Errorf("%s: kcat reads\n%swant\n%s", limit, got, want)
			}
		}
	})
}
