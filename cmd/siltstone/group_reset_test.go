package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// TestResetTarget: no offset is ever outside of its log.
func TestResetTarget(t *testing.T) {
	const starts, ends = "the log starts there", "the log ends there"
	log := partitionLog{start: 100, end: 200, atTime: 150}
	old := int64(120)
	for _, tt := range []struct {
		name    string
		to      resetTarget
		old     *int64
		want    int64
		clamped string
	}{
		{"earliest", resetTarget{flag: "to-earliest"}, &old, 100, ""},
		{"latest", resetTarget{flag: "to-latest"}, nil, 200, ""},
		{"time", resetTarget{flag: "to-time"}, nil, 150, ""},
		{"offset", resetTarget{flag: "to-offset", at: 130}, nil, 130, ""},
		{"offset at the start", resetTarget{flag: "to-offset", at: 100}, nil, 100, ""},
		{"offset at the end", resetTarget{flag: "to-offset", at: 200}, nil, 200, ""},
		{"offset below", resetTarget{flag: "to-offset", at: 99}, nil, 100, starts},
		{"offset above", resetTarget{flag: "to-offset", at: 201}, nil, 200, ends},
		{"forward", resetTarget{flag: "shift-by", shift: 5}, &old, 125, ""},
		{"back", resetTarget{flag: "shift-by", shift: -5}, &old, 115, ""},
		{"back too far", resetTarget{flag: "shift-by", shift: -21}, &old, 100, starts},
		{"forward too far", resetTarget{flag: "shift-by", shift: 81}, &old, 200, ends},
		{"as far back as there are numbers", resetTarget{flag: "shift-by", shift: math.MinInt64}, &old, 100, starts},
		{"as far forward", resetTarget{flag: "shift-by", shift: math.MaxInt64}, &old, 200, ends},
	} {
		at, clamped, ok := tt.to.offset(tt.old, log)
		if !ok || at != tt.want || clamped != tt.clamped {
			t.Errorf("%s: %d (%q, %v), want %d (%q)", tt.name, at, clamped, ok, tt.want, tt.clamped)
		}
	}
	if at, _, ok := (resetTarget{flag: "shift-by", shift: 1}).offset(nil, log); ok {
		t.Errorf("nothing, shifted by 1, is %d", at)
	}
}

func TestResetPlan(t *testing.T) {
	logs := topicLogs{"t": {0: {end: 10}, 1: {start: 5, end: 10}, 2: {end: 10}}}
	committed := map[int32]kadm.OffsetResponse{0: {Offset: kadm.Offset{At: 8}}, 1: {Offset: kadm.Offset{At: 8}}}
	r := resetGroup{Group: "g"}
	shift := resetTarget{flag: "shift-by", shift: -4}
	r.plan(topicPartitions{topic: "t"}, committed, logs, shift)
	r.plan(topicPartitions{"t", []int32{0, 7}}, committed, logs, shift)
	r.plan(topicPartitions{topic: "nosuch"}, nil, logs, shift)
	want := resetGroup{
		Group: "g",
		Offsets: []resetOffset{
			{"t", 0, new(int64(8)), 4, ""},
			{"t", 1, new(int64(8)), 5, "the log starts there"},
			{"t", 0, new(int64(8)), 4, ""},
		},
		Skipped: []resetPartition{
			{"t", 2, "nothing is committed that could be shifted"},
			{"t", 7, "there is no such partition: the topic has 3 partitions"},
			{"nosuch", -1, "there is no such topic"},
		},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Fatal(diff)
	}
	busy := resetGroup{Group: "g", Members: []describedMember{{ID: "m-1", Host: "/10.0.0.1"}}}
	var planned strings.Builder
	if err := busy.print(&planned, &planned); err != nil || !strings.HasSuffix(planned.String(), "nothing is changed yet: stop 1 member (m-1 at 10.0.0.1), then --execute does it\n") {
		t.Errorf("with a member: %q, %v", planned.String(), err)
	}
	var out, warnings strings.Builder
	r.Offsets = append(r.Offsets[:2:2], resetOffset{"t", 2, nil, 0, ""})
	if err := r.print(&out, &warnings); err != nil {
		t.Fatal(err)
	}
	wantOut := `TOPIC  PARTITION  OLD  NEW  CLAMPED
t      0          8    4    -
t      1          8    5    the log starts there
t      2          -    0    -
nothing is changed yet: --execute does it
`
	wantWarnings := `siltstone: t, partition 2 is left alone: nothing is committed that could be shifted
siltstone: t, partition 7 is left alone: there is no such partition: the topic has 3 partitions
siltstone: nosuch is left alone: there is no such topic
`
	if diff := cmp.Diff(wantOut, out.String()) + cmp.Diff(wantWarnings, warnings.String()); diff != "" {
		t.Error(diff)
	}
}

func TestParseTopicPartitions(t *testing.T) {
	got, err := parseTopicPartitions([]string{"a:3", "b", "a:0-2,2,7", "b:1", "c:1", "c"})
	want := []topicPartitions{{"a", []int32{0, 1, 2, 3, 7}}, {"b", nil}, {"c", nil}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(topicPartitions{})); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, in := range []string{"", ":1", "a:", "a:x", "a:-1", "a:3-1", "a:1-", "a:99999999999", "a:0-2147483647", "a:1:2"} {
		if got, err := parseTopicPartitions([]string{in}); err == nil {
			t.Errorf("%q is %v", in, got)
		}
	}
}

func TestResetTargetIsOne(t *testing.T) {
	for _, tt := range []struct {
		to    resetTarget
		given string
		says  string
	}{
		{resetTarget{earliest: true}, "to-earliest", ""},
		{resetTarget{}, "shift-by", ""},
		{resetTarget{time: "7"}, "to-time", ""},
		{resetTarget{}, "", "give one of --to-earliest, --to-latest, --to-offset, --to-time, --shift-by"},
		{resetTarget{latest: true}, "to-latest shift-by", "give one of"},
		{resetTarget{}, "to-latest", "--to-latest=false"},
		{resetTarget{at: -1}, "to-offset", "--to-offset -1 is below 0"},
		{resetTarget{time: "soon"}, "to-time", "--to-time"},
	} {
		given := strings.Fields(tt.given)
		err := tt.to.check(func(flag string) bool { return slices.Contains(given, flag) })
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: %v, want %q", tt.given, err, tt.says)
		}
	}
}

func TestExplainGroup(t *testing.T) {
	for _, tt := range []struct {
		err     error
		message string
		says    string
	}{
		{kerr.GroupIDNotFound, "Group g not found.", `there is no group "g": siltstone group list`},
		{kerr.NonEmptyGroup, "The group is not empty.", `group "g" has members: stop them first`},
		{kerr.UnknownMemberID, "", "has got members meanwhile"},
		{kerr.InvalidGroupID, "", "no name of a group"},
		{kerr.CoordinatorNotAvailable, "asleep", `group "g": asleep`},
		{errors.New("broken"), "", `group "g": broken`},
	} {
		if got := explainGroup("g", tt.err, tt.message).Error(); !strings.Contains(got, tt.says) {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.says)
		}
	}
}
