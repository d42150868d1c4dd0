package kafka

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// alterCluster sets a setting of the cluster.
func (f *fixture) alterCluster(name, value string) {
	f.t.Helper()
	if err := f.server.changeCluster(f.t.Context(), false, &configChange{ops: []topic.ConfigOp{{Name: name, Value: &value}}}); err != nil {
		f.t.Fatal(err)
	}
}

// newTopic is one as a CreateTopics request has it; settings are name, value.
func newTopic(name string, partitions int32, replication int16, settings ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replication
	for i := 0; i < len(settings); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = settings[i], &settings[i+1]
		t.Configs = append(t.Configs, c)
	}
	return t
}

// placed is a topic with its replicas listed, a list per partition from 0 on.
func placed(name string, replicas ...[]int32) kmsg.CreateTopicsRequestTopic {
	t := newTopic(name, -1, -1)
	for i, ids := range replicas {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), ids
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	return t
}

func createTopics(topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Topics, q.TimeoutMillis = topics, 10_000
	return q
}

func TestCreateTopics(t *testing.T) {
	f := start(t)
	f.alterCluster("num.partitions", "4")
	f.create("there", 1)
	c := f.dial()
	countless, unordered := placed("countless", []int32{0}), placed("unordered", []int32{0}, []int32{1})
	countless.NumPartitions = 1
	unordered.ReplicaAssignment[1].Partition = 2
	topics := []kmsg.CreateTopicsRequestTopic{
		newTopic("one", 1, 1), newTopic("default", -1, -1), newTopic("three", 2, 3),
		newTopic("replicated", 1, 4), newTopic("unreplicated", 1, 0),
		newTopic("none", 0, -1), newTopic("negative", -2, -1),
		newTopic("there", 1, 1), newTopic("the.re", 1, 1), newTopic("t_here", 1, 1),
		newTopic("twice", 1, 1), newTopic("twice", 1, 1), newTopic("half", 1, 1), placed("half", []int32{7}),
		newTopic("__consumer_offsets", 1, 1), newTopic("", 1, 1), newTopic(strings.Repeat("n", 250), 1, 1),
		newTopic("configured", 1, 1, "retention.ms", "1000"), newTopic("misconfigured", 1, 1, "retention.ms", "soon"),
		newTopic("unknown", 1, 1, "no.such.config", "1"),
		placed("placed", []int32{0}, []int32{1}, []int32{0}), placed("misplaced", []int32{7}),
		placed("doubly", []int32{0, 0}), placed("uneven", []int32{0}, []int32{0, 1}), placed("nowhere", []int32{}),
		countless, unordered,
	}
	want := map[string]string{
		"one": "", "default": "", "three": "", "configured": "", "placed": "", "t_here": "", "the.re": "",
		"replicated": "INVALID_REPLICATION_FACTOR", "unreplicated": "INVALID_REPLICATION_FACTOR",
		"none": "INVALID_PARTITIONS", "negative": "INVALID_PARTITIONS", "there": "TOPIC_ALREADY_EXISTS",
		"twice": "INVALID_REQUEST", "half": "INVALID_REQUEST", "__consumer_offsets": "INVALID_TOPIC_EXCEPTION", "": "INVALID_TOPIC_EXCEPTION", strings.Repeat("n", 250): "INVALID_TOPIC_EXCEPTION",
		"misconfigured": "INVALID_CONFIG", "unknown": "INVALID_CONFIG",
		"misplaced": "INVALID_REPLICA_ASSIGNMENT", "doubly": "INVALID_REPLICA_ASSIGNMENT", "uneven": "INVALID_REPLICA_ASSIGNMENT",
		"nowhere": "INVALID_REPLICA_ASSIGNMENT", "unordered": "INVALID_REPLICA_ASSIGNMENT", "countless": "INVALID_REQUEST",
	}
	q := createTopics(topics...)
	q.ValidateOnly = true
	check := func(resp *kmsg.CreateTopicsResponse) {
		t.Helper()
		if len(resp.Topics) != len(topics)-2 {
			t.Errorf("%d topics, want %d", len(resp.Topics), len(topics)-2)
		}
		for _, rt := range resp.Topics {
			if got := errorName(rt.ErrorCode); got != want[rt.Topic] || (rt.ErrorMessage == nil) != (got == "") {
				t.Errorf("%s: %q %v, want %q", rt.Topic, got, rt.ErrorMessage, want[rt.Topic])
			}
		}
	}
	check(ask[*kmsg.CreateTopicsResponse](c, 7, q))
	if n := f.topics.Topics().Len(); n != 1 {
		t.Fatalf("%d topics after validation, want 1", n)
	}
	q.ValidateOnly = false
	check(ask[*kmsg.CreateTopicsResponse](c, 7, q))
	for name, partitions := range map[string]int32{"one": 1, "default": 4, "three": 2, "placed": 3} {
		if made, ok := f.topics.Topics().Topic(name); !ok || made.Partitions != partitions {
			t.Errorf("%s was not made with %d partitions", name, partitions)
		}
	}
}

