package agent

import (
	"context"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
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

// timed makes a batch of a record for each time.
func timed(t *testing.T, codec batch.Codec, times ...int64) []byte {
	t.Helper()
	b := batch.NewBuilder(codec, 0)
	for _, ms := range times {
		b.Append(batch.Record{Timestamp: ms, Value: []byte("v")})
	}
	raw, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestLargestTime: of what DeleteRecords has left, wherever that cuts: between
// objects, between the batches of one, within a batch.
func TestLargestTime(t *testing.T) {
	batches := [][]int64{{9, 3}, {2, 8, 8, 7}, {6}, {1, 7}, {7}, {5, 0}}
	for _, together := range []bool{true, false} { // in one object, or each in its own
		bubble(t, func(t *testing.T, r *rig) {
			a := r.start()
			tp := siltstone.TopicPartition{Topic: a.create("t", 1)}
			var times []int64
			for i, b := range batches {
				times = append(times, b...)
				acks := int16(-1)
				if together && i < len(batches)-1 {
					acks = 1
				}
				if _, err := a.produce(tp, acks, timed(t, []batch.Codec{batch.None, batch.Zstd}[i%2], b...)); err != nil {
					t.Fatal(err)
				}
			}
			epoch, _ := a.Leads(tp)
			for start := range siltstone.Offset(len(times) + 1) {
				if _, err := a.trim(tp, start); err != nil {
					t.Fatal(err)
				}
				want := siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}
				for i, ms := range times[start:] {
					if ms > want.Timestamp {
						want = siltstone.TimedOffset{Offset: start + siltstone.Offset(i), Timestamp: ms, Epoch: epoch}
					}
				}
				got, err := a.OffsetForTime(t.Context(), tp, siltstone.TimeMaxTimestamp, -1, siltstone.ReadUncommitted)
				if err != nil || got != want {
					t.Errorf("together %v, from %d on: %+v %v, want %+v", together, start, got, err, want)
				}
			}
		})
	}
}
