package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPrintGroup(t *testing.T) {
	lags := []partitionLag{
		{Topic: "audit", Partition: 0, Committed: new(int64(7)), Error: "no such topic"},
		{Topic: "orders", Partition: 0, Committed: new(int64(40)), End: 1040, Lag: 1000, Member: "m-1", Client: "billing", Host: "/10.0.0.1"},
		{Topic: "orders", Partition: 1, End: 5, Lag: 5, Member: "m-1", Client: "billing", Host: "/10.0.0.1"},
	}
	g := describedGroup{
		Group: "billing", State: "Stable", Protocol: "consumer", Assignor: "range", Coordinator: 1,
		Members: []describedMember{
			{ID: "m-1", Client: "billing", Host: "/10.0.0.1", Partitions: 2},
			{ID: "m-2", Client: "billing", Host: "/10.0.0.2"},
		},
		Partitions: lags, SampleSeconds: 5,
	}
	earlier := []partitionLag{lags[0], {Topic: "orders", Partition: 0, Committed: new(int64(0)), End: 1030}, {Topic: "orders", Partition: 1, End: 5}}
	g.Topics, g.Total = topicLags(earlier, lags, 5*time.Second)
	for _, tt := range []struct {
		name string
		g    describedGroup
		want string
	}{
		{"sampled", g, `billing  Stable, 2 members, 3 partitions
protocol consumer, assignor range, coordinator 1
TOPIC   PARTITION  COMMITTED  END   LAG   MEMBER  CLIENT   HOST
audit   0          7          -     -     -       -        -
orders  0          40         1040  1000  m-1     billing  /10.0.0.1
orders  1          -          5     5     m-1     billing  /10.0.0.1
-       -          -          -     -     m-2     billing  /10.0.0.2
audit, partition 0: no such topic

within 5.0 s
TOPIC   LAG   WRITTEN/S  READ/S  OUTLOOK
audit   0     0          0       caught up
orders  1005  2.0        8.0     drains in 2m47s
(all)   1005  2.0        8.0     drains in 2m47s
`},
		{"once", describedGroup{
			Group: "copy", State: "Empty", Partitions: lags[1:2], Topics: []topicLag{{Topic: "orders", Lag: 1000}},
		}, `copy  Empty, 0 members, 1 partition
TOPIC   PARTITION  COMMITTED  END   LAG   MEMBER  CLIENT   HOST
orders  0          40         1040  1000  m-1     billing  /10.0.0.1

TOPIC   LAG
orders  1000
`},
		{"nothing", describedGroup{Group: "new", State: "Empty", SampleSeconds: 5}, `new  Empty, 0 members, 0 partitions
nothing is committed, and nothing assigned
`},
	} {
		var out strings.Builder
		if err := printGroup(&out, tt.g); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, out.String()); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

func TestNamedMembers(t *testing.T) {
	members := []describedMember{{ID: "m-1", Host: "/10.0.0.1"}, {ID: "m-2", Instance: new("static"), Host: "/10.0.0.2"}}
	if got, want := namedMembers(members), "2 members (m-1 at 10.0.0.1, static at 10.0.0.2)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := namedMembers(make([]describedMember, 100)); !strings.HasPrefix(got, "100 members (") || strings.Count(got, " at ") != 5 || !strings.HasSuffix(got, ", ...)") {
		t.Errorf("of 100: %q", got)
	}
}

func TestParseStates(t *testing.T) {
	got, err := parseStates([]string{"stable", "PREPARINGREBALANCE", "Empty"})
	if diff := cmp.Diff([]string{"Stable", "PreparingRebalance", "Empty"}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, wrong := range []string{"", "Stabel"} {
		if got, err := parseStates([]string{wrong}); err == nil {
			t.Errorf("%q is %v", wrong, got)
		}
	}
}
