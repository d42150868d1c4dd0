package kafka

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// reseal writes the CRC that a batch should have, after a test changed it.
func reseal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// headed is a batch with a header of the caller's making.
func headed(t testing.TB, set func(*batch.Header)) []byte {
	t.Helper()
	b := batch.NewBuilder(batch.None, 0)
	set(&b.Header)
	b.Append(batch.Record{Timestamp: 1, Value: []byte("v")})
	return build(t, b)
}

func TestProduceVersions(t *testing.T) {
	f := start(t)
	topic := f.create("t", 2)
	c := f.dial()
	for version := range int16(14) {
		q := produce(topic, -1, oneBatch(t, batch.None, "a", "b"), oneBatch(t, batch.Snappy, "c"))
		resp := ask[*kmsg.ProduceResponse](c, version, q)
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 {
			t.Fatalf("v%d: %+v", version, resp)
		}
		rt := resp.Topics[0]
		if version < 13 && rt.Topic != topic.Name || version >= 13 && rt.TopicID != topic.ID {
			t.Errorf("v%d: answer for topic %q, id %x", version, rt.Topic, rt.TopicID)
		}
		for i, p := range rt.Partitions {
			if version < 3 {
				if errorName(p.ErrorCode) != "UNSUPPORTED_VERSION" || p.BaseOffset != -1 {
					t.Errorf("v%d: %s, base offset %d", version, errorName(p.ErrorCode), p.BaseOffset)
				}
				continue
			}
			base := int64(version-3) * int64(2-i)
			start := int64(0)
			if version < 5 {
				start = -1 // is not in the answer
			}
			if p.ErrorCode != 0 || p.Partition != int32(i) || p.BaseOffset != base || p.LogAppendTime != -1 || p.LogStartOffset != start {
				t.Errorf("v%d: %+v, want base offset %d", version, p, base)
			}
		}
	}
}

// refusal is a batch that is not taken.
type refusal struct {
	name     string
	settings []string
	version  int16
	batch    func(t testing.TB) []byte
	want     string
	says     string
	record   int32 // named in the answer; -1: none
}