// TestCreateTopicsAnswer: what the answer says of a topic, made or only validated.
func TestCreateTopicsAnswer(t *testing.T) {
	f := start(t)
	f.alterCluster("num.partitions", "6")
	c := f.dial()
	for version := int16(2); version <= 7; version++ {
		for _, validate := range []bool{true, false} {
			q := createTopics(newTopic(fmt.Sprint("t", version), -1, -1, "max.message.bytes", "5000"))
			q.ValidateOnly = validate
			rt := ask[*kmsg.CreateTopicsResponse](c, version, q).Topics[0]
			if rt.ErrorCode != 0 {
				t.Fatalf("v%d: %s", version, errorName(rt.ErrorCode))
			}
			if version < 5 {
				continue
			}
			size := slices.IndexFunc(rt.Configs, func(c kmsg.CreateTopicsResponseTopicConfig) bool { return c.Name == "max.message.bytes" })
			if rt.NumPartitions != 6 || rt.ReplicationFactor != 1 || size < 0 || *rt.Configs[size].Value != "5000" || rt.Configs[size].Source != 1 {
				t.Errorf("v%d: %d partitions, %d replicas, %d settings", version, rt.NumPartitions, rt.ReplicationFactor, len(rt.Configs))
			}
			made, ok := f.topics.Topics().Topic(rt.Topic)
			if version >= 7 && !validate && (!ok || made.ID != rt.TopicID) {
				t.Errorf("v%d: id %x", version, rt.TopicID)
			}
		}
	}
}

// TestChangeFails: what cannot be appended says so for each topic, in words
// that an admin client asks again on.
func TestChangeFails(t *testing.T) {
	f := start(t)
	f.create("t", 1)
	f.topics.FailWith(fmt.Errorf("ledger: %w", siltstone.ErrUnavailable))
	c := f.dial()
	if got := ask[*kmsg.CreateTopicsResponse](c, 5, createTopics(newTopic("a", 1, 1))).Topics[0]; errorName(got.ErrorCode) != "NOT_CONTROLLER" {
		t.Errorf("create: %s", errorName(got.ErrorCode))
	}
	if got := ask[*kmsg.DeleteTopicsResponse](c, 5, deleteNamed("t", "t")).Topics; errorName(got[0].ErrorCode) != "NOT_CONTROLLER" || *got[1].Topic != "t" {
		t.Errorf("delete: %+v", got)
	}
	f.topics.FailWith(siltstone.ErrTimedOut)
	if got := ask[*kmsg.CreatePartitionsResponse](c, 3, morePartitions("t", 2)).Topics[0]; errorName(got.ErrorCode) != "REQUEST_TIMED_OUT" {
		t.Errorf("add: %s", errorName(got.ErrorCode))
	}
}

func deleteNamed(names ...string) *kmsg.DeleteTopicsRequest {
	q := kmsg.NewPtrDeleteTopicsRequest()
	q.TimeoutMillis, q.TopicNames = 10_000, names
	for _, name := range names {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		q.Topics = append(q.Topics, t)
	}
	return q
}

