package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// TestReport10Looking: nothing creates a topic but its creation, and a Metadata
// request that names it and may. (streamnative/kop#274)
func TestReport10Looking(t *testing.T) {
	s := start(t, t.TempDir())
	w := s.dial(t)
	none := func(what string) {
		t.Helper()
		if names := w.topicNames(); len(names) > 0 {
			t.Fatalf("%s makes topics %v", what, names)
		}
	}
	for version := int16(4); version <= 12; version++ {
		q := kmsg.NewPtrMetadataRequest()
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr("nosuch")
		q.Topics = append(q.Topics, rt)
		if got := ask[*kmsg.MetadataResponse](w, version, q).Topics[0]; errorName(got.ErrorCode) != "UNKNOWN_TOPIC_OR_PARTITION" {
			t.Errorf("Metadata v%d without leave: %q", version, errorName(got.ErrorCode))
		}
	}
	none("Metadata without leave")
	s.lookAround(t, w, none)

	// A missing topic may be looked for by clients of every kind.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	admin := s.admin(t)
	if listed, err := admin.ListTopics(ctx, "nosuch"); err != nil || listed.Error() == nil {
		t.Errorf("ListTopics: %v %v", err, listed.Error())
	}
	if _, err := admin.DescribeTopicConfigs(ctx, "nosuch"); err != nil {
		t.Errorf("DescribeTopicConfigs: %v", err)
	}
	cl := s.franz(t, kgo.ConsumeTopics("nosuch"), kgo.UnknownTopicRetries(0))
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "nosuch"}).FirstErr(); err == nil {
		t.Error("franz-go writes to a topic that is not there")
	}
	none("franz-go")
	out := s.kcat(t, nil, "-L", "-t", "nosuch", "-X", "allow.auto.create.topics=false")
	if !strings.Contains(out, `topic "nosuch" with 0 partitions: Broker: Unknown topic or partition`) {
		t.Errorf("kcat -L: %s", out)
	}
	s.kcat(t, nil, "-L")
	for _, args := range [][]string{{"-P", "-X", "allow.auto.create.topics=false", "-X", "topic.metadata.propagation.max.ms=10"}, {"-C", "-e"}} {
		cmd := exec.CommandContext(ctx, "kcat", append([]string{"-b", s.kafka, "-t", "nosuch"}, args...)...)
		cmd.Stdin = strings.NewReader("x\n")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "Unknown topic") {
			t.Errorf("kcat %v: %v %s", args, err, out)
		}
	}
	none("kcat")
	for _, args := range [][]string{{"topic", "describe", "nosuch"}, {"produce", "nosuch"}, {"consume", "nosuch"}, {"topic", "delete", "nosuch"}} {
		_, stderr, code := run(t, "x\n", append(args, "--kafka", s.kafka)...)
		oneClearLine(t, strings.Join(args, " "), stderr, code, `no topic "nosuch"`)
	}
	none("siltstone")
}

