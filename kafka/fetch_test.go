package kafka

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// fetchOf asks for partitions of a topic at once, by name and id, for every version.
func fetchOf(id siltstone.TopicID, name string, partitions ...int32) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.MaxBytes, q.MinBytes = 10<<20, 0
	q.Topics = fetchTopics(name, id, partitions...)
	return q
}

func TestFetchVersions(t *testing.T) {
	f := start(t)
	topic := f.create("t", 2)
	c := f.dial()
	wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, oneBatch(t, batch.LZ4, "a", "b"))))
	wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, oneBatch(t, batch.None, "c"))))
	want := bytes.Join(f.stored(topic.ID), nil)
	for version := int16(4); version <= 18; version++ {
		q := fetchOf(topic.ID, topic.Name, 0, 1)
		q.IsolationLevel = int8(version % 2)
		resp := ask[*kmsg.FetchResponse](c, version, q)
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 || resp.ErrorCode != 0 {
			t.Fatalf("v%d: %+v", version, resp)
		}
		rt := resp.Topics[0]
		if version < 13 && rt.Topic != "t" || version >= 13 && rt.TopicID != topic.ID {
			t.Errorf("v%d: topic %q, id %x", version, rt.Topic, rt.TopicID)
		}
		p := rt.Partitions[0]
		if p.ErrorCode != 0 || !bytes.Equal(p.RecordBatches, want) || p.HighWatermark != 3 || p.LastStableOffset != 3 {
			t.Errorf("v%d: %s, %d bytes, high watermark %d", version, errorName(p.ErrorCode), len(p.RecordBatches), p.HighWatermark)
		}
		if empty := rt.Partitions[1]; empty.ErrorCode != 0 || empty.RecordBatches == nil || len(empty.RecordBatches) != 0 || empty.HighWatermark != 0 {
			t.Errorf("v%d: empty partition: %+v", version, empty)
		}
	}
	waitFor(t, func() bool {
		f.log.mu.Lock()
		defer f.log.mu.Unlock()
		return f.log.released == 15
	})
}

// TestFetchErrors: each partition has its own, and the others are served.
func TestFetchErrors(t *testing.T) {
	f := start(t)
	good := f.create("good", 1)
	c := f.dial()
	wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(good, -1, oneBatch(t, batch.None, "a"))))
	with := func(set func(*kmsg.FetchRequestTopicPartition)) []kmsg.FetchRequestTopic {
		topics := fetchTopics("good", good.ID, 0)
		set(&topics[0].Partitions[0])
		return topics
	}
	tests := []struct {
		name    string
		version int16
		topics  []kmsg.FetchRequestTopic
		want    string
	}{
		{"topic", 4, fetchTopics("bad", siltstone.TopicID{}, 0), "UNKNOWN_TOPIC_OR_PARTITION"},
		{"topic id", 13, fetchTopics("", siltstone.TopicID{5}, 0), "UNKNOWN_TOPIC_ID"},
		{"partition", 12, fetchTopics("good", good.ID, 1), "UNKNOWN_TOPIC_OR_PARTITION"},
		{"negative partition", 13, fetchTopics("good", good.ID, -1), "UNKNOWN_TOPIC_OR_PARTITION"},
		{"offset", 12, with(func(p *kmsg.FetchRequestTopicPartition) { p.FetchOffset = 2 }), "OFFSET_OUT_OF_RANGE"},
		{"old epoch", 12, with(func(p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 6 }), "FENCED_LEADER_EPOCH"},
		{"new epoch", 12, with(func(p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 8 }), "UNKNOWN_LEADER_EPOCH"},
		{"unchecked epoch", 8, with(func(p *kmsg.FetchRequestTopicPartition) { p.CurrentLeaderEpoch = 8 }), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := kmsg.NewPtrFetchRequest()
			q.MaxBytes = 1 << 20
			q.Topics = append(tt.topics, fetchTopics("good", good.ID, 0)...)
			resp := ask[*kmsg.FetchResponse](c, tt.version, q)
			var all []kmsg.FetchResponseTopicPartition
			for _, rt := range resp.Topics {
				all = append(all, rt.Partitions...)
			}
			if len(all) != 2 || errorName(all[0].ErrorCode) != tt.want {
				t.Fatalf("%+v, want %s", all, tt.want)
			}
			if tt.want != "" && (all[0].HighWatermark != -1 || len(all[0].RecordBatches) != 0) {
				t.Errorf("an error with high watermark %d", all[0].HighWatermark)
			}
			if all[1].ErrorCode != 0 || all[1].HighWatermark != 1 {
				t.Errorf("the good one: %+v", all[1])
			}
		})
	}
}

