package kafka

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
)

// metadataOf asks for topics by name; it allows no creation.
func metadataOf(names ...string) *kmsg.MetadataRequest {
	q := kmsg.NewPtrMetadataRequest()
	q.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		q.Topics = append(q.Topics, t)
	}
	return q
}

// topicErrors is what an answer says of topics: "name error".
func topicErrors(resp *kmsg.MetadataResponse) []string {
	var all []string
	for _, t := range resp.Topics {
		name := "null"
		if t.Topic != nil {
			name = *t.Topic
		}
		all = append(all, name+" "+errorName(t.ErrorCode))
	}
	return all
}

func TestMetadataVersions(t *testing.T) {
	f := start(t)
	a, b := f.create("a", 3), f.create("b", 1)
	f.cluster.set(func(c *fakeCluster) {
		c.leaders[siltstone.TopicPartition{Topic: a.ID, Partition: 1}] = 1
		c.leaders[siltstone.TopicPartition{Topic: a.ID, Partition: 2}] = 9 // is not live
		c.leaders[siltstone.TopicPartition{Topic: b.ID}] = -1
		c.info.Controller = 1
	})
	c := f.dial()
	for version := range int16(14) {
		q := metadataOf("b", "a", "b", "none")
		q.IncludeClusterAuthorizedOperations, q.IncludeTopicAuthorizedOperations = true, version%2 == 0
		if version < 4 {
			q = metadataOf("b", "a", "b") // would be created
		}
		resp := ask[*kmsg.MetadataResponse](c, version, q)
		want := []string{"b ", "a ", "none UNKNOWN_TOPIC_OR_PARTITION"}[:2+min(1, int(version)/4)]
		if got := topicErrors(resp); !slices.Equal(got, want) {
			t.Fatalf("v%d: %q, want %q", version, got, want)
		}
		if len(resp.Brokers) != 2 || version >= 1 && resp.ControllerID != 1 || version >= 2 && *resp.ClusterID != "cluster-of-tests" {
			t.Errorf("v%d: %+v", version, resp)
		}
		if rt := resp.Topics[1]; version >= 10 && rt.TopicID != a.ID || rt.IsInternal {
			t.Errorf("v%d: %+v", version, rt)
		}
		wantOperations := notAsked
		if version >= 8 && version%2 == 0 {
			wantOperations = topicOperations
		}
		if got := resp.Topics[1].AuthorizedOperations; got != wantOperations {
			t.Errorf("v%d: operations %d, want %d", version, got, wantOperations)
		}
		var leaders []string
		for _, rp := range append(resp.Topics[1].Partitions, resp.Topics[0].Partitions...) {
			leaders = append(leaders, fmt.Sprintf("%d %d%v%v%v%s", rp.Partition, rp.Leader, rp.Replicas, rp.ISR, rp.OfflineReplicas, errorName(rp.ErrorCode)))
		}
		wantLeaders := []string{"0 0[0][0][]", "1 1[1][1][]", "2 -1[][][]LEADER_NOT_AVAILABLE", "0 -1[][][]LEADER_NOT_AVAILABLE"}
		if !slices.Equal(leaders, wantLeaders) {
			t.Errorf("v%d: %q, want %q", version, leaders, wantLeaders)
		}
		if p := resp.Topics[1].Partitions; version >= 7 && (p[0].LeaderEpoch != 7 || p[2].LeaderEpoch != -1) {
			t.Errorf("v%d: epochs %d, %d", version, p[0].LeaderEpoch, p[2].LeaderEpoch)
		}
	}
}

// TestMetadataAllOrNone: null is all, in v0 an empty list; else that is none.
func TestMetadataAllOrNone(t *testing.T) {
	f := start(t)
	f.create("b", 1)
	f.create("a", 1)
	c := f.dial()
	for version := range int16(14) {
		all := kmsg.NewPtrMetadataRequest()
		all.AllowAutoTopicCreation = true
		if got := topicErrors(ask[*kmsg.MetadataResponse](c, version, all)); !slices.Equal(got, []string{"a ", "b "}) {
			t.Errorf("v%d, null: %q", version, got)
		}
		want := 0
		if version == 0 {
			want = 2
		}
		if got := topicErrors(ask[*kmsg.MetadataResponse](c, version, metadataOf())); len(got) != want {
			t.Errorf("v%d, empty: %q", version, got)
		}
	}
}

