package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// TestReport03AppendTime: on a topic with LogAppendTime the server's time is in
// the answer, on every record, and in every look-up by time; the client's is
// nowhere. (redpanda#29189)
func TestReport03AppendTime(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "append", "-p", fmt.Sprint(len(allCodecs)), "-c", "message.timestamp.type=LogAppendTime")
	s.cli(t, "", "topic", "create", "squeezed", "-p", fmt.Sprint(len(allCodecs)), "-c", "message.timestamp.type=LogAppendTime", "-c", "compression.type=lz4")
	topics := []string{"append", "squeezed"}
	clientTimes := [][]int64{{1}, {year3000, -7, 5}, {-1}, {math.MaxInt64}, {math.MinInt64, 9}}
	w := s.dial(t)
	logs := map[string][][]timedRecord{}
	for _, name := range topics {
		topic := w.topic(name)
		logs[name] = make([][]timedRecord, len(allCodecs))
		for p, codec := range allCodecs {
			for version := int16(3); version <= 13; version++ {
				if codec == batch.Zstd && version < 7 {
					continue // refused
				}
				b := stampedBatch{codec, clientTimes[int(version)%len(clientTimes)]}
				before := time.Now().UnixMilli()
				q := produceTo(topic, int32(p), b.build(t))
				q.Acks = []int16{1, -1}[version%2]
				got := ask[*kmsg.ProduceResponse](w, version, q).Topics[0].Partitions[0]
				after := time.Now().UnixMilli()
				if got.ErrorCode != 0 || got.LogAppendTime < before || got.LogAppendTime > after {
					t.Errorf("%s, %s, v%d: %s, time %d, want one of %d to %d", name, codec, version, errorName(got.ErrorCode), got.LogAppendTime, before, after)
				}
				for range b.times {
					logs[name][p] = append(logs[name][p], timedRecord{got.LogAppendTime, topic.Partitions[p].LeaderEpoch})
				}
			}
		}
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		w := s.dial(t)
		for _, name := range topics {
			topic := w.topic(name)
			s.wantTimes(t, name, 1, logs[name])
			byTime := []int64{0, 1, logs[name][0][0].ms, time.Now().UnixMilli() + 1, year3000}
			for _, log := range logs[name] {
				for _, r := range log[:3] {
					byTime = append(byTime, r.ms-1, r.ms, r.ms+1)
				}
			}
			which := func(i int) string { return fmt.Sprintf("%s, %s", name, allCodecs[i]) }
			for _, ms := range byTime {
				w.wantOffsets(topic, ms, 1, which, func(i int) timed { return atOrAfter(logs[name][i], ms) })
			}
			w.wantOffsets(topic, -3, 7, which, func(i int) timed { return latestTime(logs[name][i]) })
		}
	})
}

// wantTimes reads a topic with franz-go and with kcat, which must show the times
// and the type of time (0 CreateTime, 1 LogAppendTime) of each record.
func (s *server) wantTimes(t *testing.T, topic string, kind int8, logs [][]timedRecord) {
	t.Helper()
	kcat := map[int32]string{}
	for line := range strings.Lines(s.kcat(t, nil, atOnce("-C", "-J", "-t", topic, "-o", "beginning", "-e")...)) {
		var r struct {
			Partition  int32
			Offset, TS int64
			TSType     string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		kcat[r.Partition] += fmt.Sprintf("%d %d %s\n", r.Offset, r.TS, r.TSType)
	}
	kinds := []string{"create", "logappend"}
	for p, log := range logs {
		var want, got strings.Builder
		for i, r := range log {
			fmt.Fprintf(&want, "%d %d %s\n", i, r.ms, kinds[kind])
		}
		for _, r := range s.read(t, topic, int32(p), 0, len(log)) {
			fmt.Fprintf(&got, "%d %d %s\n", r.Offset, r.Timestamp.UnixMilli(), kinds[r.Attrs.TimestampType()])
		}
		if got.String() != want.String() {
			t.Errorf("%s-%d: franz-go reads\n%swant\n%s", topic, p, got.String(), want.String())
		}
		if kcat[int32(p)] != want.String() {
			t.Errorf("%s-%d: kcat reads\n%swant\n%s", topic, p, kcat[int32(p)], want.String())
		}
	}
}

// TestReport03Switch: the type of time is the topic's at the moment; what was
// written before keeps its own.
func TestReport03Switch(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	w := s.dial(t)
	topic := w.topic("t")
	var log []timedRecord
	write := func(appendTime bool, times ...int64) {
		t.Helper()
		got := w.produce(13, topic, 0, stampedBatch{batch.Gzip, times}.build(t))
		if got.ErrorCode != 0 || (got.LogAppendTime >= 0) != appendTime {
			t.Fatalf("%s, time %d", errorName(got.ErrorCode), got.LogAppendTime)
		}
		for _, ms := range times {
			if appendTime {
				ms = got.LogAppendTime
			}
			log = append(log, timedRecord{ms, topic.Partitions[0].LeaderEpoch})
		}
	}
	write(false, 7, 3)
	s.setConfig(t, "t", "message.timestamp.type", "LogAppendTime")
	write(true, 1, year3000)
	s.setConfig(t, "t", "message.timestamp.type", "CreateTime")
	write(false, 5)
	// What a client may not do leaves nothing behind, whatever the type is.
	marked := batch.NewBuilder(batch.None, 0)
	marked.Header.Attributes = batch.LogAppendTimeBit
	marked.Append(value("x"))
	b, err := marked.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, refused := range [][]byte{b, stampedBatch{0, []int64{year3000}}.build(t)} {
		if got := w.produce(13, topic, 0, refused); errorName(got.ErrorCode) != "INVALID_TIMESTAMP" || got.BaseOffset != -1 || got.LogAppendTime != -1 {
			t.Errorf("%q, offset %d, time %d", errorName(got.ErrorCode), got.BaseOffset, got.LogAppendTime)
		}
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		var kinds []int8
		for i, r := range s.read(t, "t", 0, 0, len(log)) {
			kinds = append(kinds, r.Attrs.TimestampType())
			if r.Timestamp.UnixMilli() != log[i].ms {
				t.Errorf("offset %d: time %d, want %d", i, r.Timestamp.UnixMilli(), log[i].ms)
			}
		}
		if want := []int8{0, 0, 1, 1, 0}; !slices.Equal(kinds, want) {
			t.Errorf("types of time %v, want %v", kinds, want)
		}
		w := s.dial(t)
		for _, ms := range []int64{0, 4, 6, 8, log[2].ms, log[2].ms + 1, year3000} {
			w.wantOffsets(w.topic("t"), ms, 1, func(int) string { return "t" }, func(int) timed { return atOrAfter(log, ms) })
		}
	})
}