// TestFetchElsewhere: a reader of what is led elsewhere is told where.
func TestFetchElsewhere(t *testing.T) {
	f := start(t)
	topic := f.create("t", 2)
	f.log.failWith(func(siltstone.TopicPartition) error { return siltstone.ErrNotLeader })
	f.cluster.set(func(c *fakeCluster) {
		c.leaders[siltstone.TopicPartition{Topic: topic.ID}] = 1
		c.leaders[siltstone.TopicPartition{Topic: topic.ID, Partition: 1}] = -1
	})
	c := f.dial()
	for version := int16(4); version <= 18; version++ {
		resp := ask[*kmsg.FetchResponse](c, version, fetchOf(topic.ID, "t", 0, 1))
		p := resp.Topics[0].Partitions
		if errorName(p[0].ErrorCode) != "NOT_LEADER_FOR_PARTITION" || p[1].CurrentLeader.LeaderID != -1 {
			t.Errorf("v%d: %+v", version, p)
		}
		if leader := p[0].CurrentLeader; version >= 12 && (leader.LeaderID != 1 || leader.LeaderEpoch != 7) || version < 12 && leader.LeaderID != -1 {
			t.Errorf("v%d: leader %+v", version, leader)
		}
		if version >= 16 && (len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 1) || version < 16 && len(resp.Brokers) != 0 {
			t.Errorf("v%d: nodes %+v", version, resp.Brokers)
		}
	}
	f.log.failWith(func(siltstone.TopicPartition) error { return siltstone.ErrUnavailable })
	for version, want := range map[int16]string{5: "NOT_LEADER_FOR_PARTITION", 6: "KAFKA_STORAGE_ERROR"} {
		resp := ask[*kmsg.FetchResponse](c, version, fetchOf(topic.ID, "t", 0))
		if got := errorName(resp.Topics[0].Partitions[0].ErrorCode); got != want {
			t.Errorf("unavailable, v%d: %s, want %s", version, got, want)
		}
	}
}

// TestFetchDiverged: a reader of an epoch that was cut off learns where.
func TestFetchDiverged(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	q := fetchOf(topic.ID, "t", 0)
	q.Topics[0].Partitions[0].LastFetchedEpoch = 9
	p := ask[*kmsg.FetchResponse](f.dial(), 12, q).Topics[0].Partitions[0]
	if p.ErrorCode != 0 || p.DivergingEpoch.Epoch != 7 || p.DivergingEpoch.EndOffset != 0 {
		t.Errorf("%+v", p)
	}
}

// TestFetchLimits: limits reach the log, each clamped to what there is.
func TestFetchLimits(t *testing.T) {
	f := start(t, limits(func(l *Limits) { l.FetchBytes = 5000 }))
	topic := f.create("t", 1)
	c := f.dial()
	tests := []struct {
		min, max, part             int32
		wantMin, wantMax, wantPart int
	}{
		{0, 100, 50, 0, 100, 50},
		{0, 1 << 30, 1 << 20, 0, 5000, 1 << 20},
		{-5, -5, -5, 0, 0, 0},
		{0, 0, 0, 0, 0, 0},
	}
	for _, tt := range tests {
		q := fetchOf(topic.ID, "t", 0)
		q.MinBytes, q.MaxBytes, q.Topics[0].Partitions[0].PartitionMaxBytes = tt.min, tt.max, tt.part
		ask[*kmsg.FetchResponse](c, 12, q)
		got := f.log.lastFetch()
		if got.MinBytes != tt.wantMin || got.MaxBytes != tt.wantMax || got.Parts[0].MaxBytes != tt.wantPart {
			t.Errorf("%+v reached the log as %+v", tt, got)
		}
	}
}

// TestFetchWaits: an answer without data waits for MaxWait, and for data no
// longer than until it comes.
func TestFetchWaits(t *testing.T) {
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		topic := f.create("t", 1)
		reader, writer := p.dial(t), p.dial(t)
		q := fetchOf(topic.ID, "t", 0)
		q.MinBytes, q.MaxWaitMillis = 1, 700
		begin := time.Now()
		resp := ask[*kmsg.FetchResponse](reader, 12, q)
		if took := time.Since(begin); took != 700*time.Millisecond || len(resp.Topics[0].Partitions[0].RecordBatches) != 0 {
			t.Errorf("%d bytes after %v", len(resp.Topics[0].Partitions[0].RecordBatches), took)
		}
		begin = time.Now()
		reader.send(q)
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		wantNoError(t, ask[*kmsg.ProduceResponse](writer, 9, produce(topic, -1, oneBatch(t, batch.None, "v"))))
		resp = reader.receive(q, reader.last).(*kmsg.FetchResponse)
		if took := time.Since(begin); took != 100*time.Millisecond || len(resp.Topics[0].Partitions[0].RecordBatches) == 0 {
			t.Errorf("%d bytes after %v", len(resp.Topics[0].Partitions[0].RecordBatches), took)
		}
	})
}

// TestFetchHoldsLittle: a waiting fetch gives its frame back and counts for
// less than while it was decoded.
func TestFetchHoldsLittle(t *testing.T) {
	inBubble(t, asUsual, func(t *testing.T, f *fixture, p *pipes) {
		topic := f.create("t", 1)
		c := p.dial(t)
		q := fetchOf(topic.ID, "t", 0)
		q.MinBytes, q.MaxWaitMillis = 1, 60_000
		q.SetVersion(12)
		size := float64(len(formatter.AppendRequest(nil, q, 1)) - 4)
		c.send(q)
		synctest.Wait()
		if held := metric(f.server.metrics.held); held != fetchFactor*size {
			t.Errorf("%v bytes are held, want %v", held, fetchFactor*size)
		}
		c.conn.Close()
		synctest.Wait()
		if held := metric(f.server.metrics.held); held != 0 {
			t.Errorf("%v bytes are still held", held)
		}
	})
}
