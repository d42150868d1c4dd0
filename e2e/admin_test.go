package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestAdminTimeouts: a change that has no time is REQUEST_TIMED_OUT, made or
// not, and asking again with time for it settles it.
func TestAdminTimeouts(t *testing.T) {
	s := start(t, t.TempDir())
	w := s.dial(t)
	for i := range 20 {
		name := fmt.Sprint("t", i)
		create := kmsg.NewPtrCreateTopicsRequest()
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 2, -1
		create.Topics = append(create.Topics, topic)
		grow := kmsg.NewPtrCreatePartitionsRequest()
		more := kmsg.NewCreatePartitionsRequestTopic()
		more.Topic, more.Count = name, 5
		grow.Topics = append(grow.Topics, more)
		remove := kmsg.NewPtrDeleteTopicsRequest()
		gone := kmsg.NewDeleteTopicsRequestTopic()
		gone.Topic = &name
		remove.Topics = append(remove.Topics, gone)
		for _, step := range []struct {
			what string
			ask  func(timeout int32) int16
			done string // where it was made after all
		}{
			{"create", func(timeout int32) int16 {
				create.TimeoutMillis = timeout
				return ask[*kmsg.CreateTopicsResponse](w, 7, create).Topics[0].ErrorCode
			}, "TOPIC_ALREADY_EXISTS"},
			{"grow", func(timeout int32) int16 {
				grow.TimeoutMillis = timeout
				return ask[*kmsg.CreatePartitionsResponse](w, 3, grow).Topics[0].ErrorCode
			}, "INVALID_PARTITIONS"},
			{"delete", func(timeout int32) int16 {
				remove.TimeoutMillis = timeout
				return ask[*kmsg.DeleteTopicsResponse](w, 6, remove).Topics[0].ErrorCode
			}, "UNKNOWN_TOPIC_OR_PARTITION"},
		} {
			for _, timeout := range []int32{0, -1} {
				if got := errorName(step.ask(timeout)); !slices.Contains([]string{"REQUEST_TIMED_OUT", step.done, ""}, got) {
					t.Errorf("%s %s in %d ms: %s", step.what, name, timeout, got)
				}
			}
			if got := errorName(step.ask(int32(patience.Milliseconds()))); got != "" && got != step.done {
				t.Errorf("%s %s: %s", step.what, name, got)
			}
		}
		if got := errorName(w.metadata(name).Topics[0].ErrorCode); got != "UNKNOWN_TOPIC_OR_PARTITION" {
			t.Errorf("%s, deleted: %q", name, got)
		}
	}
	s.stop(t)
	check(t, s.dir)
}
