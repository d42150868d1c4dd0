package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consumerOf is a consumer as its flags say.
func consumerOf(t *testing.T, args ...string) consumer {
	t.Helper()
	var given consumeFlags
	cmd := &cobra.Command{}
	given.register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	got, err := given.consumer("t", cmd.Flags().Changed("key"), time.UnixMilli(1_000_000))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestSpans: --from an offset that is not there yet never begins anywhere else,
// and nothing is read past --until.
func TestSpans(t *testing.T) {
	logs := map[int32]logBounds{
		0: {start: 0, end: 10, fromTime: 4, untilTime: 10},
		1: {start: 5, end: 20, fromTime: 5, untilTime: 12},
	}
	for _, tt := range []struct {
		args string
		want map[int32]span
		says string
	}{
		{"", map[int32]span{0: {0, noEnd}, 1: {5, noEnd}}, ""},
		{"--exit", map[int32]span{0: {0, 10}, 1: {5, 20}}, ""},
		{"--until end", map[int32]span{0: {0, 10}, 1: {5, 20}}, ""},
		{"--from end", map[int32]span{0: {10, noEnd}, 1: {20, noEnd}}, ""},
		{"--from 2 --until 7", map[int32]span{0: {2, 7}, 1: {5, 7}}, ""},
		{"--from 15 --exit", map[int32]span{0: {10, 10}, 1: {15, 20}}, ""},
		{"--from 10 -p 0", map[int32]span{0: {10, noEnd}}, ""},
		{"-p 0-1", map[int32]span{0: {0, noEnd}, 1: {5, noEnd}}, ""},
		{"--from 10m --until 5m", map[int32]span{0: {4, 10}, 1: {5, 12}}, ""},
		{"--from 11 -p 0", nil, "--from 11: the longest that is read ends at offset 10"},
		{"--from 21", nil, "--from 21: the longest that is read ends at offset 20"},
		{"--from 1769846400000", nil, "is marked, --from @1769846400000"},
		{"-p 1-2", nil, "no partition 2: it has 2 partitions"},
	} {
		c := consumerOf(t, strings.Fields(tt.args)...)
		got, err := c.spans(logs)
		if tt.says != "" {
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: %v, want %q", tt.args, err, tt.says)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(span{})); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", tt.args, err, diff)
		}
	}
}

func TestWants(t *testing.T) {
	record := func(offset, millis int64, key []byte) *kgo.Record {
		return &kgo.Record{Offset: offset, Timestamp: time.UnixMilli(millis), Key: key}
	}
	for _, tt := range []struct {
		args   string
		record *kgo.Record
		want   bool
	}{
		{"", record(0, 0, nil), true},
		{"--from 5", record(4, 0, nil), false},
		{"--from 5", record(5, 0, nil), true},
		{"--from 10s", record(0, 989_999, nil), false},
		{"--from 10s", record(0, 990_000, nil), true},
		{"--key k", record(0, 0, []byte("k")), true},
		{"--key k", record(0, 0, []byte("kk")), false},
		{"--key=", record(0, 0, []byte{}), true},
		{"--key=", record(0, 0, nil), false},
	} {
		c := consumerOf(t, strings.Fields(tt.args)...)
		if got := c.wants(tt.record); got != tt.want {
			t.Errorf("%s, %+v: %v", tt.args, tt.record, got)
		}
	}
}