func TestDeleteTopics(t *testing.T) {
	f := start(t)
	c := f.dial()
	for version := int16(1); version <= 6; version++ {
		f.create("a", 1)
		kept := f.create("kept", 1)
		resp := ask[*kmsg.DeleteTopicsResponse](c, version, deleteNamed("a", "nowhere", "a"))
		var got []string
		for _, rt := range resp.Topics {
			got = append(got, *rt.Topic+" "+errorName(rt.ErrorCode))
		}
		if want := []string{"a ", "nowhere UNKNOWN_TOPIC_OR_PARTITION", "a INVALID_REQUEST"}; !slices.Equal(got, want) {
			t.Errorf("v%d: %q, want %q", version, got, want)
		}
		if left := f.topics.Topics().All(); len(left) != 1 || left[0] != kept {
			t.Errorf("v%d: %d topics are left", version, len(left))
		}
		if version < 6 {
			ask[*kmsg.DeleteTopicsResponse](c, version, deleteNamed("kept"))
		}
	}
	kept, _ := f.topics.Topics().Topic("kept")
	q := kmsg.NewPtrDeleteTopicsRequest()
	q.TimeoutMillis = 10_000
	q.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: kept.ID}, {TopicID: [16]byte{7}}, {}, {Topic: kmsg.StringPtr("kept"), TopicID: kept.ID}}
	resp := ask[*kmsg.DeleteTopicsResponse](c, 6, q)
	for i, want := range []string{"", "UNKNOWN_TOPIC_ID", "INVALID_REQUEST", "INVALID_REQUEST"} {
		if got := errorName(resp.Topics[i].ErrorCode); got != want {
			t.Errorf("topic %d: %q, want %q", i, got, want)
		}
	}
	if rt := resp.Topics[0]; *rt.Topic != "kept" || rt.TopicID != kept.ID {
		t.Errorf("%+v", rt)
	}
}

func morePartitions(name string, total int32, replicas ...[]int32) *kmsg.CreatePartitionsRequest {
	q := kmsg.NewPtrCreatePartitionsRequest()
	q.TimeoutMillis = 10_000
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = name, total
	for _, ids := range replicas {
		a := kmsg.NewCreatePartitionsRequestTopicAssignment()
		a.Replicas = ids
		t.Assignment = append(t.Assignment, a)
	}
	q.Topics = append(q.Topics, t)
	return q
}

func TestCreatePartitions(t *testing.T) {
	f := start(t)
	c := f.dial()
	tests := []struct {
		name string
		q    *kmsg.CreatePartitionsRequest
		want string
	}{
		{"more", morePartitions("t", 5), ""},
		{"placed", morePartitions("t", 4, []int32{0}, []int32{1}), ""},
		{"as many", morePartitions("t", 2), "INVALID_PARTITIONS"},
		{"fewer", morePartitions("t", 1), "INVALID_PARTITIONS"},
		{"unknown", morePartitions("nowhere", 3), "UNKNOWN_TOPIC_OR_PARTITION"},
		{"fewer, placed", morePartitions("t", 1, []int32{0}), "INVALID_PARTITIONS"},
		{"fewer, on a dead node", morePartitions("t", 2, []int32{9}), "INVALID_PARTITIONS"},
		{"lists too few", morePartitions("t", 4, []int32{0}), "INVALID_REPLICA_ASSIGNMENT"},
		{"lists a dead node", morePartitions("t", 3, []int32{9}), "INVALID_REPLICA_ASSIGNMENT"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for version := range int16(4) {
				f.create("t", 2)
				tt.q.ValidateOnly = true
				if got := errorName(ask[*kmsg.CreatePartitionsResponse](c, version, tt.q).Topics[0].ErrorCode); got != tt.want {
					t.Errorf("v%d, validation: %q, want %q", version, got, tt.want)
				}
				if made, _ := f.topics.Topics().Topic("t"); made.Partitions != 2 {
					t.Errorf("v%d: validation made partitions", version)
				}
				tt.q.ValidateOnly = false
				if got := errorName(ask[*kmsg.CreatePartitionsResponse](c, version, tt.q).Topics[0].ErrorCode); got != tt.want {
					t.Errorf("v%d: %q, want %q", version, got, tt.want)
				}
				made, _ := f.topics.Topics().Topic("t")
				if want := tt.q.Topics[0].Count; tt.want == "" && made.Partitions != want || tt.want != "" && made.Partitions != 2 {
					t.Errorf("v%d: %d partitions", version, made.Partitions)
				}
				ask[*kmsg.DeleteTopicsResponse](c, 5, deleteNamed("t"))
			}
		})
	}
	f.create("t", 2)
	q := morePartitions("t", 3)
	q.Topics = append(q.Topics, q.Topics[0])
	if got := ask[*kmsg.CreatePartitionsResponse](c, 3, q).Topics; len(got) != 1 || errorName(got[0].ErrorCode) != "INVALID_REQUEST" {
		t.Errorf("twice: %+v", got)
	}
	if made, _ := f.topics.Topics().Topic("t"); made.Partitions != 2 {
		t.Errorf("twice: %d partitions", made.Partitions)
	}
}
