package kafka

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestDescribeCluster(t *testing.T) {
	f := start(t)
	c := f.dial()
	for version := range int16(3) {
		q := kmsg.NewPtrDescribeClusterRequest()
		q.IncludeClusterAuthorizedOperations = version == 1
		resp := ask[*kmsg.DescribeClusterResponse](c, version, q)
		if resp.ErrorCode != 0 || resp.ClusterID != "cluster-of-tests" || resp.ControllerID != 0 || len(resp.Brokers) != 2 {
			t.Errorf("v%d: %+v", version, resp)
		}
		if resp.Brokers[0].Rack != nil || *resp.Brokers[1].Rack != "zone-b" || resp.Brokers[1].IsFenced {
			t.Errorf("v%d: %+v", version, resp.Brokers)
		}
		want := notAsked
		if version == 1 {
			want = clusterOperations
		}
		if resp.ClusterAuthorizedOperations != want {
			t.Errorf("v%d: operations %d, want %d", version, resp.ClusterAuthorizedOperations, want)
		}
	}
	for endpoint, want := range map[int8]string{2: "MISMATCHED_ENDPOINT_TYPE", 3: "UNSUPPORTED_ENDPOINT_TYPE"} {
		q := kmsg.NewPtrDescribeClusterRequest()
		q.EndpointType = endpoint
		resp := ask[*kmsg.DescribeClusterResponse](c, 1, q)
		if errorName(resp.ErrorCode) != want || len(resp.Brokers) != 0 {
			t.Errorf("endpoint %d: %s, want %s", endpoint, errorName(resp.ErrorCode), want)
		}
	}
}

// TestFindCoordinator: of groups, each key once; of what there is not, an answer
// that no client retries, and that says what is missing.
func TestFindCoordinator(t *testing.T) {
	f := start(t)
	f.cluster.set(func(c *fakeCluster) {
		c.coordinators = map[string]int32{"h": 1, "nobody's": -1, "gone": 9}
	})
	c := f.dial()
	type found struct {
		node int32
		want string
		says string
	}
	absent := func(want, says string) map[string]found {
		return map[string]found{"g": {-1, want, says}, "h": {-1, want, says}}
	}
	for version := range int16(7) {
		for kind, want := range map[int8]map[string]found{
			0: {
				"g": {0, "", ""}, "h": {1, "", ""}, "": {0, "", ""},
				"nobody's": {-1, "COORDINATOR_NOT_AVAILABLE", ""}, "gone": {-1, "COORDINATOR_NOT_AVAILABLE", ""},
			},
			1: absent("CLUSTER_AUTHORIZATION_FAILED", "does not serve transactions"),
			2: absent("UNSUPPORTED_VERSION", "does not serve share groups"),
			3: absent("INVALID_REQUEST", ""),
		} {
			if version == 0 && kind != 0 {
				continue // has no type
			}
			if kind == 2 && version < 6 {
				want = absent("INVALID_REQUEST", "")
			}
			for key, w := range want {
				q := kmsg.NewPtrFindCoordinatorRequest()
				q.CoordinatorKey, q.CoordinatorKeys, q.CoordinatorType = key, []string{key, "h", key}, kind
				resp := ask[*kmsg.FindCoordinatorResponse](c, version, q)
				got := kmsg.FindCoordinatorResponseCoordinator{
					NodeID: resp.NodeID, Host: resp.Host, Port: resp.Port, ErrorCode: resp.ErrorCode, ErrorMessage: resp.ErrorMessage,
				}
				if version >= 4 {
					if got = resp.Coordinators[0]; got.Key != key || len(resp.Coordinators) == 3 || key != "h" && resp.Coordinators[1].Key != "h" {
						t.Errorf("v%d: %+v", version, resp.Coordinators)
					}
				}
				if errorName(got.ErrorCode) != w.want || got.NodeID != w.node || (got.Host == "127.0.0.1") != (w.want == "") {
					t.Errorf("v%d, type %d, %q: %+v", version, kind, key, got)
				}
				if node := f.cluster.Describe().Nodes; w.node >= 0 && got.Port != node[w.node].Port {
					t.Errorf("v%d, %q: port %d", version, key, got.Port)
				}
				if version == 0 {
					continue // has no message
				}
				if (got.ErrorMessage == nil) != (w.want == "") || w.says != "" && !strings.Contains(*got.ErrorMessage, w.says) {
					t.Errorf("v%d, type %d, %q: message %v", version, kind, key, got.ErrorMessage)
				}
			}
		}
	}
}
