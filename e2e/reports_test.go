package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// Failures that people met in servers like this one, as tests of what is right
// here. TestFranzNulls, TestKcatNulls, TestKcatLimits and TestFranzFetchLimits
// have their share of the cases of null and of limits.
//
// To come with what they are about: null through the HTTP gateway and after
// compaction, AlterConfigs (with the rest of the admin APIs), the same cases
// on several agents, and the clients in Java, Python and JavaScript.

var allCodecs = []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd}

// TestListOffsetsBetweenRecords: the first record at or after a time, exactly,
// also inside a batch; none is offset -1, time -1, and no error.
// (streamnative/kop#334, redpanda#4308, redpanda#4473)
func TestListOffsetsBetweenRecords(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "empty", "apart")
	c := s.dial(t)
	at := func(ms ...int64) (rs []batch.Record) {
		for _, t := range ms {
			rs = append(rs, batch.Record{Timestamp: t, Value: []byte("v")})
		}
		return rs
	}
	topics := []string{"apart"}
	for _, r := range at(2, 4, 6, 8) {
		c.produce(9, "apart", 0, records(t, batch.None, r))
	}
	for _, codec := range allCodecs {
		topics = append(topics, codec.String())
		s.cli(t, "", "topic", "create", codec.String())
		c.produce(9, codec.String(), 0, records(t, codec, at(2, 4, 6, 8)...))
	}
	want := []int64{0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2, 7: 3, 8: 3, 9: -1}
	look := func(c *raw) {
		t.Helper()
		for version := int16(1); version <= 9; version++ {
			for _, topic := range topics {
				for ms, offset := range want {
					stamp := 2 * (offset + 1)
					if offset < 0 {
						stamp = -1
					}
					got := c.offsetAt(version, topic, int64(ms))
					if got.Offset != offset || got.Timestamp != stamp || got.ErrorCode != 0 {
						t.Errorf("v%d, topic %s, time %d: offset %d of time %d, error %d; want %d of %d", version, topic, ms, got.Offset, got.Timestamp, got.ErrorCode, offset, stamp)
					}
				}
			}
			if got := c.offsetAt(version, "empty", 0); got.Offset != -1 || got.Timestamp != -1 || got.ErrorCode != 0 {
				t.Errorf("v%d, empty topic: %+v", version, got)
			}
		}
	}
	look(c)
	s.stop(t)
	s = start(t, s.dir)
	look(s.dial(t))
}

func (c *raw) offsetAt(version int16, topic string, ms int64) kmsg.ListOffsetsResponseTopicPartition {
	c.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	rt, rp := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	rt.Topic, rp.Timestamp = topic, ms
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return ask[*kmsg.ListOffsetsResponse](c, version, req).Topics[0].Partitions[0]
}

// TestLogAppendTime: the answer to a producer and every record that is read
// have the server's time, whatever time the client set. (redpanda#29189)
func TestLogAppendTime(t *testing.T) {
	s := start(t, t.TempDir())
	c := s.dial(t)
	year3000 := time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, codec := range allCodecs {
		name := codec.String()
		s.cli(t, "", "topic", "create", name, "-c", "message.timestamp.type=LogAppendTime")
		before := time.Now().UnixMilli()
		p := c.produce(9, name, 0, records(t, codec,
			batch.Record{Timestamp: 1, Value: []byte("a")}, batch.Record{Timestamp: year3000, Value: []byte("b")}))
		after := time.Now().UnixMilli()
		if p.ErrorCode != 0 || p.LogAppendTime < before || p.LogAppendTime > after {
			t.Fatalf("%s: error %d, time %d, not within %d and %d", name, p.ErrorCode, p.LogAppendTime, before, after)
		}
		for _, r := range s.read(t, name, 0, 2) {
			if r.Timestamp.UnixMilli() != p.LogAppendTime || r.Attrs.TimestampType() != 1 {
				t.Errorf("%s, offset %d: time %d of type %d, want %d of type 1", name, r.Offset, r.Timestamp.UnixMilli(), r.Attrs.TimestampType(), p.LogAppendTime)
			}
		}
	}
	s.cli(t, "", "topic", "create", "create-time")
	if p := c.produce(9, "create-time", 0, records(t, batch.None, batch.Record{Timestamp: 1})); p.ErrorCode != 0 || p.LogAppendTime != -1 {
		t.Errorf("CreateTime: error %d, time %d, want -1", p.ErrorCode, p.LogAppendTime)
	}
}