func TestMetadataByID(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	c := f.dial()
	byID := func(ids ...siltstone.TopicID) *kmsg.MetadataRequest {
		q := metadataOf()
		for _, id := range ids {
			rt := kmsg.NewMetadataRequestTopic()
			rt.TopicID = id
			q.Topics = append(q.Topics, rt)
		}
		return q
	}
	other := siltstone.TopicID{1}
	for version := int16(12); version <= 13; version++ {
		resp := ask[*kmsg.MetadataResponse](c, version, byID(topic.ID, other))
		if got := topicErrors(resp); !slices.Equal(got, []string{"t ", "null UNKNOWN_TOPIC_ID"}) || resp.Topics[1].TopicID != other {
			t.Errorf("v%d: %q", version, got)
		}
		for _, name := range []string{"", "u"} {
			beside := byID(topic.ID, other)
			for i := range beside.Topics {
				beside.Topics[i].Topic = &name
			}
			if got := topicErrors(ask[*kmsg.MetadataResponse](c, version, beside)); !slices.Equal(got, []string{"t ", "null UNKNOWN_TOPIC_ID"}) {
				t.Errorf("v%d, beside the name %q: %q", version, name, got)
			}
		}
	}
	for version := int16(10); version <= 11; version++ {
		q := byID(topic.ID)
		q.Topics[0].Topic = kmsg.StringPtr("t")
		if got := topicErrors(ask[*kmsg.MetadataResponse](c, version, q)); !strings.HasSuffix(got[0], "INVALID_REQUEST") {
			t.Errorf("v%d: %q", version, got)
		}
	}
}

// TestAutoCreate: only a request that names the topic and allows it creates,
// and only where the cluster does.
func TestAutoCreate(t *testing.T) {
	f := start(t)
	f.alterCluster("num.partitions", "3")
	c := f.dial()
	allow := func(names ...string) *kmsg.MetadataRequest {
		q := metadataOf(names...)
		q.AllowAutoTopicCreation = true
		return q
	}
	resp := ask[*kmsg.MetadataResponse](c, 9, metadataOf("n"))
	if got := topicErrors(resp); !slices.Equal(got, []string{"n UNKNOWN_TOPIC_OR_PARTITION"}) || f.topics.Topics().Len() != 0 {
		t.Fatalf("not allowed: %q", got)
	}
	resp = ask[*kmsg.MetadataResponse](c, 9, allow("n", "bad name", "m"))
	want := []string{"n ", "bad name INVALID_TOPIC_EXCEPTION", "m "}
	if got := topicErrors(resp); !slices.Equal(got, want) || len(resp.Topics[0].Partitions) != 3 || f.topics.Topics().Len() != 2 {
		t.Errorf("allowed: %q, %d partitions", got, len(resp.Topics[0].Partitions))
	}
	// It would collide with n.
	f.create("a_b", 1)
	if got := topicErrors(ask[*kmsg.MetadataResponse](c, 9, allow("__consumer_offsets"))); !slices.Equal(got, []string{"__consumer_offsets INVALID_TOPIC_EXCEPTION"}) {
		t.Errorf("an internal topic of Kafka's: %q", got)
	}
	if got := topicErrors(ask[*kmsg.MetadataResponse](c, 9, allow("a.b"))); !slices.Equal(got, []string{"a.b INVALID_TOPIC_EXCEPTION"}) {
		t.Errorf("colliding: %q", got)
	}
	if got := topicErrors(ask[*kmsg.MetadataResponse](c, 9, metadataOf("a.b"))); !slices.Equal(got, []string{"a.b UNKNOWN_TOPIC_OR_PARTITION"}) {
		t.Errorf("described: %q", got)
	}
	// Before v4 naming a topic is allowing it.
	if got := topicErrors(ask[*kmsg.MetadataResponse](c, 1, metadataOf("old"))); !slices.Equal(got, []string{"old "}) {
		t.Errorf("v1: %q", got)
	}
	f.alterCluster("auto.create.topics.enable", "false")
	if got := topicErrors(ask[*kmsg.MetadataResponse](c, 9, allow("late"))); !slices.Equal(got, []string{"late UNKNOWN_TOPIC_OR_PARTITION"}) {
		t.Errorf("switched off: %q", got)
	}
}