func refusals() []refusal {
	raw := func(b []byte) func(testing.TB) []byte { return func(testing.TB) []byte { return b } }
	with := func(set func(*batch.Header)) func(testing.TB) []byte {
		return func(t testing.TB) []byte { return headed(t, set) }
	}
	changed := func(change func(b []byte) []byte) func(testing.TB) []byte {
		return func(t testing.TB) []byte { return change(oneBatch(t, batch.None, "a", "b")) }
	}
	timed := func(ms ...int64) func(testing.TB) []byte {
		return func(t testing.TB) []byte {
			b := batch.NewBuilder(batch.Gzip, 0)
			for _, ms := range ms {
				b.Append(batch.Record{Timestamp: ms, Key: []byte("k")})
			}
			return build(t, b)
		}
	}
	now := time.Now().UnixMilli()
	return []refusal{
		{"null records", nil, 9, raw(nil), "INVALID_RECORD", "no record batch", -1},
		{"empty records", nil, 9, raw([]byte{}), "INVALID_RECORD", "no record batch", -1},
		{"two batches", nil, 9, changed(func(b []byte) []byte { return append(b, b...) }), "INVALID_RECORD", "more than one", -1},
		{"cut short", nil, 9, changed(func(b []byte) []byte { return b[:len(b)-1] }), "CORRUPT_MESSAGE", "", -1},
		{"half a header", nil, 9, changed(func(b []byte) []byte { return b[:30] }), "CORRUPT_MESSAGE", "", -1},
		{"bit flip", nil, 9, changed(func(b []byte) []byte { b[len(b)-2] ^= 4; return b }), "CORRUPT_MESSAGE", "", -1},
		{"old format", nil, 9, changed(func(b []byte) []byte { b[16] = 1; return b }), "INVALID_RECORD", "", -1},
		{"wrong count", nil, 9, changed(func(b []byte) []byte { b[60]++; b[26]++; return reseal(b) }), "INVALID_RECORD", "", 2},
		{"unknown codec", nil, 9, changed(func(b []byte) []byte { b[22] |= 5; return reseal(b) }), "UNSUPPORTED_COMPRESSION_TYPE", "", -1},
		{"too large", []string{"max.message.bytes", "100"}, 9, changed(func(b []byte) []byte { return append(b, make([]byte, 100)...) }), "INVALID_RECORD", "", -1},
		{"larger than max.message.bytes", []string{"max.message.bytes", "70"}, 9, changed(func(b []byte) []byte { return b }), "MESSAGE_TOO_LARGE", "70", -1},
		{"a record too large", []string{"max.decompressed.message.bytes", "100", "siltstone.validation", "header"}, 9,
			func(t testing.TB) []byte { return oneBatch(t, batch.Gzip, "a", strings.Repeat("b", 200)) }, "INVALID_RECORD", "", 1},
		{"zstd before v7", nil, 6, func(t testing.TB) []byte { return oneBatch(t, batch.Zstd, "v") }, "UNSUPPORTED_COMPRESSION_TYPE", "", -1},
		{"control", nil, 9, func(t testing.TB) []byte {
			b := batch.NewBuilder(batch.None, 0)
			b.Header.Attributes, b.Header.ProducerID, b.Header.ProducerEpoch = 0x30, 5, 0
			b.Append(batch.Marker{}.Record(1))
			return build(t, b)
		}, "INVALID_RECORD", "control", -1},
		{"delete horizon", nil, 9, with(func(h *batch.Header) { h.Attributes = 0x40 }), "INVALID_RECORD", "delete horizon", -1},
		{"append time", nil, 9, with(func(h *batch.Header) { h.Attributes = 0x08 }), "INVALID_TIMESTAMP", "LogAppendTime", -1},
		{"transactional", nil, 9, with(func(h *batch.Header) { h.Attributes, h.ProducerID, h.ProducerEpoch, h.BaseSequence = 0x10, 5, 0, 0 }), "UNSUPPORTED_FOR_MESSAGE_FORMAT", "transactions", -1},
		{"a producer without an epoch", nil, 9, with(func(h *batch.Header) { h.ProducerID, h.ProducerEpoch, h.BaseSequence = 5, -1, 0 }), "INVALID_RECORD", "epoch -1", -1},
		{"a producer without a sequence", nil, 9, with(func(h *batch.Header) { h.ProducerID, h.ProducerEpoch, h.BaseSequence = 5, 0, -1 }), "INVALID_RECORD", "sequence -1", -1},
		{"no key on a compacted topic", []string{"cleanup.policy", "compact"}, 9, changed(func(b []byte) []byte { return b }), "INVALID_RECORD", "key", 0},
		{"too far ahead", []string{"message.timestamp.after.max.ms", "60000"}, 9, timed(now, now+120_000, now), "INVALID_TIMESTAMP", "", 1},
		{"too long ago", []string{"message.timestamp.before.max.ms", "60000"}, 9, timed(now, now, now-120_000), "INVALID_TIMESTAMP", "", 2},
	}
}

func TestProduceRefusals(t *testing.T) {
	f := start(t)
	c := f.dial()
	for i, tt := range refusals() {
		t.Run(tt.name, func(t *testing.T) {
			f.t, c.t = t, t
			topic := f.create("t"+string(rune('a'+i)), 2, tt.settings...)
			// Partition 1 gets what nobody minds: it goes its own way.
			good := batch.NewBuilder(batch.None, 0)
			good.Append(batch.Record{Key: []byte("k"), Timestamp: time.Now().UnixMilli()})
			q := produce(topic, -1, tt.batch(t), build(t, good))
			resp := ask[*kmsg.ProduceResponse](c, tt.version, q)
			p := resp.Topics[0].Partitions[0]
			if errorName(p.ErrorCode) != tt.want || p.BaseOffset != -1 || p.LogAppendTime != -1 {
				t.Errorf("%s, base offset %d, append time %d: want %s", errorName(p.ErrorCode), p.BaseOffset, p.LogAppendTime, tt.want)
			}
			if tt.version >= 8 && (p.ErrorMessage == nil || !strings.Contains(*p.ErrorMessage, tt.says)) {
				t.Errorf("it says %v, want %q", p.ErrorMessage, tt.says)
			}
			if tt.record >= 0 && (len(p.ErrorRecords) != 1 || p.ErrorRecords[0].RelativeOffset != tt.record) {
				t.Errorf("records named: %+v, want %d", p.ErrorRecords, tt.record)
			}
			if tt.record < 0 && len(p.ErrorRecords) != 0 {
				t.Errorf("records named: %+v", p.ErrorRecords)
			}
			if other := resp.Topics[0].Partitions[1]; tt.name != "larger than max.message.bytes" && (other.ErrorCode != 0 || other.BaseOffset != 0) {
				t.Errorf("the other partition: %s", errorName(other.ErrorCode))
			}
		})
	}
}

