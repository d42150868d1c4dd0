package main

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// TestLag counts records that are still there and not yet committed.
func TestLag(t *testing.T) {
	at := func(n int64) *int64 { return &n }
	for _, tt := range []struct {
		name       string
		start, end int64
		committed  *int64
		want       int64
	}{
		{"behind", 0, 100, at(40), 60},
		{"at the end", 0, 100, at(100), 0},
		{"past the end, which a reset log may have", 0, 100, at(120), 0},
		{"nothing committed", 30, 100, nil, 70},
		{"committed what is deleted since", 30, 100, at(10), 70},
		{"empty log", 100, 100, at(40), 0},
	} {
		if got := lagOf(tt.start, tt.end, tt.committed); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestPace(t *testing.T) {
	for _, tt := range []struct {
		lag, written, read int64
		took               time.Duration
		want               string
	}{
		{0, 0, 0, time.Second, "caught up"},
		{0, 500, 100, time.Second, "caught up"},
		{1000, 0, 50, 10 * time.Second, "drains in 3m20s"}, // 1000 / (5 - 0)
		{1000, 40, 50, 10 * time.Second, "drains in 16m40s"},
		{1, 0, 50, time.Second, "less than 1s"},
		{1000, 0, 0, 5 * time.Second, "stays"},
		{1000, 600, 600, 5 * time.Second, "stays"},
		{1000, 1200, 600, 5 * time.Second, "grows by 120/s"},
		{1000, 1, 0, 5 * time.Second, "grows by 0.2/s"},
		{1000, 0, -10_000, 5 * time.Second, "grows by 2,000/s"}, // offsets were reset
		{1000, -10, 0, 5 * time.Second, "drains in 8m20s"},      // an end went back
		{200_000, 0, 1, time.Second, "drains in 2 days"},
		{math.MaxInt64, 0, 1, time.Hour, "more than 1,000 days"},
	} {
		p := newPace(tt.lag, tt.written, tt.read, tt.took)
		if got := p.String(); !strings.HasSuffix(got, tt.want) {
			t.Errorf("lag %d, %d written and %d read in %v: %q, want %q", tt.lag, tt.written, tt.read, tt.took, got, tt.want)
		}
	}
}

// TestTopicLags: rates compare what both samples know, and nothing else.
func TestTopicLags(t *testing.T) {
	at := func(n int64) *int64 { return &n }
	before := []partitionLag{
		{Topic: "a", Partition: 0, Committed: at(0), End: 100},
		{Topic: "a", Partition: 2, Error: "not known then"},
		{Topic: "a", Partition: 10, End: 100},
		{Topic: "b", Partition: 0, Committed: at(5), End: 10},
		{Topic: "gone", Partition: 0, Committed: at(5), End: 10},
	}
	now := []partitionLag{
		{Topic: "a", Partition: 0, Committed: at(50), End: 110, Lag: 60},
		{Topic: "a", Partition: 1, Committed: at(5000), End: 9000, Lag: 4000}, // new
		{Topic: "a", Partition: 2, Committed: at(7), End: 9, Lag: 2},
		{Topic: "a", Partition: 10, Committed: at(70), End: 130, Lag: 60}, // its first commit
		{Topic: "b", Partition: 0, Committed: at(5), End: 30, Lag: 25},
	}
	topics, total := topicLags(before, now, 10*time.Second)
	wantTopics := []topicLag{
		{"a", 4122, &pace{4, 5, drains, new(4122.0)}},
		{"b", 25, &pace{2, 0, grows, nil}},
	}
	if diff := cmp.Diff(wantTopics, topics); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(topicLag{"", 4147, &pace{6, 5, grows, nil}}, total); diff != "" {
		t.Error(diff)
	}
	topics, total = topicLags(now, now, 0)
	if diff := cmp.Diff([]topicLag{{"a", 4122, nil}, {"b", 25, nil}}, topics); diff != "" || total.Pace != nil {
		t.Errorf("without a second sample: total %+v\n%s", total, diff)
	}
}

// TestPartitionLags takes over what is there, and no number of what is not.
func TestPartitionLags(t *testing.T) {
	member := &kadm.DescribedGroupMember{MemberID: "m-1", ClientID: "c", ClientHost: "/10.0.0.1"}
	listed := func(n int64) kadm.ListedOffset { return kadm.ListedOffset{Offset: n} }
	lags := partitionLags(kadm.GroupLag{
		"t": {
			1: {Member: member, Topic: "t", Partition: 1, Commit: kadm.Offset{At: 7}, Start: listed(3), End: listed(10)},
			0: {Topic: "t", Partition: 0, Commit: kadm.Offset{At: -1}, Start: listed(3), End: listed(10)},
		},
		"gone": {0: {Topic: "gone", Commit: kadm.Offset{At: 7}, Lag: -1, Err: kerr.UnknownTopicOrPartition}},
		"half": {0: {Topic: "half", Commit: kadm.Offset{At: 7}, End: listed(10), Start: kadm.ListedOffset{Err: errors.New("no start")}}},
	})
	want := []partitionLag{
		{Topic: "gone", Committed: new(int64(7)), Error: kerr.UnknownTopicOrPartition.Error()},
		{Topic: "half", Committed: new(int64(7)), Error: "no start"},
		{Topic: "t", Partition: 0, Start: 3, End: 10, Lag: 7},
		{Topic: "t", Partition: 1, Committed: new(int64(7)), Start: 3, End: 10, Lag: 3, Member: "m-1", Client: "c", Host: "/10.0.0.1"},
	}
	if diff := cmp.Diff(want, lags); diff != "" {
		t.Error(diff)
	}
}

func TestRate(t *testing.T) {
	for want, r := range map[string]float64{"0": 0, "0.2": 0.2, "9.9": 9.94, "10": 10.4, "-0.5": -0.5, "1,234": 1234.5, "-2,000": -2000} {
		if got := rate(r); got != want {
			t.Errorf("%v/s is %q, want %q", r, got, want)
		}
	}
}
