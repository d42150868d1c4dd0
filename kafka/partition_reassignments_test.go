package kafka

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

func TestAlterPartitionReassignments(t *testing.T) {
	f := start(t)
	made := f.create("t", 2)
	f.cluster.set(func(c *fakeCluster) { c.leaders[siltstone.TopicPartition{Topic: made.ID, Partition: 1}] = -1 })
	c := f.dial()
	for version := range int16(2) {
		for _, tt := range []struct {
			topic     string
			partition int32
			replicas  []int32
			want      string
		}{
			{"t", 0, nil, "NO_REASSIGNMENT_IN_PROGRESS"},
			{"t", 0, []int32{0}, ""},
			{"t", 0, []int32{1}, "INVALID_REPLICA_ASSIGNMENT the cluster places"},
			{"t", 0, []int32{0, 1}, "INVALID_REPLICA_ASSIGNMENT the cluster places"},
			{"t", 1, []int32{0}, "INVALID_REPLICA_ASSIGNMENT the cluster places"},
			{"t", 0, []int32{}, "INVALID_REPLICA_ASSIGNMENT 0 replicas"},
			{"t", 0, []int32{0, 0}, "INVALID_REPLICA_ASSIGNMENT node 0 is not live, or named twice"},
			{"t", 0, []int32{9}, "INVALID_REPLICA_ASSIGNMENT node 9"},
			{"t", 7, []int32{0}, "UNKNOWN_TOPIC_OR_PARTITION"},
			{"nowhere", 0, nil, "UNKNOWN_TOPIC_OR_PARTITION"},
		} {
			q := kmsg.NewPtrAlterPartitionAssignmentsRequest()
			q.TimeoutMillis, q.AllowReplicationFactorChange = 1000, false
			rt := kmsg.NewAlterPartitionAssignmentsRequestTopic()
			rt.Topic = tt.topic
			rp := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
			rp.Partition, rp.Replicas = tt.partition, tt.replicas
			rt.Partitions = append(rt.Partitions, rp)
			q.Topics = append(q.Topics, rt)
			resp := ask[*kmsg.AlterPartitionAssignmentsResponse](c, version, q)
			got := resp.Topics[0].Partitions[0]
			said := errorName(got.ErrorCode)
			if got.ErrorMessage != nil {
				said += " " + *got.ErrorMessage
			}
			if resp.ErrorCode != 0 || resp.Topics[0].Topic != tt.topic || got.Partition != tt.partition ||
				!strings.HasPrefix(said, tt.want) || (tt.want == "") != (said == "") {
				t.Errorf("v%d, %s-%d to %v: %q, want %q", version, tt.topic, tt.partition, tt.replicas, said, tt.want)
			}
			if version >= 1 && resp.AllowReplicationFactorChange {
				t.Errorf("v%d: a change of the replication factor was allowed", version)
			}
		}
	}
}

func TestListPartitionReassignments(t *testing.T) {
	f := start(t)
	f.create("t", 1)
	c := f.dial()
	q := kmsg.NewPtrListPartitionReassignmentsRequest()
	for range 2 {
		if resp := ask[*kmsg.ListPartitionReassignmentsResponse](c, 0, q); resp.ErrorCode != 0 || len(resp.Topics) != 0 {
			t.Errorf("%+v", resp)
		}
		rt := kmsg.NewListPartitionReassignmentsRequestTopic()
		rt.Topic, rt.Partitions = "t", []int32{0, 7}
		q.Topics = append(q.Topics, rt)
	}
}