// TestProduceNowhere: what names no partition, or asks for acks that there are not.
func TestProduceNowhere(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	c := f.dial()
	one := oneBatch(t, batch.None, "v")
	unknown := *topic
	unknown.Name, unknown.ID = "nowhere", siltstone.TopicID{9}
	tests := []struct {
		name    string
		version int16
		q       *kmsg.ProduceRequest
		want    []string
	}{
		{"topic", 9, produce(&unknown, -1, one), []string{"UNKNOWN_TOPIC_OR_PARTITION"}},
		{"topic id", 13, produce(&unknown, -1, one), []string{"UNKNOWN_TOPIC_ID"}},
		{"partition", 9, produce(topic, 1, one, one), []string{"", "UNKNOWN_TOPIC_OR_PARTITION"}},
		{"acks", 9, produce(topic, 2, one), []string{"INVALID_REQUIRED_ACKS"}},
		{"acks -2", 3, produce(topic, -2, one), []string{"INVALID_REQUIRED_ACKS"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := ask[*kmsg.ProduceResponse](c, tt.version, tt.q)
			for i, want := range tt.want {
				if got := errorName(resp.Topics[0].Partitions[i].ErrorCode); got != want {
					t.Errorf("partition %d: %q, want %q", i, got, want)
				}
			}
		})
	}
}

// TestProduceAcksNone: no answer when all is well, a closed connection when not.
func TestProduceAcksNone(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	c := f.dial()
	q := produce(topic, 0, oneBatch(t, batch.None, "v"))
	q.SetVersion(9)
	c.send(q)
	ask[*kmsg.ApiVersionsResponse](c, 0, kmsg.NewPtrApiVersionsRequest()) // is the next answer
	q.Topics[0].Partitions[0].Partition = 5
	c.send(q)
	c.wantClosed()
	f.log.failWith(func(siltstone.TopicPartition) error { return siltstone.ErrNotLeader })
	q.Topics[0].Partitions[0].Partition = 0
	c = f.dial()
	c.send(q)
	c.wantClosed()
	waitFor(t, func() bool { return f.closedFor("no_reply") == 2 })
}

// TestProduceElsewhere: who does not lead says who does, to clients that can hear it.
func TestProduceElsewhere(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	f.log.failWith(func(siltstone.TopicPartition) error { return siltstone.ErrNotLeader })
	f.cluster.set(func(c *fakeCluster) { c.leaders[siltstone.TopicPartition{Topic: topic.ID}] = 1; c.epoch = 8 })
	c := f.dial()
	for version := int16(3); version <= 13; version++ {
		resp := ask[*kmsg.ProduceResponse](c, version, produce(topic, -1, oneBatch(t, batch.None, "v")))
		p := resp.Topics[0].Partitions[0]
		if errorName(p.ErrorCode) != "NOT_LEADER_FOR_PARTITION" {
			t.Errorf("v%d: %s", version, errorName(p.ErrorCode))
		}
		told := p.CurrentLeader.LeaderID == 1 && p.CurrentLeader.LeaderEpoch == 8 &&
			len(resp.Brokers) == 1 && resp.Brokers[0].NodeID == 1 && *resp.Brokers[0].Rack == "zone-b"
		untold := p.CurrentLeader.LeaderID == -1 && len(resp.Brokers) == 0
		if version >= 10 && !told || version < 10 && !untold {
			t.Errorf("v%d: %+v, %+v", version, p.CurrentLeader, resp.Brokers)
		}
	}
	f.log.failWith(func(siltstone.TopicPartition) error { return siltstone.ErrUnavailable })
	for version, want := range map[int16]string{3: "NOT_LEADER_FOR_PARTITION", 4: "KAFKA_STORAGE_ERROR"} {
		resp := ask[*kmsg.ProduceResponse](c, version, produce(topic, -1, oneBatch(t, batch.None, "v")))
		if got := errorName(resp.Topics[0].Partitions[0].ErrorCode); got != want {
			t.Errorf("unavailable, v%d: %s, want %s", version, got, want)
		}
	}
}

