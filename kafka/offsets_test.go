package kafka

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// errorNames is Kafka's names for codes.
func errorNames(codes []int16) (names []string) {
	for _, c := range codes {
		names = append(names, errorName(c))
	}
	return names
}

// offsetsIn is what an answer to OffsetFetch says of its one group, in any
// version: "topic partition offset epoch metadata error" of each, sorted.
func offsetsIn(resp *kmsg.OffsetFetchResponse, names map[siltstone.TopicID]string) (group string, parts []string) {
	group = errorName(resp.ErrorCode)
	topics := make([]kmsg.OffsetFetchResponseGroupTopic, 0, len(resp.Topics))
	for _, t := range resp.Topics {
		rt := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			rt.Partitions = append(rt.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition(p))
		}
		topics = append(topics, rt)
	}
	if resp.Version >= 8 {
		group, topics = errorName(resp.Groups[0].ErrorCode), resp.Groups[0].Topics
	}
	for _, t := range topics {
		if resp.Version >= 10 {
			t.Topic = names[t.TopicID]
		}
		for _, p := range t.Partitions {
			metadata := "null"
			if p.Metadata != nil {
				metadata = *p.Metadata
			}
			parts = append(parts, fmt.Sprintf("%s %d %d %d %s %s", t.Topic, p.Partition, p.Offset, p.LeaderEpoch, metadata, errorName(p.ErrorCode)))
		}
	}
	slices.Sort(parts)
	return group, parts
}

// TestOffsets: what one version commits, every version gives back.
func TestOffsets(t *testing.T) {
	f := start(t)
	topic := f.create("t", 3)
	c := f.dial()
	unknown := siltstone.TopicID{0xff}
	names := map[siltstone.TopicID]string{topic.ID: "t", unknown: "none"}
	for version := int16(1); version <= 10; version++ {
		id := fmt.Sprint("group", version)
		q := commitOf(id, "t", topic.ID, 1, 0, 7, 1) // 1 again: the last counts
		p := q.Topics[0].Partitions
		p[1].LeaderEpoch, p[1].Metadata, p[3].Offset = 5, kmsg.StringPtr("said"), 200
		q.Topics = append(q.Topics, commitOf(id, "none", unknown, 0).Topics...)
		want := []string{"", "", "UNKNOWN_TOPIC_OR_PARTITION", "", "UNKNOWN_TOPIC_OR_PARTITION"}
		if version >= 10 {
			want[4] = "UNKNOWN_TOPIC_ID"
		}
		resp := ask[*kmsg.OffsetCommitResponse](c, version, q)
		if got := errorNames(commitCodes(resp)); !slices.Equal(got, want) {
			t.Errorf("v%d: %q, want %q", version, got, want)
		}
		for i, rt := range resp.Topics {
			if rt.Partitions[0].Partition != q.Topics[i].Partitions[0].Partition || version < 10 && rt.Topic != q.Topics[i].Topic || version >= 10 && rt.TopicID != q.Topics[i].TopicID {
				t.Errorf("v%d: %+v", version, rt)
			}
		}
		for read := int16(1); read <= 10; read++ {
			q := fetchOffsetsOf(id, "t", topic.ID, 2, 1, 0, 9, 1)
			other := fetchOffsetsOf(id, "none", unknown, 3)
			q.Topics = append(q.Topics, other.Topics...)
			q.Groups[0].Topics = append(q.Groups[0].Topics, other.Groups[0].Topics...)
			epoch, unknown := -1, ""
			if version >= 6 && read >= 5 {
				epoch = 5
			}
			if read >= 10 {
				unknown = "UNKNOWN_TOPIC_ID"
			}
			want := []string{
				"none 3 -1 -1  " + unknown, fmt.Sprintf("t 0 100 %d said ", epoch), "t 1 200 -1  ", "t 2 -1 -1  ", "t 9 -1 -1  ",
			}
			resp := ask[*kmsg.OffsetFetchResponse](c, read, q)
			if why, got := offsetsIn(resp, names); why != "" || !slices.Equal(got, want) {
				t.Errorf("committed by v%d, fetched by v%d: %s %q, want %q", version, read, why, got, want)
			}
		}
	}
}

