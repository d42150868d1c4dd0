package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// readerAttacks are of those who ask and do not read.
var readerAttacks = []attack{
	{"thousands of requests, no answer read", func(t *testing.T, a *attacker) {
		meta := kmsg.NewPtrMetadataRequest()
		meta.SetVersion(12)
		var frames []byte
		for i := range int32(2000) {
			frames = formatter.AppendRequest(frames, meta, i)
		}
		a.every(100*time.Millisecond, func(int) {
			if conn, err := a.open(); err == nil {
				a.running.Go(func() { _, _ = conn.Write(frames) }) // until it is closed
			}
		})
	}},
	{"large fetches, nothing read", func(t *testing.T, a *attacker) {
		w := a.server.dial(t)
		topic := a.server.large(t, w)
		a.every(20*time.Millisecond, func(i int) { // from everywhere, so that little is shared
			q := fetchOf(topic, fetchFrom(0, int64(i%300), math.MaxInt32))
			q.MaxBytes, q.MaxWaitMillis, q.MinBytes = math.MaxInt32, 10_000, 1
			q.SetVersion(13)
			frames := formatter.AppendRequest(nil, q, 1)
			if conn, err := a.open(); err == nil {
				_, _ = conn.Write(append(frames, frames...))
			}
		})
	}},
	{"times in what is large when decompressed", func(t *testing.T, a *attacker) {
		w := a.server.dial(t)
		a.server.topicOnce(t, "times")
		topic := w.topic("times")
		zeros := strings.Repeat("\x00", 30_000_000)
		w.mustProduce(topic, 0, batchOf(t, batch.Zstd, batch.Record{Timestamp: 1, Value: []byte(zeros)}))
		q := kmsg.NewPtrListOffsetsRequest()
		q.ReplicaID = -1
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp, p.CurrentLeaderEpoch = 1, -1
		q.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: *topic.Topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
		q.SetVersion(5)
		conns := a.many(t, 20, nil)
		a.every(500*time.Millisecond, func(i int) {
			_, _ = conns[i%len(conns)].Write(formatter.AppendRequest(nil, q, 1))
		})
	}},
}

// large is a topic of 300 MB, which is far more than there is memory.
func (s *server) large(t *testing.T, w *wire) kmsg.MetadataResponseTopic {
	t.Helper()
	if all := w.metadata("large").Topics[0]; all.ErrorCode == 0 {
		return all
	}
	s.cli(t, "", "topic", "create", "large")
	topic := w.topic("large")
	for i := range 300 {
		w.mustProduce(topic, 0, batchOf(t, batch.None, value(fmt.Sprint(i)+strings.Repeat("x", 1_000_000))))
	}
	return topic
}