// TestNullKeyOnCompactedTopic: it is refused, and an empty key is not.
// (platformatic/kafka#217, librdkafka#1386)
func TestNullKeyOnCompactedTopic(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "compact", "-c", "cleanup.policy=compact")
	s.cli(t, "", "topic", "create", "both", "-c", "cleanup.policy=compact,delete")
	c := s.dial(t)
	for _, topic := range []string{"compact", "both"} {
		for _, codec := range allCodecs {
			good, bad := batch.Record{Key: []byte{}, Value: nil}, batch.Record{Value: []byte("v")}
			if p := c.produce(9, topic, 0, records(t, codec, good, good)); p.ErrorCode != 0 {
				t.Errorf("%s, %v: empty key and null value: error %d", topic, codec, p.ErrorCode)
			}
			if p := c.produce(9, topic, 0, records(t, codec, good, bad)); p.ErrorCode != kerr.InvalidRecord.Code {
				t.Errorf("%s, %v: null key: error %d", topic, codec, p.ErrorCode)
			}
		}
		for _, r := range s.read(t, topic, 0, 2*len(allCodecs)) {
			if r.Key == nil || len(r.Key) != 0 || r.Value != nil {
				t.Errorf("%s, offset %d: key %q, value %q", topic, r.Offset, r.Key, r.Value)
			}
		}
	}
}

// TestFetchOfAlmostNothing: the first batch of the first partition that has
// one comes whole, whatever the limits. (librdkafka#482, pykafka#102)
func TestFetchOfAlmostNothing(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "none", "one", "two")
	c := s.dial(t)
	b := records(t, batch.None, batch.Record{Value: bytes.Repeat([]byte("x"), 900<<10)})
	for _, topic := range []string{"one", "two"} {
		if p := c.produce(9, topic, 0, b); p.ErrorCode != 0 {
			t.Fatal(p.ErrorCode)
		}
	}
	for version := int16(4); version <= 12; version++ {
		for _, limit := range []int32{0, 1} {
			got := c.fetchFrom(version, limit, "none", "one", "two")
			sizes := []int{}
			for _, topic := range got {
				sizes = append(sizes, len(topic.Partitions[0].RecordBatches))
			}
			if fmt.Sprint(sizes) != fmt.Sprint([]int{0, len(b), 0}) {
				t.Errorf("v%d, limit %d: bytes %v, want one whole batch of %d", version, limit, sizes, len(b))
			}
		}
	}
}

