package kafka

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

func TestElectLeaders(t *testing.T) {
	f := start(t)
	made := f.create("t", 3)
	f.create("u", 1)
	f.cluster.set(func(c *fakeCluster) { c.leaders[siltstone.TopicPartition{Topic: made.ID, Partition: 1}] = -1 })
	c := f.dial()
	run := func(version int16, kind int8, topics ...string) (got []string, code string) {
		q := kmsg.NewPtrElectLeadersRequest()
		q.ElectionType, q.TimeoutMillis = kind, 1000
		for _, name := range topics {
			rt := kmsg.NewElectLeadersRequestTopic()
			rt.Topic, rt.Partitions = name, []int32{0, 1, 7}
			q.Topics = append(q.Topics, rt)
		}
		resp := ask[*kmsg.ElectLeadersResponse](c, version, q)
		for _, rt := range resp.Topics {
			for _, rp := range rt.Partitions {
				if rp.ErrorMessage == nil {
					t.Errorf("v%d: no message in %+v", version, rp)
				}
				got = append(got, fmt.Sprintf("%s-%d %s", rt.Topic, rp.Partition, errorName(rp.ErrorCode)))
			}
		}
		return got, errorName(resp.ErrorCode)
	}
	for version := range int16(3) {
		for kind, without := range []string{"PREFERRED_LEADER_NOT_AVAILABLE", "ELIGIBLE_LEADERS_NOT_AVAILABLE"} {
			if version == 0 && kind > 0 {
				continue
			}
			got, code := run(version, int8(kind), "t", "nowhere")
			want := []string{"t-0 ELECTION_NOT_NEEDED", "t-1 " + without, "t-7 UNKNOWN_TOPIC_OR_PARTITION",
				"nowhere-0 UNKNOWN_TOPIC_OR_PARTITION", "nowhere-1 UNKNOWN_TOPIC_OR_PARTITION", "nowhere-7 UNKNOWN_TOPIC_OR_PARTITION"}
			if !slices.Equal(got, want) || code != "" {
				t.Errorf("v%d: %q, %s; want %q", version, got, code, want)
			}
			if got, code := run(version, int8(kind)); !slices.Equal(got, []string{"t-1 " + without}) || code != "" {
				t.Errorf("v%d, all partitions: %q, %s", version, got, code)
			}
		}
		if version == 0 {
			continue
		}
		if got, code := run(version, 2, "t"); !slices.Equal(got, []string{"t-0 INVALID_REQUEST", "t-1 INVALID_REQUEST", "t-7 INVALID_REQUEST"}) || code != "INVALID_REQUEST" {
			t.Errorf("v%d, another kind: %q, %s", version, got, code)
		}
		if got, code := run(version, -1); len(got) != 0 || code != "INVALID_REQUEST" {
			t.Errorf("v%d, another kind, of all: %q, %s", version, got, code)
		}
	}
}
