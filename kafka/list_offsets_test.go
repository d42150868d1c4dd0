package kafka

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

func listOffset(name string, partition int32, at int64, epoch int32) *kmsg.ListOffsetsRequest {
	q := kmsg.NewPtrListOffsetsRequest()
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = name
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, at, epoch
	t.Partitions = append(t.Partitions, p)
	q.Topics = append(q.Topics, t)
	return q
}

func TestListOffsets(t *testing.T) {
	f := start(t)
	topic := f.create("t", 2)
	c := f.dial()
	b := batch.NewBuilder(batch.Zstd, 0)
	for _, ms := range []int64{20, 40, 30} {
		b.Append(batch.Record{Timestamp: ms})
	}
	wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, build(t, b))))
	tests := []struct {
		name      string
		since     int16 // UNSUPPORTED_VERSION before
		partition int32
		at        int64
		epoch     int32
		offset    int64
		timestamp int64
		leader    int32 // epoch
		want      string
	}{
		{"latest", 1, 0, -1, -1, 3, -1, 7, ""},
		{"earliest", 1, 0, -2, -1, 0, -1, 7, ""},
		{"max timestamp", 7, 0, -3, -1, 1, 40, 7, ""},
		{"earliest local", 8, 0, -4, -1, 0, -1, 7, ""},
		{"latest tiered", 9, 0, -5, -1, -1, -1, -1, ""},
		{"earliest pending upload", 11, 0, -6, -1, -1, -1, -1, ""},
		{"nobody's time", 99, 0, -7, -1, -1, -1, -1, ""},
		{"exactly", 1, 0, 20, -1, 0, 20, 7, ""},
		{"between", 1, 0, 21, -1, 1, 40, 7, ""},
		{"zero", 1, 0, 0, -1, 0, 20, 7, ""},
		{"past the end", 1, 0, 41, -1, -1, -1, -1, ""},
		{"empty", 1, 1, 0, -1, -1, -1, -1, ""},
		{"empty latest", 1, 1, -1, -1, 0, -1, 7, ""},
		{"empty max timestamp", 7, 1, -3, -1, -1, -1, -1, ""},
		{"old epoch", 4, 0, -1, 6, -1, -1, -1, "FENCED_LEADER_EPOCH"},
		{"new epoch", 4, 0, -1, 8, -1, -1, -1, "UNKNOWN_LEADER_EPOCH"},
		{"partition", 1, 2, -1, -1, -1, -1, -1, "UNKNOWN_TOPIC_OR_PARTITION"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for version := int16(1); version <= 11; version++ {
				if tt.epoch >= 0 && version < 4 {
					continue // has no epoch
				}
				p := ask[*kmsg.ListOffsetsResponse](c, version, listOffset("t", tt.partition, tt.at, tt.epoch)).Topics[0].Partitions[0]
				want, offset, timestamp, leader := tt.want, tt.offset, tt.timestamp, tt.leader
				if version < tt.since {
					want, offset, timestamp, leader = "UNSUPPORTED_VERSION", -1, -1, -1
				}
				if version < 4 {
					leader = -1
				}
				if errorName(p.ErrorCode) != want || p.Offset != offset || p.Timestamp != timestamp || p.LeaderEpoch != leader {
					t.Errorf("v%d: %q, offset %d, time %d, epoch %d", version, errorName(p.ErrorCode), p.Offset, p.Timestamp, p.LeaderEpoch)
				}
			}
		})
	}
	if got := ask[*kmsg.ListOffsetsResponse](c, 4, listOffset("nowhere", 0, -1, -1)).Topics[0].Partitions[0]; errorName(got.ErrorCode) != "UNKNOWN_TOPIC_OR_PARTITION" {
		t.Errorf("no such topic: %s", errorName(got.ErrorCode))
	}
}

// TestListOffsetsTimeout: the timeout of v10 ends a search; none is none.
func TestListOffsetsTimeout(t *testing.T) {
	f := start(t, func(f *fixture, o *Options) { o.Log = searchLog{f.log} })
	f.create("t", 1)
	for ms, want := range map[int32]string{0: "", 1: "REQUEST_TIMED_OUT"} {
		q := listOffset("t", 0, 5, -1)
		q.TimeoutMillis = ms
		p := ask[*kmsg.ListOffsetsResponse](f.dial(), 10, q).Topics[0].Partitions[0]
		if errorName(p.ErrorCode) != want {
			t.Errorf("timeout %d ms: %q, want %q", ms, errorName(p.ErrorCode), want)
		}
	}
}

// searchLog searches as long as it is let.
type searchLog struct{ *fakeLog }

func (l searchLog) OffsetForTime(ctx context.Context, tp siltstone.TopicPartition, ms int64, epoch siltstone.Epoch, i siltstone.Isolation) (siltstone.TimedOffset, error) {
	if _, bounded := ctx.Deadline(); bounded {
		<-ctx.Done()
		return siltstone.TimedOffset{}, ctx.Err()
	}
	return l.fakeLog.OffsetForTime(ctx, tp, ms, epoch, i)
}

// TestListOffsetsIsolation: from v2 on the level reaches the log.
func TestListOffsetsIsolation(t *testing.T) {
	var seen atomic.Int32
	f := start(t, func(f *fixture, o *Options) { o.Log = isolationLog{f.log, &seen} })
	f.create("t", 1)
	q := listOffset("t", 0, -1, -1)
	q.IsolationLevel = 1
	ask[*kmsg.ListOffsetsResponse](f.dial(), 2, q)
	if siltstone.Isolation(seen.Load()) != siltstone.ReadCommitted {
		t.Error("read_uncommitted, want read_committed")
	}
}

func TestOffsetForLeaderEpoch(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	c := f.dial()
	wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, oneBatch(t, batch.None, "a", "b"))))
	tests := []struct {
		name                string
		topic               string
		epoch, current, got int32
		end                 int64
		want                string
	}{
		{"present", "t", 7, 7, 7, 2, ""},
		{"unchecked", "t", 7, -1, 7, 2, ""},
		{"before the first", "t", 3, 7, -1, -1, ""},
		{"fenced", "t", 7, 6, -1, -1, "FENCED_LEADER_EPOCH"},
		{"unknown", "t", 7, 8, -1, -1, "UNKNOWN_LEADER_EPOCH"},
		{"topic", "nowhere", 7, 7, -1, -1, "UNKNOWN_TOPIC_OR_PARTITION"},
	}
	for _, tt := range tests {
		for version := int16(2); version <= 4; version++ {
			q := kmsg.NewPtrOffsetForLeaderEpochRequest()
			rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
			rt.Topic = tt.topic
			rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			rp.LeaderEpoch, rp.CurrentLeaderEpoch = tt.epoch, tt.current
			rt.Partitions = append(rt.Partitions, rp)
			q.Topics = append(q.Topics, rt)
			p := ask[*kmsg.OffsetForLeaderEpochResponse](c, version, q).Topics[0].Partitions[0]
			if errorName(p.ErrorCode) != tt.want || p.LeaderEpoch != tt.got || p.EndOffset != tt.end {
				t.Errorf("%s, v%d: %+v", tt.name, version, p)
			}
		}
	}
}
