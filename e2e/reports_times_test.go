package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// year3000 is a time that no clock of ours shows, in ms.
var year3000 = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// timeline is what is written to one partition: the times of each batch.
type timeline struct {
	name    string
	batches []stampedBatch
}

type stampedBatch struct {
	codec batch.Codec
	times []int64
}

func (b stampedBatch) build(t *testing.T) []byte {
	t.Helper()
	var records []batch.Record
	for _, ms := range b.times {
		records = append(records, batch.Record{Timestamp: ms, Value: fmt.Append(nil, ms)})
	}
	return batchOf(t, b.codec, records...)
}

func timelines() []timeline {
	all := []timeline{
		{"one by one", []stampedBatch{{0, []int64{2}}, {0, []int64{4}}, {0, []int64{6}}, {0, []int64{8}}}},
		{"empty", nil},
		{"out of order", []stampedBatch{{batch.Zstd, []int64{8, 2}}, {batch.Gzip, []int64{6, 4, 9}}, {0, []int64{1}}}},
		{"equal", []stampedBatch{{batch.LZ4, []int64{5, 5}}, {0, []int64{5}}, {batch.Snappy, []int64{5, 5, 7, 7}}, {0, []int64{7}}}},
		{"zero", []stampedBatch{{0, []int64{0}}, {batch.Gzip, []int64{0, 3}}}},
		{"negative", []stampedBatch{{batch.Gzip, []int64{-1000, -1}}, {0, []int64{3, -7}}}},
		{"without a time", []stampedBatch{{batch.LZ4, []int64{-1, -1}}}},
		{"far future", []stampedBatch{{0, []int64{2}}, {batch.Zstd, []int64{3, year3000, 4}}, {0, []int64{5}}}},
		{"the largest", []stampedBatch{{batch.Zstd, []int64{1, math.MaxInt64}}, {0, []int64{6}}}},
	}
	for _, c := range allCodecs {
		all = append(all, timeline{"one batch, " + c.String(), []stampedBatch{{c, []int64{2, 4, 6, 8}}}})
	}
	random := rand.New(rand.NewPCG(3, 34))
	varied := timeline{name: "varied"}
	for range 60 {
		b := stampedBatch{codec: allCodecs[random.IntN(len(allCodecs))]}
		for range 1 + random.IntN(5) {
			b.times = append(b.times, random.Int64N(40))
		}
		varied.batches = append(varied.batches, b)
	}
	return append(all, varied)
}

// timedRecord is a record as ListOffsets must know it.
type timedRecord struct {
	ms    int64
	epoch int32
}

// timed is an answer of ListOffsets.
type timed struct {
	offset, ms int64
	epoch      int32
}

var nothing = timed{-1, -1, -1}

// atOrAfter is the rule: the smallest offset whose time is ms or later.
func atOrAfter(log []timedRecord, ms int64) timed {
	for i, r := range log {
		if r.ms >= ms {
			return timed{int64(i), r.ms, r.epoch}
		}
	}
	return nothing
}

// latestTime is the first record with the largest time, of those that have one.
func latestTime(log []timedRecord) timed {
	most := int64(-1)
	for _, r := range log {
		most = max(most, r.ms)
	}
	if most < 0 {
		return nothing
	}
	return atOrAfter(log, most)
}

// specialTimes are what ListOffsets asks for by a negative time, since which
// version, and what a log answers.
func specialTimes(leader int32) []struct {
	ms    int64
	since int16
	want  func([]timedRecord) timed
} {
	end := func(log []timedRecord) timed { return timed{int64(len(log)), -1, leader} }
	begin := func(log []timedRecord) timed {
		if len(log) == 0 {
			return timed{0, -1, leader}
		}
		return timed{0, -1, log[0].epoch}
	}
	none := func([]timedRecord) timed { return nothing }
	return []struct {
		ms    int64
		since int16
		want  func([]timedRecord) timed
	}{
		{-1, 1, end}, {-2, 1, begin}, {-3, 7, latestTime}, {-4, 8, begin}, {-5, 9, none}, {-6, 11, none},
		{-7, math.MaxInt16, none}, {math.MinInt64, math.MaxInt16, none},
	}
}

// listOffsets asks all partitions of a topic at a time.
func (w *wire) listOffsets(version int16, of kmsg.MetadataResponseTopic, ms int64, epoch int32) []kmsg.ListOffsetsResponseTopicPartition {
	w.t.Helper()
	q := kmsg.NewPtrListOffsetsRequest()
	q.IsolationLevel = int8(version % 2)
	if version == newestListOffsets {
		q.TimeoutMillis = 0 // as of a client that leaves it out
	}
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = *of.Topic
	for i := range of.Partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp, p.CurrentLeaderEpoch = int32(i), ms, epoch
		t.Partitions = append(t.Partitions, p)
	}
	q.Topics = append(q.Topics, t)
	return ask[*kmsg.ListOffsetsResponse](w, version, q).Topics[0].Partitions
}

const (
	oldestListOffsets = 1
	newestListOffsets = 11
)

// wantOffsets holds what every version answers for a time against the rule.
func (w *wire) wantOffsets(of kmsg.MetadataResponseTopic, ms int64, since int16, name func(int) string, want func(partition int) timed) {
	w.t.Helper()
	for version := int16(oldestListOffsets); version <= newestListOffsets; version++ {
		for i, p := range w.listOffsets(version, of, ms, -1) {
			expected, wrong := want(i), ""
			if version < since {
				expected, wrong = nothing, "UNSUPPORTED_VERSION"
			}
			if version < 4 {
				expected.epoch = -1 // has none
			}
			if got := (timed{p.Offset, p.Timestamp, p.LeaderEpoch}); got != expected || errorName(p.ErrorCode) != wrong {
				w.t.Errorf("%s, time %d, v%d: %+v %s, want %+v %s", name(i), ms, version, got, errorName(p.ErrorCode), expected, wrong)
			}
		}
	}
}