// stored is the batches that the log has of a topic's partition 0.
func (f *fixture) stored(id siltstone.TopicID) [][]byte {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.log.partition(siltstone.TopicPartition{Topic: id}).batches
}

// TestProduceRecompress: a topic with a codec of its own has all its batches
// in it, with the same records.
func TestProduceRecompress(t *testing.T) {
	f := start(t)
	c := f.dial()
	for _, own := range []string{"uncompressed", "gzip", "snappy", "lz4", "zstd"} {
		topic := f.create("in-"+own, 1, "compression.type", own)
		codecs := []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd}
		for _, codec := range codecs {
			wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, oneBatch(t, codec, "one", "two"))))
		}
		for i, b := range f.stored(topic.ID) {
			h, err := batch.ParseHeader(b)
			if err != nil || h.Attributes.Codec() != topic.Config().Codec {
				t.Errorf("%s from %s: %v, %v", own, codecs[i], h.Attributes.Codec(), err)
			}
			if got := values(t, b); got != "one,two" {
				t.Errorf("%s from %s: %s", own, codecs[i], got)
			}
		}
	}
}

func values(t testing.TB, b []byte) string {
	t.Helper()
	var all []string
	for r, err := range batch.Records(b, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(r.Value))
	}
	return strings.Join(all, ",")
}

// TestProduceMaxTimestamp: a wrong max timestamp is put right, as Kafka does.
func TestProduceMaxTimestamp(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	b := oneBatch(t, batch.None, "a", "b")
	binary.BigEndian.PutUint64(b[35:], 99)
	wantNoError(t, ask[*kmsg.ProduceResponse](f.dial(), 9, produce(topic, -1, reseal(b))))
	stored := f.stored(topic.ID)[0]
	if h, err := batch.Validate(stored, batch.Rules{Walk: true}); err != nil || h.MaxTimestamp != 2 {
		t.Errorf("max timestamp %d, %v", h.MaxTimestamp, err)
	}
}

// TestProduceHeaderOnly: where records are not looked at, a batch passes whose
// records do not match; a compacted topic looks all the same.
func TestProduceHeaderOnly(t *testing.T) {
	f := start(t)
	c := f.dial()
	bad := oneBatch(t, batch.Gzip, "a", "b")
	bad[60], bad[26] = bad[60]+1, bad[26]+1
	topic := f.create("plain", 1, "siltstone.validation", "header")
	wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, reseal(bytes.Clone(bad)))))
	topic = f.create("compacted", 1, "siltstone.validation", "header", "cleanup.policy", "compact")
	resp := ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, reseal(bad)))
	if got := errorName(resp.Topics[0].Partitions[0].ErrorCode); got != "INVALID_RECORD" {
		t.Errorf("%q, want INVALID_RECORD", got)
	}
}

// TestProduceTimedOut: the deadline is the request's.
func TestProduceTimedOut(t *testing.T) {
	var deadline atomic.Int64
	f := start(t, func(f *fixture, o *Options) { o.Log = deadlineLog{f.log, &deadline} })
	topic := f.create("t", 1)
	f.log.failWith(func(siltstone.TopicPartition) error { return siltstone.ErrTimedOut })
	q := produce(topic, -1, oneBatch(t, batch.None, "v"))
	q.TimeoutMillis = 1234
	before := time.Now()
	resp := ask[*kmsg.ProduceResponse](f.dial(), 9, q)
	if got := errorName(resp.Topics[0].Partitions[0].ErrorCode); got != "REQUEST_TIMED_OUT" {
		t.Errorf("%q, want REQUEST_TIMED_OUT", got)
	}
	if in := time.UnixMilli(deadline.Load()).Sub(before); in < 1200*time.Millisecond || in > 10*time.Second {
		t.Errorf("deadline in %v, want 1.234s", in)
	}
}
