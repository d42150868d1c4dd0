package kafka

// Failures that people met in systems like this one, at this door. The cases
// go by the numbers of the project's list of field reports.
//
//	1   ListOffsets for a time between two records
//	3   LogAppendTime missing from the produce reply
//	4   null and empty mixed up
//	5   Fetch limit smaller than one batch
//	6   zstd data and old fetch versions
//	7   ApiVersions newer than the server knows
//	10  topic names that differ by . and _; creation races
//	11  JoinGroup v0 has no rebalance timeout
//	12  pending member outlives the last real member
//	13  OffsetFetch for all topics on old versions
//	15  deleted group comes back after restart
//	16  two clients, one static instance id
//
// Those of groups, 11 on, stand in reports_groups_test.go, over a coordinator
// without its agent; of 12, 15 and 16, what real clients and restarts show is
// tested in coordinator/group, sim and e2e.
//
// Clauses that wait for what they are about: of 1, after a flush to S3; of 3
// and 4, through Python, Rust, Java and JavaScript clients; of 4, that a
// zero-length value survives compaction, and the HTTP gateway; of 6, the
// kafka-python and aiokafka consumers; of 7, Java clients; of 10, the names in
// S3 keys and metrics. Those of a real log and of restarts are tested where
// the log is: see the tests of agent and sim.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

func TestReport1TimeBetweenRecords(t *testing.T) {
	f := start(t)
	topic := f.create("t", 2)
	c := f.dial()
	b := batch.NewBuilder(batch.Gzip, 0)
	for _, ms := range []int64{2, 4, 6, 8} {
		b.Append(batch.Record{Timestamp: ms})
	}
	wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, build(t, b))))
	want := map[int64][2]int64{ // offset and timestamp
		0: {0, 2}, 2: {0, 2}, 3: {1, 4}, 4: {1, 4}, 5: {2, 6}, 6: {2, 6}, 7: {3, 8}, 8: {3, 8}, 9: {-1, -1},
	}
	for version := int16(1); version <= 11; version++ {
		for at, w := range want {
			p := ask[*kmsg.ListOffsetsResponse](c, version, listOffset("t", 0, at, -1)).Topics[0].Partitions[0]
			if p.ErrorCode != 0 || p.Offset != w[0] || p.Timestamp != w[1] {
				t.Errorf("v%d, time %d: offset %d, time %d, want %v", version, at, p.Offset, p.Timestamp, w)
			}
		}
		p := ask[*kmsg.ListOffsetsResponse](c, version, listOffset("t", 1, 0, -1)).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.Offset != -1 || p.Timestamp != -1 {
			t.Errorf("v%d, empty: offset %d, time %d", version, p.Offset, p.Timestamp)
		}
	}
	// v0 means something else: it is not advertised, nor answered.
	for _, k := range ask[*kmsg.ApiVersionsResponse](c, 0, kmsg.NewPtrApiVersionsRequest()).ApiKeys {
		if kmsg.Key(k.ApiKey) == kmsg.ListOffsets && k.MinVersion != 1 {
			t.Errorf("ListOffsets is advertised from v%d", k.MinVersion)
		}
	}
	c.send(listOffset("t", 0, 3, -1)) // v0
	c.wantClosed()
}