// lookAround asks about a topic that is not there by every API that names one.
func (s *server) lookAround(t *testing.T, w *wire, none func(string)) {
	t.Helper()
	missing := kmsg.MetadataResponseTopic{Topic: kmsg.StringPtr("nosuch"), TopicID: [16]byte{9}, Partitions: make([]kmsg.MetadataResponseTopicPartition, 1)}
	if got := w.produce(9, missing, 0, batchOf(t, batch.None, value("x"))); errorName(got.ErrorCode) != "UNKNOWN_TOPIC_OR_PARTITION" {
		t.Errorf("Produce: %q", errorName(got.ErrorCode))
	}
	if got := w.produce(13, missing, 0, batchOf(t, batch.None, value("x"))); errorName(got.ErrorCode) != "UNKNOWN_TOPIC_ID" {
		t.Errorf("Produce v13: %q", errorName(got.ErrorCode))
	}
	for version, want := range map[int16]string{4: "UNKNOWN_TOPIC_OR_PARTITION", 12: "UNKNOWN_TOPIC_OR_PARTITION", 13: "UNKNOWN_TOPIC_ID"} {
		if got := w.fetchTopics(version, missing)[0]; errorName(got.ErrorCode) != want {
			t.Errorf("Fetch v%d: %q", version, errorName(got.ErrorCode))
		}
	}
	if got := w.listOffsets(11, missing, -1, -1)[0]; errorName(got.ErrorCode) != "UNKNOWN_TOPIC_OR_PARTITION" {
		t.Errorf("ListOffsets: %q", errorName(got.ErrorCode))
	}

	configs := kmsg.NewPtrDescribeConfigsRequest()
	configs.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "nosuch"}}
	if got := ask[*kmsg.DescribeConfigsResponse](w, 4, configs).Resources[0]; errorName(got.ErrorCode) != "UNKNOWN_TOPIC_OR_PARTITION" {
		t.Errorf("DescribeConfigs: %q", errorName(got.ErrorCode))
	}
	alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
	alter.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
		ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "nosuch",
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: kmsg.StringPtr("1")}},
	}}
	if got := ask[*kmsg.IncrementalAlterConfigsResponse](w, 1, alter).Resources[0]; errorName(got.ErrorCode) != "UNKNOWN_TOPIC_OR_PARTITION" {
		t.Errorf("IncrementalAlterConfigs: %q", errorName(got.ErrorCode))
	}
	more := kmsg.NewPtrCreatePartitionsRequest()
	more.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "nosuch", Count: 3}}
	if got := ask[*kmsg.CreatePartitionsResponse](w, 3, more).Topics[0]; errorName(got.ErrorCode) != "UNKNOWN_TOPIC_OR_PARTITION" {
		t.Errorf("CreatePartitions: %q", errorName(got.ErrorCode))
	}
	describe := kmsg.NewPtrDescribeTopicPartitionsRequest()
	describe.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: "nosuch"}}
	if got := ask[*kmsg.DescribeTopicPartitionsResponse](w, 0, describe).Topics[0]; errorName(got.ErrorCode) != "UNKNOWN_TOPIC_OR_PARTITION" {
		t.Errorf("DescribeTopicPartitions: %q", errorName(got.ErrorCode))
	}
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.TopicNames = []string{"nosuch"}
	if got := ask[*kmsg.DeleteTopicsResponse](w, 5, remove).Topics[0]; errorName(got.ErrorCode) != "UNKNOWN_TOPIC_OR_PARTITION" {
		t.Errorf("DeleteTopics: %q", errorName(got.ErrorCode))
	}
	try := kmsg.NewPtrCreateTopicsRequest()
	try.ValidateOnly, try.TimeoutMillis = true, 1000
	try.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: "nosuch", NumPartitions: 1, ReplicationFactor: -1}}
	if got := ask[*kmsg.CreateTopicsResponse](w, 7, try).Topics[0]; got.ErrorCode != 0 {
		t.Errorf("CreateTopics, only to validate: %q", errorName(got.ErrorCode))
	}
	none("an API that is not there to create")
}

// TestReport10AutoCreate: a Metadata request that names a topic creates it,
// from v4 on if it says so, unless the cluster does not want that.
func TestReport10AutoCreate(t *testing.T) {
	s := start(t, t.TempDir())
	w := s.dial(t)
	var want []string
	for version := range int16(13) {
		name := fmt.Sprintf("auto-%02d", version)
		if got := w.mayCreate(version, name); got.ErrorCode != 0 || len(got.Partitions) != 1 {
			t.Errorf("v%d: %s, %d partitions", version, errorName(got.ErrorCode), len(got.Partitions))
		}
		want = append(want, name)
	}
	s.kcat(t, []byte("x\n"), "-P", "-t", "by-kcat") // librdkafka's producers may
	if err := s.franz(t, kgo.AllowAutoTopicCreation()).ProduceSync(t.Context(), &kgo.Record{Topic: "by-franz"}).FirstErr(); err != nil {
		t.Error(err)
	}
	want = append(want, "by-franz", "by-kcat")
	if got := w.topicNames(); !slices.Equal(got, want) {
		t.Errorf("topics %v, want %v", got, want)
	}
	admin := s.admin(t)
	set := func(name, value string) {
		t.Helper()
		if _, err := admin.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: name, Value: &value}}); err != nil {
			t.Fatal(err)
		}
	}
	set("num.partitions", "3")
	if got := w.mayCreate(12, "three"); got.ErrorCode != 0 || len(got.Partitions) != 3 {
		t.Errorf("with num.partitions=3: %s, %d partitions", errorName(got.ErrorCode), len(got.Partitions))
	}
	want = append(want, "three")
	set("auto.create.topics.enable", "false")
	inEveryState(t, s, func(t *testing.T, s *server) {
		w := s.dial(t)
		for version := range int16(13) {
			if got := w.mayCreate(version, "never"); errorName(got.ErrorCode) != "UNKNOWN_TOPIC_OR_PARTITION" {
				t.Errorf("v%d where the cluster does not want it: %q", version, errorName(got.ErrorCode))
			}
		}
		if got := w.topicNames(); !slices.Equal(got, want) {
			t.Errorf("topics %v, want %v", got, want)
		}
	})
}