// TestReport01Times: ListOffsets gives the first record at or after a time, and
// where there is none -1 and -1, wherever the records are, and whatever stands
// before them. (streamnative/kop#334, redpanda#4308, redpanda#4473)
func TestReport01Times(t *testing.T) {
	s := start(t, t.TempDir())
	all := timelines()
	s.cli(t, "", "topic", "create", "t", "-p", fmt.Sprint(len(all)), "-c", "message.timestamp.after.max.ms="+fmt.Sprint(math.MaxInt64))
	logs := make([][]timedRecord, len(all))
	name := func(i int) string { return all[i].name }
	write := func(w *wire, topic kmsg.MetadataResponseTopic, partition int, batches []stampedBatch) {
		var built [][]byte
		for _, b := range batches {
			built = append(built, b.build(w.t))
			for _, ms := range b.times {
				logs[partition] = append(logs[partition], timedRecord{ms, topic.Partitions[partition].LeaderEpoch})
			}
		}
		w.mustProduce(topic, int32(partition), built...)
	}
	times := []int64{0, 10, year3000 - 1, year3000, year3000 + 1, math.MaxInt64}
	for ms := int64(1); ms < 10; ms++ {
		times = append(times, ms)
	}
	w := s.dial(t)
	for i := range all {
		write(w, w.topic("t"), i, all[i].batches)
	}
	lastEpoch := int32(-1)
	inEveryState(t, s, func(t *testing.T, s *server) {
		w := s.dial(t)
		topic := w.topic("t")
		epoch := topic.Partitions[0].LeaderEpoch
		if epoch <= lastEpoch {
			t.Fatalf("leader epoch %d follows %d", epoch, lastEpoch)
		}
		if lastEpoch >= 0 { // what comes from objects, then something of this epoch in memory
			for _, special := range specialTimes(epoch)[:3] {
				w.wantOffsets(topic, special.ms, special.since, name, func(i int) timed { return special.want(logs[i]) })
			}
			for i := range all {
				if all[i].batches != nil {
					write(w, topic, i, []stampedBatch{{batch.Gzip, []int64{5, 1}}, {0, []int64{9}}})
				}
			}
		}
		lastEpoch = epoch
		for _, ms := range times {
			w.wantOffsets(topic, ms, 1, name, func(i int) timed { return atOrAfter(logs[i], ms) })
		}
		for _, special := range specialTimes(epoch) {
			w.wantOffsets(topic, special.ms, special.since, name, func(i int) timed { return special.want(logs[i]) })
		}
		for version := int16(4); version <= newestListOffsets; version++ {
			for current, want := range map[int32]string{epoch - 1: "FENCED_LEADER_EPOCH", epoch: "", epoch + 1: "UNKNOWN_LEADER_EPOCH"} {
				for _, ms := range []int64{-1, -2, 5} {
					if p := w.listOffsets(version, topic, ms, current)[0]; errorName(p.ErrorCode) != want {
						t.Errorf("v%d, time %d, leader epoch %d of %d: %q, want %q", version, ms, current, epoch, errorName(p.ErrorCode), want)
					}
				}
			}
		}
	})
}

// TestReport01Clients is the report itself, as clients show it.
func TestReport01Clients(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	w := s.dial(t)
	topic := w.topic("t")
	w.mustProduce(topic, 0, stampedBatch{batch.Zstd, []int64{2, 4}}.build(t), stampedBatch{0, []int64{6}}.build(t), stampedBatch{0, []int64{8}}.build(t))
	inEveryState(t, s, func(t *testing.T, s *server) {
		admin := s.admin(t)
		defer admin.Close()
		const end = -1
		for i, want := range []int64{0, 1, 1, 2, 2, 3, 3, end} {
			ms := int64(2 + i)
			if got, want := s.kcat(t, nil, "-Q", "-t", fmt.Sprintf("t:0:%d", ms)), fmt.Sprintf("t [0] offset %d\n", want); got != want {
				t.Errorf("kcat asks for %d: %q, want %q", ms, got, want)
			}
			listed, err := admin.ListOffsetsAfterMilli(t.Context(), ms, "t")
			if err != nil {
				t.Fatal(err)
			}
			at, _ := listed.Lookup("t", 0)
			wanted := []int64{want, 2 * (want + 1)}
			if want == end {
				wanted = []int64{4, -1} // where a reader would go on from
			}
			if got := []int64{at.Offset, at.Timestamp}; at.Err != nil || !slices.Equal(got, wanted) {
				t.Errorf("franz-go asks for %d: %v %v, want %v", ms, got, at.Err, wanted)
			}
		}
		for from, want := range map[string]string{"s@0": "2,4,6,8,", "s@3": "4,6,8,", "s@8": "8,"} {
			if got := s.kcat(t, nil, atOnce("-C", "-t", "t", "-o", from, "-e", "-D,")...); got != want {
				t.Errorf("kcat reads from %s: %q, want %q", from, got, want)
			}
		}
		if got := s.kcat(t, nil, "-C", "-t", "t", "-o", "s@3", "-o", "e@7", "-e", "-D,"); got != "4,6," {
			t.Errorf("kcat reads from 3 to 7: %q", got)
		}
	})
}

// atOnce makes kcat notice the end of a partition sooner than in half a second.
func atOnce(args ...string) []string { return append(args, "-X", "fetch.wait.max.ms=10") }