func TestReport3LogAppendTime(t *testing.T) {
	f := start(t)
	appendTime, createTime := f.create("append", 1, "message.timestamp.type", "LogAppendTime"), f.create("create", 1)
	c := f.dial()
	year3000 := time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for version := int16(3); version <= 13; version++ {
		for _, codec := range []batch.Codec{batch.None, batch.Gzip, batch.LZ4} {
			b := batch.NewBuilder(codec, 0)
			for _, ms := range []int64{1, year3000, -100} {
				b.Append(batch.Record{Timestamp: ms, Value: []byte("v")})
			}
			before := time.Now().UnixMilli()
			p := ask[*kmsg.ProduceResponse](c, version, produce(appendTime, -1, build(t, b))).Topics[0].Partitions[0]
			if p.ErrorCode != 0 || p.LogAppendTime < before || p.LogAppendTime > time.Now().UnixMilli() {
				t.Errorf("v%d, %s: %s, append time %d", version, codec, errorName(p.ErrorCode), p.LogAppendTime)
			}
			stored := f.stored(appendTime.ID)
			newest := stored[len(stored)-1]
			h, err := batch.Validate(newest, batch.Rules{Walk: true})
			if err != nil || !h.Attributes.LogAppendTime() || h.Attributes.Codec() != codec {
				t.Errorf("v%d, %s: %v, attributes %x", version, codec, err, h.Attributes)
			}
			for r, err := range batch.Records(newest, 0) {
				if err != nil || r.Timestamp != p.LogAppendTime {
					t.Errorf("v%d, %s: a record is stamped %d, want %d (%v)", version, codec, r.Timestamp, p.LogAppendTime, err)
				}
			}
		}
		p := ask[*kmsg.ProduceResponse](c, version, produce(createTime, -1, oneBatch(t, batch.None, "v"))).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.LogAppendTime != -1 {
			t.Errorf("v%d, CreateTime: %s, append time %d", version, errorName(p.ErrorCode), p.LogAppendTime)
		}
	}
}

func TestReport4NullAndEmpty(t *testing.T) {
	fields := [][]byte{nil, {}, []byte("x")}
	var sent []batch.Record
	for _, key := range fields {
		for _, value := range fields {
			sent = append(sent, batch.Record{Key: key, Value: value, Timestamp: 1, Headers: []batch.RecordHeader{
				{Key: []byte("h"), Value: nil}, {Key: []byte("h"), Value: []byte{}}, {Key: []byte("h"), Value: []byte("x")},
			}})
		}
	}
	f := start(t)
	c := f.dial()
	for _, compression := range []string{"producer", "uncompressed", "snappy"} { // passed on, or made anew
		topic := f.create(compression, 1, "compression.type", compression)
		b := batch.NewBuilder(batch.Gzip, 0)
		for _, r := range sent {
			b.Append(r)
		}
		wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, build(t, b))))
		resp := ask[*kmsg.FetchResponse](c, 12, fetchOf(topic.ID, topic.Name, 0))
		i := 0
		for r, err := range batch.Records(resp.Topics[0].Partitions[0].RecordBatches, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if !sameField(r.Key, sent[i].Key) || !sameField(r.Value, sent[i].Value) {
				t.Errorf("%s, record %d: key %#v, value %#v", compression, i, r.Key, r.Value)
			}
			for j, h := range r.Headers {
				if string(h.Key) != "h" || !sameField(h.Value, sent[i].Headers[j].Value) {
					t.Errorf("%s, record %d: header %d is %q, %#v", compression, i, j, h.Key, h.Value)
				}
			}
			i++
		}
		if i != len(sent) {
			t.Errorf("%s: %d records, want %d", compression, i, len(sent))
		}
	}
	// On a compacted topic an empty key is one, and null is refused.
	compacted := f.create("compacted", 1, "cleanup.policy", "compact")
	for i, want := range []string{"INVALID_RECORD", "", ""} {
		b := batch.NewBuilder(batch.Zstd, 0)
		b.Append(batch.Record{Key: fields[i], Value: nil, Timestamp: 1})
		p := ask[*kmsg.ProduceResponse](c, 9, produce(compacted, -1, build(t, b))).Topics[0].Partitions[0]
		if errorName(p.ErrorCode) != want {
			t.Errorf("key %#v: %q, want %q", fields[i], errorName(p.ErrorCode), want)
		}
	}
}

