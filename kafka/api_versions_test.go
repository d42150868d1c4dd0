package kafka

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestVersionTable is what is advertised, written down a second time: a change
// is made on purpose, and in docs/compatibility.md too.
func TestVersionTable(t *testing.T) {
	want := map[kmsg.Key][2]int16{
		kmsg.Produce: {0, 13}, kmsg.Fetch: {4, 18}, kmsg.ListOffsets: {1, 11}, kmsg.Metadata: {0, 13},
		kmsg.FindCoordinator: {0, 6}, kmsg.ApiVersions: {0, 5}, kmsg.CreateTopics: {2, 7}, kmsg.DeleteTopics: {1, 6},
		kmsg.DeleteRecords: {0, 2}, kmsg.AlterConfigs: {0, 2}, kmsg.DescribeLogDirs: {1, 5}, kmsg.ElectLeaders: {0, 2},
		kmsg.AlterPartitionAssignments: {0, 1}, kmsg.ListPartitionReassignments: {0, 0}, kmsg.DescribeProducers: {0, 0}, kmsg.InitProducerID: {0, 5},
		kmsg.OffsetForLeaderEpoch: {2, 4}, kmsg.DescribeConfigs: {1, 4}, kmsg.CreatePartitions: {0, 3},
		kmsg.OffsetCommit: {1, 10}, kmsg.OffsetFetch: {1, 10}, kmsg.JoinGroup: {0, 9}, kmsg.Heartbeat: {0, 4},
		kmsg.LeaveGroup: {0, 5}, kmsg.SyncGroup: {0, 5}, kmsg.DescribeGroups: {0, 6}, kmsg.ListGroups: {0, 5},
		kmsg.DeleteGroups: {0, 3}, kmsg.OffsetDelete: {0, 0},
		kmsg.IncrementalAlterConfigs: {0, 1}, kmsg.DescribeCluster: {0, 2}, kmsg.DescribeTopicPartitions: {0, 0},
	}
	f := start(t)
	c := f.dial()
	for version := range int16(6) {
		resp := ask[*kmsg.ApiVersionsResponse](c, version, named("tests-1.0", "v1.2.3"))
		if version >= 3 {
			continue
		}
		if resp.ErrorCode != 0 || len(resp.ApiKeys) != len(want) {
			t.Errorf("v%d: %s, %d keys, want %d", version, errorName(resp.ErrorCode), len(resp.ApiKeys), len(want))
		}
		for _, k := range resp.ApiKeys {
			if got := [2]int16{k.MinVersion, k.MaxVersion}; got != want[kmsg.Key(k.ApiKey)] {
				t.Errorf("v%d: %s %v, want %v", version, kmsg.NameForKey(k.ApiKey), got, want[kmsg.Key(k.ApiKey)])
			}
		}
	}
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	for key, r := range want {
		if row := fmt.Sprintf("| %s | %d | %d–%d |", apiName(key), key, r[0], r[1]); !strings.Contains(string(page), row) {
			t.Errorf("docs/compatibility.md has no row %q", row)
		}
		if newest := key.Request().MaxVersion(); r[1] != newest {
			t.Errorf("%s is served up to v%d, and kmsg knows v%d", key.Name(), r[1], newest)
		}
	}
}

func TestApiVersionsClient(t *testing.T) {
	f := start(t)
	c := f.dial()
	id, wrong := "cluster-of-tests", "another"
	meant := func(cluster *string, node int32) *kmsg.ApiVersionsRequest {
		q := named("tests", "1")
		q.ClusterID, q.NodeID = cluster, node
		return q
	}
	tests := []struct {
		name    string
		version int16
		q       *kmsg.ApiVersionsRequest
		want    string
	}{
		{"good", 3, named("apache-kafka-java", "4.0.0"), ""},
		{"one letter", 4, named("a", "1"), ""},
		{"space", 3, named("Redpanda Console", "v2.0"), "INVALID_REQUEST"},
		{"empty", 3, named("", ""), "INVALID_REQUEST"},
		{"empty version", 3, named("x", ""), "INVALID_REQUEST"},
		{"ends in a dot", 3, named("x.", "1"), "INVALID_REQUEST"},
		{"begins with a dash", 3, named("-x", "1"), "INVALID_REQUEST"},
		{"not ASCII", 3, named("é", "1"), "INVALID_REQUEST"},
		{"no name needed", 2, named("", ""), ""},
		{"right node", 5, meant(&id, 0), ""},
		{"nobody meant", 5, meant(nil, -1), ""},
		{"wrong node", 5, meant(&id, 1), "REBOOTSTRAP_REQUIRED"},
		{"wrong cluster", 5, meant(&wrong, 0), "REBOOTSTRAP_REQUIRED"},
		{"cluster alone", 5, meant(&id, -1), "INVALID_REQUEST"},
		{"node alone", 5, meant(nil, 0), "INVALID_REQUEST"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := ask[*kmsg.ApiVersionsResponse](c, tt.version, tt.q)
			if errorName(resp.ErrorCode) != tt.want {
				t.Errorf("%q, want %q", errorName(resp.ErrorCode), tt.want)
			}
		})
	}
}