// TestCommitExpiry: v1 dates a commit, v2 to v4 say how long to keep it.
func TestCommitExpiry(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	retention := f.topics.Topics().Cluster().OffsetsRetentionMS
	tests := []struct {
		name        string
		stamp, keep int64
		v1, v2      int64 // v2 from now on
	}{
		{"by default", -1, -1, -1, -1},
		{"said", 1_000_000, 60_000, 1_000_000 + retention, 60_000},
		{"at once", 0, 0, retention, 0},
		{"for ever", math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{"nonsense", math.MinInt64, math.MinInt64, -1, -1},
	}
	for _, tt := range tests {
		for version := int16(1); version <= 10; version++ {
			q := commitOf("g", "t", topic.ID, 0)
			q.RetentionTimeMillis, q.Topics[0].Partitions[0].Timestamp = tt.keep, tt.stamp
			before := time.Now().UnixMilli()
			ask[*kmsg.OffsetCommitResponse](f.dial(), version, q)
			after := time.Now().UnixMilli()
			got := f.groups.last().(*group.Commit).Parts[0].ExpireMS
			least, most := int64(-1), int64(-1)
			switch {
			case version == 1:
				least, most = tt.v1, tt.v1
			case version <= 4 && tt.v2 == math.MaxInt64:
				least, most = tt.v2, tt.v2
			case version <= 4 && tt.v2 >= 0:
				least, most = before+tt.v2, after+tt.v2
			}
			if got < least || got > most {
				t.Errorf("%s, v%d: expires at %d, want %d to %d", tt.name, version, got, least, most)
			}
		}
	}
}

// TestCommitRefused: who may not commit, and what.
func TestCommitRefused(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	m := f.alone("g")
	f.groups.set(func(g *fakeGroups) { g.settings.MaxMetadataBytes = 1_000_000 })
	long := strings.Repeat("x", 10_000)
	tests := []struct {
		name   string
		change func(*kmsg.OffsetCommitRequest)
		below9 string
		want   string
	}{
		{"member", func(q *kmsg.OffsetCommitRequest) {}, "", ""},
		{"old generation", func(q *kmsg.OffsetCommitRequest) { q.Generation-- }, "ILLEGAL_GENERATION", "ILLEGAL_GENERATION"},
		{"stranger", func(q *kmsg.OffsetCommitRequest) { q.MemberID = "else" }, "UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID"},
		{"outsider", func(q *kmsg.OffsetCommitRequest) { q.MemberID, q.Generation = "", -1 }, "UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID"},
		{"no such group", func(q *kmsg.OffsetCommitRequest) { q.Group = "none" }, "ILLEGAL_GENERATION", "GROUP_ID_NOT_FOUND"},
		{"negative", func(q *kmsg.OffsetCommitRequest) { q.Topics[0].Partitions[0].Offset = -1 }, "INVALID_REQUEST", "INVALID_REQUEST"},
		{"long metadata", func(q *kmsg.OffsetCommitRequest) { q.Topics[0].Partitions[0].Metadata = &long }, "", ""},
	}
	for _, tt := range tests {
		for version := int16(1); version <= 10; version++ {
			q := commitOf("g", "t", topic.ID, 0)
			q.MemberID, q.Generation = m.id, m.generation
			tt.change(q)
			want := tt.want
			if version < 9 {
				want = tt.below9
			}
			if got := errorNames(commitCodes(ask[*kmsg.OffsetCommitResponse](m.client, version, q))); !slices.Equal(got, []string{want}) {
				t.Errorf("%s, v%d: %q, want %q", tt.name, version, got, want)
			}
		}
	}
	f.groups.set(func(g *fakeGroups) { g.settings.MaxMetadataBytes = 9_999 })
	q := commitOf("g", "t", topic.ID, 0)
	q.MemberID, q.Generation, q.Topics[0].Partitions[0].Metadata = m.id, m.generation, &long
	if got := errorNames(commitCodes(ask[*kmsg.OffsetCommitResponse](m.client, 8, q))); !slices.Equal(got, []string{"OFFSET_METADATA_TOO_LARGE"}) {
		t.Errorf("long metadata: %q", got)
	}
	f.groups.set(func(g *fakeGroups) { g.refused = group.ErrTooLarge })
	if got := errorNames(commitCodes(ask[*kmsg.OffsetCommitResponse](m.client, 8, q))); !slices.Equal(got, []string{"INVALID_COMMIT_OFFSET_SIZE"}) {
		t.Errorf("too large for an entry: %q", got)
	}
	// Where nothing can be committed nobody is asked.
	asked := f.groups.handed()
	for _, q := range []*kmsg.OffsetCommitRequest{commitOf("g", "none", siltstone.TopicID{}, 0), {Group: "g"}} {
		ask[*kmsg.OffsetCommitResponse](m.client, 8, q)
	}
	if f.groups.handed() != asked {
		t.Error("a coordinator is asked to commit nothing")
	}
}

// TestNoGroupID: old clients that are in no group commit for one without a name.
func TestNoGroupID(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	c := f.dial()
	names := map[siltstone.TopicID]string{topic.ID: "t"}
	for version := int16(1); version <= 10; version++ {
		if got := errorNames(commitCodes(ask[*kmsg.OffsetCommitResponse](c, version, commitOf("", "t", topic.ID, 0)))); !slices.Equal(got, []string{""}) {
			t.Errorf("commit v%d: %q", version, got)
		}
		if _, got := offsetsIn(ask[*kmsg.OffsetFetchResponse](c, version, fetchOffsetsOf("", "t", topic.ID, 0)), names); !slices.Equal(got, []string{"t 0 100 -1  "}) {
			t.Errorf("fetch v%d: %q", version, got)
		}
	}
	if g := ask[*kmsg.DescribeGroupsResponse](c, 6, describeOf("")).Groups[0]; g.State != "Empty" || g.ErrorCode != 0 {
		t.Errorf("%+v", g)
	}
	if g := ask[*kmsg.DeleteGroupsResponse](c, 3, deleteOf("")).Groups[0]; g.ErrorCode != 0 {
		t.Errorf("%+v", g)
	}
	nobody := &member{client: c, protocols: offering("range", "")}
	if got := errorName(nobody.enter(4).ErrorCode); got != "INVALID_GROUP_ID" {
		t.Errorf("join: %q", got)
	}
	for version := range int16(6) {
		if got := errorName(ask[*kmsg.SyncGroupResponse](c, version, nobody.sync()).ErrorCode); got != "INVALID_GROUP_ID" {
			t.Errorf("sync v%d: %q", version, got)
		}
	}
	for version := range int16(5) {
		if got := nobody.beat(version); got != "INVALID_GROUP_ID" {
			t.Errorf("heartbeat v%d: %q", version, got)
		}
	}
	if got := errorName(ask[*kmsg.OffsetDeleteResponse](c, 0, deleteOffsetsOf("", "t", 0)).ErrorCode); got != "INVALID_GROUP_ID" {
		t.Errorf("offset delete: %q", got)
	}
}

// TestOffsetFetchSeveral: from v8 on each group is answered by itself, and once.
func TestOffsetFetchSeveral(t *testing.T) {
	f := start(t)
	topic := f.create("t", 2)
	c := f.dial()
	for version := int16(8); version <= 10; version++ {
		ask[*kmsg.OffsetCommitResponse](c, 7, commitOf("a", "t", topic.ID, 0))
		ask[*kmsg.OffsetCommitResponse](c, 7, commitOf("b", "t", topic.ID, 1))
		q := kmsg.NewPtrOffsetFetchRequest()
		for _, id := range []string{"b", "none", "a", "b"} {
			g := fetchOffsetsOf(id, "t", topic.ID, 0).Groups[0]
			if id != "a" {
				g.Topics = nil // all
			}
			q.Groups = append(q.Groups, g)
		}
		var got []string
		for _, g := range ask[*kmsg.OffsetFetchResponse](c, version, q).Groups {
			said := g.Group + errorName(g.ErrorCode)
			for _, rt := range g.Topics {
				for _, p := range rt.Partitions {
					said += fmt.Sprintf(" %d=%d", p.Partition, p.Offset)
				}
			}
			got = append(got, said)
		}
		if want := []string{"b 1=101", "none", "a 0=100", "bINVALID_REQUEST"}; !slices.Equal(got, want) {
			t.Errorf("v%d: %q, want %q", version, got, want)
		}
	}
	if got := ask[*kmsg.OffsetFetchResponse](c, 8, kmsg.NewPtrOffsetFetchRequest()).Groups; len(got) != 0 {
		t.Errorf("no group: %+v", got)
	}
}

// TestOffsetsOfDeletedTopic: they are shown to nobody, nor to a topic of the same name.
func TestOffsetsOfDeletedTopic(t *testing.T) {
	f := start(t)
	old, kept := f.create("old", 1), f.create("kept", 1)
	c := f.dial()
	ask[*kmsg.OffsetCommitResponse](c, 7, commitOf("g", "old", old.ID, 0))
	ask[*kmsg.OffsetCommitResponse](c, 7, commitOf("g", "kept", kept.ID, 0))
	deleted := kmsg.NewPtrDeleteTopicsRequest()
	deleted.TopicNames, deleted.TimeoutMillis = []string{"old"}, 10_000
	ask[*kmsg.DeleteTopicsResponse](c, 5, deleted)
	check := func(id siltstone.TopicID, want, ofID string) {
		t.Helper()
		names := map[siltstone.TopicID]string{id: "old", kept.ID: "kept"}
		for version := int16(2); version <= 10; version++ {
			all := fetchOffsetsOf("g", "", id)
			all.Topics, all.Groups[0].Topics = nil, nil
			if _, got := offsetsIn(ask[*kmsg.OffsetFetchResponse](c, version, all), names); !slices.Equal(got, []string{"kept 0 100 -1  "}) {
				t.Errorf("v%d, all: %q", version, got)
			}
			w := want
			if version >= 10 {
				w = ofID
			}
			if _, got := offsetsIn(ask[*kmsg.OffsetFetchResponse](c, version, fetchOffsetsOf("g", "old", id, 0)), names); !slices.Equal(got, []string{w}) {
				t.Errorf("v%d: %q, want %q", version, got, w)
			}
		}
	}
	check(old.ID, "old 0 -1 -1  ", "old 0 -1 -1  UNKNOWN_TOPIC_ID")
	again := f.create("old", 1)
	check(again.ID, "old 0 -1 -1  ", "old 0 -1 -1  ")
	check(old.ID, "old 0 -1 -1  ", "old 0 -1 -1  UNKNOWN_TOPIC_ID")
}

func TestOffsetDelete(t *testing.T) {
	f := start(t)
	read, idle := f.create("read", 1), f.create("idle", 2)
	c := f.dial()
	for _, topic := range []*topic.Topic{read, idle} {
		ask[*kmsg.OffsetCommitResponse](c, 7, commitOf("g", topic.Name, topic.ID, 0))
	}
	m := f.newMember("g", string(subscription("read")))
	m.enter(3)
	q := deleteOffsetsOf("g", "read", 0)
	q.Topics = append(q.Topics, deleteOffsetsOf("g", "idle", 0, 1, 2).Topics...)
	q.Topics = append(q.Topics, deleteOffsetsOf("g", "none", 0).Topics...)
	resp := ask[*kmsg.OffsetDeleteResponse](c, 0, q)
	var got []string
	for _, rt := range resp.Topics {
		for _, p := range rt.Partitions {
			got = append(got, fmt.Sprint(rt.Topic, p.Partition, errorName(p.ErrorCode)))
		}
	}
	want := []string{"read0GROUP_SUBSCRIBED_TO_TOPIC", "idle0", "idle1", "idle2UNKNOWN_TOPIC_OR_PARTITION", "none0UNKNOWN_TOPIC_OR_PARTITION"}
	if resp.ErrorCode != 0 || !slices.Equal(got, want) {
		t.Errorf("%s, %q, want %q", errorName(resp.ErrorCode), got, want)
	}
	all := kmsg.NewPtrOffsetFetchRequest()
	all.Group = "g"
	if _, got := offsetsIn(ask[*kmsg.OffsetFetchResponse](c, 7, all), nil); !slices.Equal(got, []string{"read 0 100 -1  "}) {
		t.Errorf("left are %q", got)
	}
	for _, topic := range []string{"read", "none"} {
		resp = ask[*kmsg.OffsetDeleteResponse](c, 0, deleteOffsetsOf("none", topic, 0))
		if errorName(resp.ErrorCode) != "GROUP_ID_NOT_FOUND" || len(resp.Topics) != 0 {
			t.Errorf("%+v", resp)
		}
	}
}

// subscription is a consumer's metadata, v0.
func subscription(topics ...string) []byte {
	s := kmsg.NewConsumerMemberMetadata()
	s.Topics = topics
	return s.AppendTo(nil)
}