func sameField(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func TestReport5LimitBelowOneBatch(t *testing.T) {
	f := start(t)
	topic := f.create("t", 2)
	c := f.dial()
	large := oneBatch(t, batch.None, strings.Repeat("x", 900_000))
	small := oneBatch(t, batch.None, "small")
	for range 2 {
		wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, large, large)))
	}
	for range 9 {
		wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, small)))
	}
	for version := int16(4); version <= 18; version++ {
		for _, limit := range []int32{0, 1, 1000} {
			q := fetchOf(topic.ID, "t", 0, 1)
			q.MaxBytes, q.MinBytes = limit, 1
			for i := range q.Topics[0].Partitions {
				q.Topics[0].Partitions[i].PartitionMaxBytes = limit
			}
			p := ask[*kmsg.FetchResponse](c, version, q).Topics[0].Partitions
			if len(p[0].RecordBatches) != len(large) || len(p[1].RecordBatches) != 0 {
				t.Errorf("v%d, limit %d: %d and %d bytes, want %d and none", version, limit, len(p[0].RecordBatches), len(p[1].RecordBatches), len(large))
			}
		}
	}
	out, _ := f.kcat("", "-C", "-t", "t", "-p", "0", "-o", "beginning", "-e", "-q", "-X", "fetch.message.max.bytes=1000")
	if n := strings.Count(out, "\n"); n != 11 {
		t.Errorf("kcat reads %d records, want 11", n)
	}
}

func TestReport6ZstdAndOldFetch(t *testing.T) {
	f := start(t)
	own, passed, plain := f.create("own", 1, "compression.type", "zstd"), f.create("passed", 1), f.create("plain", 1)
	c := f.dial()
	wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(own, -1, oneBatch(t, batch.None, "v"))))
	wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(passed, -1, oneBatch(t, batch.Zstd, "v"))))
	wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(plain, -1, oneBatch(t, batch.None, "v"))))
	for version := int16(4); version <= 18; version++ {
		q := fetchOf(own.ID, "own", 0)
		q.Topics = slices.Concat(q.Topics, fetchTopics("passed", passed.ID, 0), fetchTopics("plain", plain.ID, 0))
		resp := ask[*kmsg.FetchResponse](c, version, q)
		want := ""
		if version < 10 {
			want = "UNSUPPORTED_COMPRESSION_TYPE"
		}
		for i, topic := range resp.Topics {
			p := topic.Partitions[0]
			if i > 0 {
				want = "" // zstd as it was produced, and none, are for every version
			}
			if errorName(p.ErrorCode) != want || (len(p.RecordBatches) == 0) != (want != "") {
				t.Errorf("v%d, topic %d: %q, %d bytes", version, i, errorName(p.ErrorCode), len(p.RecordBatches))
			}
		}
	}
	for version := int16(3); version <= 13; version++ {
		want := ""
		if version < 7 {
			want = "UNSUPPORTED_COMPRESSION_TYPE"
		}
		p := ask[*kmsg.ProduceResponse](c, version, produce(passed, -1, oneBatch(t, batch.Zstd, "v"))).Topics[0].Partitions[0]
		if errorName(p.ErrorCode) != want {
			t.Errorf("Produce v%d: %q, want %q", version, errorName(p.ErrorCode), want)
		}
	}
}

