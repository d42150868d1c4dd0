package kafka

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// deleteBefore asks for a topic's partitions from 0 on to begin at offsets.
func deleteBefore(name string, offsets ...int64) kmsg.DeleteRecordsRequestTopic {
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = name
	for i, off := range offsets {
		p := kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Partition, p.Offset = int32(i), off
		t.Partitions = append(t.Partitions, p)
	}
	return t
}

func deleteRecords(c *client, version int16, topics ...kmsg.DeleteRecordsRequestTopic) (got []string) {
	q := kmsg.NewPtrDeleteRecordsRequest()
	q.Topics, q.TimeoutMillis = topics, 10_000
	for _, rt := range ask[*kmsg.DeleteRecordsResponse](c, version, q).Topics {
		for _, rp := range rt.Partitions {
			got = append(got, fmt.Sprintf("%s-%d %d %s", rt.Topic, rp.Partition, rp.LowWatermark, errorName(rp.ErrorCode)))
		}
	}
	return got
}

func TestDeleteRecords(t *testing.T) {
	f := start(t)
	c := f.dial()
	for version := range int16(3) {
		name := fmt.Sprint("t", version)
		topic := f.create(name, 4)
		f.create("compact"+name, 1, "cleanup.policy", "compact")
		f.create("both"+name, 1, "cleanup.policy", "compact,delete")
		b := oneBatch(t, batch.None, "a", "b", "c")
		wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(topic, -1, b, b, b, b)))
		got := deleteRecords(c, version,
			deleteBefore(name, 2, -1, 4, -2, 0), deleteBefore("compact"+name, 0), deleteBefore("both"+name, 0), deleteBefore("nowhere", 0))
		want := []string{
			name + "-0 2 ", name + "-1 3 ", name + "-2 -1 OFFSET_OUT_OF_RANGE", name + "-3 -1 OFFSET_OUT_OF_RANGE",
			name + "-4 -1 UNKNOWN_TOPIC_OR_PARTITION", "compact" + name + "-0 -1 POLICY_VIOLATION", "both" + name + "-0 0 ",
			"nowhere-0 -1 UNKNOWN_TOPIC_OR_PARTITION",
		}
		if !slices.Equal(got, want) {
			t.Errorf("v%d: %q\nwant %q", version, got, want)
		}
		if got := deleteRecords(c, version, deleteBefore(name, 1)); !slices.Equal(got, []string{name + "-0 2 "}) {
			t.Errorf("v%d, below the log start: %q", version, got)
		}
		earliest := ask[*kmsg.ListOffsetsResponse](c, 7, listOffset(name, 0, siltstone.TimeEarliest, -1)).Topics[0].Partitions[0]
		if earliest.Offset != 2 {
			t.Errorf("v%d: the log starts at %d", version, earliest.Offset)
		}
		for err, want := range map[error]string{
			siltstone.ErrNotLeader:                        "NOT_LEADER_FOR_PARTITION",
			siltstone.ErrTimedOut:                         "REQUEST_TIMED_OUT",
			fmt.Errorf("x: %w", siltstone.ErrUnavailable): "KAFKA_STORAGE_ERROR",
		} {
			f.log.failWith(func(siltstone.TopicPartition) error { return err })
			if got := deleteRecords(c, version, deleteBefore(name, 3)); !slices.Equal(got, []string{name + "-0 -1 " + want}) {
				t.Errorf("v%d: %q, want %s", version, got, want)
			}
			f.log.failWith(nil)
			f.admin.failWith(err)
			if got := deleteRecords(c, version, deleteBefore(name, 3)); !slices.Equal(got, []string{name + "-0 -1 " + want}) {
				t.Errorf("v%d, with no outcome: %q, want %s", version, got, want)
			}
			f.admin.failWith(nil)
		}
	}
}

// TestDeleteRecordsTimeout: the request's timeout is the deadline.
func TestDeleteRecordsTimeout(t *testing.T) {
	deadlines := make(chan time.Time, 1)
	f := start(t, func(f *fixture, o *Options) { o.Admin = deadlineAdmin{f.admin, deadlines} })
	f.create("t", 1)
	before := time.Now()
	deleteRecords(f.dial(), 2, deleteBefore("t", 0))
	if d := <-deadlines; d.Before(before.Add(10*time.Second)) || d.After(time.Now().Add(10*time.Second)) {
		t.Errorf("the deadline is %s after the request", d.Sub(before))
	}
}

// deadlineAdmin notes the deadlines of trims.
type deadlineAdmin struct {
	*fakeAdmin
	deadlines chan time.Time
}

func (a deadlineAdmin) Trim(ctx context.Context, r *siltstone.TrimRequest) error {
	a.deadlines <- r.Deadline
	return a.fakeAdmin.Trim(ctx, r)
}