// TestAutoCreateRace: of many clients that name a new topic at once, each gets it.
func TestAutoCreateRace(t *testing.T) {
	f := start(t)
	var wg sync.WaitGroup
	for range 10 {
		c := f.dial()
		wg.Go(func() {
			q := metadataOf("t")
			q.AllowAutoTopicCreation = true
			if got := topicErrors(ask[*kmsg.MetadataResponse](c, 9, q)); !slices.Equal(got, []string{"t "}) {
				t.Errorf("%q", got)
			}
		})
	}
	wg.Wait()
}

func TestDescribeTopicPartitions(t *testing.T) {
	f := start(t)
	a := f.create("a", 3)
	f.create("b", 2)
	f.create("c", 4)
	c := f.dial()
	type page struct {
		topics []string
		cursor string
	}
	ask := func(limit int32, cursor string, partition int32, names ...string) page {
		t.Helper()
		q := kmsg.NewPtrDescribeTopicPartitionsRequest()
		q.ResponsePartitionLimit = limit
		for _, name := range names {
			rt := kmsg.NewDescribeTopicPartitionsRequestTopic()
			rt.Topic = name
			q.Topics = append(q.Topics, rt)
		}
		if cursor != "" {
			rc := kmsg.NewDescribeTopicPartitionsRequestCursor()
			rc.Topic, rc.Partition = cursor, partition
			q.Cursor = &rc
		}
		resp := ask[*kmsg.DescribeTopicPartitionsResponse](c, 0, q)
		var p page
		for _, rt := range resp.Topics {
			said := *rt.Topic + errorName(rt.ErrorCode)
			for _, rp := range rt.Partitions {
				if rp.EligibleLeaderReplicas == nil || rp.LastKnownELR == nil {
					t.Errorf("a list that Java's client needs is null: %+v", rp)
				}
				said += fmt.Sprint(" ", rp.Partition)
			}
			p.topics = append(p.topics, said)
			if *rt.Topic == "a" && rt.ErrorCode == 0 && rt.TopicID != a.ID {
				t.Errorf("id %x", rt.TopicID)
			}
		}
		if resp.NextCursor != nil {
			p.cursor = fmt.Sprint(resp.NextCursor.Topic, resp.NextCursor.Partition)
		}
		return p
	}
	tests := []struct {
		name      string
		limit     int32
		cursor    string
		partition int32
		names     []string
		topics    []string
		next      string
	}{
		{"all", 2000, "", 0, nil, []string{"a 0 1 2", "b 0 1", "c 0 1 2 3"}, ""},
		{"first page", 2, "", 0, nil, []string{"a 0 1"}, "a2"},
		{"second page", 2, "a", 2, nil, []string{"a 2", "b 0"}, "b1"},
		{"ends with a topic", 3, "", 0, nil, []string{"a 0 1 2"}, "b0"},
		{"ends with the last", 4, "c", 0, nil, []string{"c 0 1 2 3"}, ""},
		{"no limit is one", 0, "", 0, nil, []string{"a 0"}, "a1"},
		{"named, sorted, once", 9, "", 0, []string{"c", "a", "c"}, []string{"a 0 1 2", "c 0 1 2 3"}, ""},
		{"unknown and impossible", 9, "", 0, []string{"x", "b", "no name"}, []string{"b 0 1", "no nameINVALID_TOPIC_EXCEPTION", "xUNKNOWN_TOPIC_OR_PARTITION"}, ""},
		{"cursor at a deleted topic", 9, "aa", 1, nil, []string{"b 0 1", "c 0 1 2 3"}, ""},
		{"cursor past a topic's end", 9, "a", 5, nil, []string{"a", "b 0 1", "c 0 1 2 3"}, ""},
		{"cursor not in the list", 9, "b", 0, []string{"a", "c"}, []string{"aINVALID_REQUEST", "cINVALID_REQUEST"}, ""},
		{"cursor negative", 9, "a", -1, []string{"a"}, []string{"aINVALID_REQUEST"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(tt.limit, tt.cursor, tt.partition, tt.names...)
			if !slices.Equal(got.topics, tt.topics) || got.cursor != tt.next {
				t.Errorf("%q, cursor %q; want %q, %q", got.topics, got.cursor, tt.topics, tt.next)
			}
		})
	}
}