// TestZstdAndOldClients: what is said to a reader below Fetch v10 of a topic
// of zstd concerns that topic alone; with compression.type=producer batches
// pass through, as in Kafka. (kafka-python#2187, aiokafka#1111)
func TestZstdAndOldClients(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "zstd", "-c", "compression.type=zstd")
	s.cli(t, "", "topic", "create", "producer", "plain")
	c := s.dial(t)
	b := records(t, batch.Zstd, batch.Record{Value: []byte("v")})
	for version := int16(3); version < 7; version++ {
		if p := c.produce(version, "producer", 0, b); p.ErrorCode != kerr.UnsupportedCompressionType.Code {
			t.Errorf("Produce v%d of zstd: error %d", version, p.ErrorCode)
		}
	}
	for topic, b := range map[string][]byte{"zstd": b, "producer": b, "plain": records(t, batch.None, batch.Record{Value: []byte("v")})} {
		if p := c.produce(7, topic, 0, b); p.ErrorCode != 0 {
			t.Fatalf("Produce v7 to %s: error %d", topic, p.ErrorCode)
		}
	}
	for _, version := range []int16{4, 9, 10, 12} {
		for _, topic := range c.fetchFrom(version, 1<<20, "zstd", "producer", "plain") {
			var want int16
			if topic.Topic == "zstd" && version < 10 {
				want = kerr.UnsupportedCompressionType.Code
			}
			if p := topic.Partitions[0]; p.ErrorCode != want || (want == 0) != (len(p.RecordBatches) > 0) {
				t.Errorf("Fetch v%d of %s: error %d with %d bytes, want error %d", version, topic.Topic, p.ErrorCode, len(p.RecordBatches), want)
			}
		}
	}
	// What the server compresses itself, clients decompress.
	for _, codec := range allCodecs[1:] {
		name := "server-" + codec.String()
		s.cli(t, "", "topic", "create", name, "-c", "compression.type="+codec.String())
		s.cli(t, lines(100, "record %d"), "produce", name)
		if got := s.kcat(t, nil, "-C", "-t", name, "-o", "beginning", "-e"); got != lines(100, "record %d") {
			t.Errorf("%s: kcat reads %.100q", name, got)
		}
		if got := s.read(t, name, 0, 100); got[0].Attrs.CompressionType() != uint8(codec) {
			t.Errorf("%s: stored with codec %d", name, got[0].Attrs.CompressionType())
		}
	}
}

// TestApiVersionsOfTheFuture: a newer request than ours is answered in v0 with
// error 35, and the connection lives on. (streamnative/kop#176, KIP-511)
func TestApiVersionsOfTheFuture(t *testing.T) {
	s := start(t, t.TempDir())
	c := s.dial(t)
	future := kmsg.NewPtrApiVersionsRequest()
	future.ClientSoftwareName, future.ClientSoftwareVersion = "e2e", "1"
	future.SetVersion(127)
	c.send(future)
	body, err := c.receive()
	if err != nil {
		t.Fatal(err)
	}
	v0 := kmsg.NewPtrApiVersionsResponse()
	if err := v0.ReadFrom(body); err != nil || v0.ErrorCode != kerr.UnsupportedVersion.Code {
		t.Fatalf("answer to v127: error %d, %v", v0.ErrorCode, err)
	}
	if !slices.ContainsFunc(v0.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool {
		return k.ApiKey == int16(kmsg.ApiVersions) && k.MaxVersion >= 3
	}) {
		t.Errorf("answer to v127 lists %+v", v0.ApiKeys)
	}
	good := kmsg.NewPtrApiVersionsRequest()
	good.ClientSoftwareName, good.ClientSoftwareVersion = "e2e", "1"
	if resp := ask[*kmsg.ApiVersionsResponse](c, 3, good); resp.ErrorCode != 0 || len(resp.ApiKeys) == 0 {
		t.Errorf("v3 on the same connection: %+v", resp)
	}
	odd := kmsg.NewPtrApiVersionsRequest()
	odd.ClientSoftwareName, odd.ClientSoftwareVersion = "no spaces", "1"
	if resp := ask[*kmsg.ApiVersionsResponse](c, 3, odd); resp.ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("a client name with a space: error %d", resp.ErrorCode)
	}
	other := s.dial(t)
	unknown := []byte{0, 0, 0, 10, 0x7f, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff} // API 32512
	if _, err := other.conn.Write(unknown); err != nil || !other.closed() {
		t.Errorf("an unknown API does not close its connection (%v)", err)
	}
	if resp := ask[*kmsg.ApiVersionsResponse](c, 3, good); resp.ErrorCode != 0 {
		t.Errorf("the first connection is gone too")
	}
}

