package agent

import (
	"context"
	"testing"

	"github.com/siltstone-io/siltstone"
)

// TestEpochsOfEnds: the latest offset has the leader's epoch, as Kafka's does
// (a reader that starts there has seen nothing older); the earliest that of its
// record, or the leader's where there is none.
func TestEpochsOfEnds(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		id := a.create("t", 2)
		written, empty := siltstone.TopicPartition{Topic: id}, siltstone.TopicPartition{Topic: id, Partition: 1}
		if _, err := a.produce(written, -1, aBatch(t, 3, 1, "x")); err != nil {
			t.Fatal(err)
		}
		first, _ := a.Leads(written)
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		b := r.start()
		second, _ := b.Leads(written)
		if second <= first {
			t.Fatalf("epoch %d follows %d", second, first)
		}
		for _, tt := range []struct {
			tp   siltstone.TopicPartition
			at   int64
			want siltstone.TimedOffset
		}{
			{written, siltstone.TimeLatest, siltstone.TimedOffset{Offset: 3, Timestamp: -1, Epoch: second}},
			{written, siltstone.TimeEarliest, siltstone.TimedOffset{Offset: 0, Timestamp: -1, Epoch: first}},
			{written, 1, siltstone.TimedOffset{Offset: 0, Timestamp: 1, Epoch: first}},
			{empty, siltstone.TimeLatest, siltstone.TimedOffset{Offset: 0, Timestamp: -1, Epoch: second}},
			{empty, siltstone.TimeEarliest, siltstone.TimedOffset{Offset: 0, Timestamp: -1, Epoch: second}},
		} {
			got, err := b.OffsetForTime(context.Background(), tt.tp, tt.at, -1, siltstone.ReadUncommitted)
			if err != nil || got != tt.want {
				t.Errorf("%s at %d: %+v %v, want %+v", tt.tp, tt.at, got, err, tt.want)
			}
		}
	})
}