func TestReport7NewerApiVersions(t *testing.T) {
	f := start(t)
	c := f.dial()
	for _, version := range []int16{6, 127, 32767} {
		q := kmsg.NewPtrApiVersionsRequest()
		q.SetVersion(0)
		frame := formatter.AppendRequest(nil, q, 77)
		frame[6], frame[7] = byte(version>>8), byte(version)
		frame = append(frame, "what no one knows"...)
		frame[3] = byte(len(frame) - 4)
		if _, err := c.conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		resp := c.receive(q, 77).(*kmsg.ApiVersionsResponse) // as v0
		listed := slices.ContainsFunc(resp.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool {
			return kmsg.Key(k.ApiKey) == kmsg.ApiVersions && k.MinVersion == 0 && k.MaxVersion == 5
		})
		if resp.ErrorCode != 35 || !listed {
			t.Errorf("v%d: error %d, %d keys", version, resp.ErrorCode, len(resp.ApiKeys))
		}
		// The connection lives on.
		if got := ask[*kmsg.ApiVersionsResponse](c, 3, named("tests", "1")); got.ErrorCode != 0 {
			t.Errorf("v3 after v%d: %s", version, errorName(got.ErrorCode))
		}
	}
	if got := ask[*kmsg.ApiVersionsResponse](c, 3, named("a name", "1")); errorName(got.ErrorCode) != "INVALID_REQUEST" {
		t.Errorf("a name with a space: %s", errorName(got.ErrorCode))
	}
	other := f.dial()
	if _, err := other.conn.Write([]byte{0, 0, 0, 10, 0x03, 0xe7, 0, 0, 0, 0, 0, 1, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	other.wantClosed()
	ask[*kmsg.ApiVersionsResponse](c, 3, named("tests", "1"))
}

func TestReport10NamesAndRaces(t *testing.T) {
	f := start(t)
	c := f.dial()
	f.create("a_b_c", 1)
	for name, want := range map[string]string{
		"a.b_c": "INVALID_TOPIC_EXCEPTION", "a.b.c": "INVALID_TOPIC_EXCEPTION", "a_b_c": "TOPIC_ALREADY_EXISTS",
		"": "INVALID_TOPIC_EXCEPTION", ".": "INVALID_TOPIC_EXCEPTION", "..": "INVALID_TOPIC_EXCEPTION",
		strings.Repeat("n", 250): "INVALID_TOPIC_EXCEPTION", "ünïcode": "INVALID_TOPIC_EXCEPTION", "a/b": "INVALID_TOPIC_EXCEPTION",
		strings.Repeat("n", 249): "", "A-b_C.9": "",
	} {
		got := ask[*kmsg.CreateTopicsResponse](c, 5, createTopics(newTopic(name, 1, 1))).Topics[0]
		if errorName(got.ErrorCode) != want {
			t.Errorf("%q: %q, want %q", name, errorName(got.ErrorCode), want)
		}
	}
	results := make(chan string, 20)
	var wg sync.WaitGroup
	for range cap(results) {
		racer := f.dial()
		wg.Go(func() {
			q := createTopics(newTopic("raced", 1, 1))
			results <- errorName(ask[*kmsg.CreateTopicsResponse](racer, 5, q).Topics[0].ErrorCode)
		})
	}
	wg.Wait()
	close(results)
	count := map[string]int{}
	for r := range results {
		count[r]++
	}
	if count[""] != 1 || count["TOPIC_ALREADY_EXISTS"] != cap(results)-1 {
		t.Errorf("%v, want one success", count)
	}
	// Describing makes nothing: not by name without leave, nor for all topics.
	before := f.topics.Topics().Len()
	for version := int16(4); version <= 13; version++ {
		ask[*kmsg.MetadataResponse](c, version, metadataOf(fmt.Sprint("missing", version)))
		all := kmsg.NewPtrMetadataRequest()
		all.AllowAutoTopicCreation = true
		ask[*kmsg.MetadataResponse](c, version, all)
	}
	ask[*kmsg.DescribeConfigsResponse](c, 4, describe(kmsg.ConfigResourceTypeTopic, "missing"))
	wantUnknown := ask[*kmsg.ProduceResponse](c, 9, produce(newStranger(), -1, oneBatch(t, batch.None, "v")))
	if got := errorName(wantUnknown.Topics[0].Partitions[0].ErrorCode); got != "UNKNOWN_TOPIC_OR_PARTITION" {
		t.Errorf("producing to it: %s", got)
	}
	if n := f.topics.Topics().Len(); n != before {
		t.Errorf("%d topics after describing, want %d", n, before)
	}
	// The names apart, each topic has its own id.
	view := f.topics.Topics()
	ids := map[siltstone.TopicID]bool{}
	for _, topic := range view.All() {
		ids[topic.ID] = true
	}
	if len(ids) != view.Len() {
		t.Errorf("%d ids of %d topics", len(ids), view.Len())
	}
}