// TestTopicNames: names that are Kafka's to refuse, and those that collide.
// (ns4kafka#63, apache/kafka#11910)
func TestTopicNames(t *testing.T) {
	s := start(t, t.TempDir())
	c := s.dial(t)
	create := func(name string) int16 {
		req := kmsg.NewPtrCreateTopicsRequest()
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, 1, -1
		req.Topics = append(req.Topics, rt)
		return ask[*kmsg.CreateTopicsResponse](c, 5, req).Topics[0].ErrorCode
	}
	long := strings.Repeat("x", 250)
	for _, step := range []struct {
		name string
		want *kerr.Error
	}{
		{"a_b_c", nil},
		{"a.b_c", kerr.InvalidTopicException},
		{"a_b_c", kerr.TopicAlreadyExists},
		{long[:249], nil},
		{long, kerr.InvalidTopicException},
		{"", kerr.InvalidTopicException},
		{".", kerr.InvalidTopicException},
		{"..", kerr.InvalidTopicException},
		{"größe", kerr.InvalidTopicException},
		{"a/b", kerr.InvalidTopicException},
		{"a\x00b", kerr.InvalidTopicException},
	} {
		var want int16
		if step.want != nil {
			want = step.want.Code
		}
		if got := create(step.name); got != want {
			t.Errorf("%.20q: error %d, want %d", step.name, got, want)
		}
	}
	s.stop(t)
	s = start(t, s.dir)
	c = s.dial(t)
	if got := create("a.b_c"); got != kerr.InvalidTopicException.Code {
		t.Errorf("after a restart: error %d", got)
	}
}

// TestTopicRace: of many who create one topic at once, one does.
// (apache/kafka#2425)
func TestTopicRace(t *testing.T) {
	const racers = 20
	s := start(t, t.TempDir())
	var made, exists atomic.Int32
	var wg sync.WaitGroup
	for range racers {
		wg.Go(func() {
			_, stderr, code := run(t, "", "topic", "create", "race", "--kafka", s.kafka)
			switch {
			case code == 0:
				made.Add(1)
			case strings.Contains(stderr, `topic "race" exists`):
				exists.Add(1)
			default:
				t.Error(stderr)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 || exists.Load() != racers-1 {
		t.Errorf("%d made it, %d found it", made.Load(), exists.Load())
	}
	if out := s.cli(t, "", "topic", "list"); strings.Count(out, "race") != 1 {
		t.Errorf("listed:\n%s", out)
	}
}

// TestLookingMakesNoTopic: only a Metadata request that names a topic and
// allows it creates one. (streamnative/kop#274)
func TestLookingMakesNoTopic(t *testing.T) {
	s := start(t, t.TempDir())
	c := s.dial(t)
	metadata := func(allow bool, names ...string) *kmsg.MetadataResponse {
		req := kmsg.NewPtrMetadataRequest()
		req.AllowAutoTopicCreation = allow
		for _, name := range names {
			rt := kmsg.NewMetadataRequestTopic()
			rt.Topic = kmsg.StringPtr(name)
			req.Topics = append(req.Topics, rt)
		}
		return ask[*kmsg.MetadataResponse](c, 9, req)
	}
	if got := metadata(false, "nosuch").Topics[0].ErrorCode; got != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("asked about without leave to create: error %d", got)
	}
	s.kcat(t, nil, "-L", "-t", "nosuch", "-X", "allow.auto.create.topics=false")
	if _, err := s.franz(t, kgo.ConsumeTopics("nosuch")).Request(t.Context(), kmsg.NewPtrMetadataRequest()); err != nil {
		t.Error(err)
	}
	if got := metadata(true).Topics; len(got) != 0 {
		t.Errorf("topics are there: %+v", got)
	}
	metadata(true, "wanted")
	eventually(t, "the topic is made", func() bool { return metadata(false, "wanted").Topics[0].ErrorCode == 0 })
	if got := metadata(true).Topics; len(got) != 1 {
		t.Errorf("topics: %+v", got)
	}
}
