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

// TestFindCoordinator: an answer that no client retries, and that says what is missing.
func TestFindCoordinator(t *testing.T) {
	f := start(t)
	c := f.dial()
	for version := range int16(7) {
		for kind, says := range map[int8]string{0: "consumer groups", 1: "transactions", 2: "share groups", 3: ""} {
			if version == 0 && kind != 0 {
				continue // has no type
			}
			want := "UNSUPPORTED_VERSION"
			if kind == 2 && version < 6 || kind == 3 {
				want, says = "INVALID_REQUEST", ""
			}
			q := kmsg.NewPtrFindCoordinatorRequest()
			q.CoordinatorKey, q.CoordinatorKeys, q.CoordinatorType = "g", []string{"g", "h"}, kind
			resp := ask[*kmsg.FindCoordinatorResponse](c, version, q)
			if version < 4 {
				if errorName(resp.ErrorCode) != want || resp.NodeID != -1 {
					t.Errorf("v%d, type %d: %+v", version, kind, resp)
				}
				if version > 0 && !strings.Contains(*resp.ErrorMessage, says) {
					t.Errorf("v%d, type %d says %q", version, kind, *resp.ErrorMessage)
				}
				continue
			}
			if len(resp.Coordinators) != 2 || resp.Coordinators[1].Key != "h" {
				t.Fatalf("v%d: %+v", version, resp)
			}
			for _, rc := range resp.Coordinators {
				if errorName(rc.ErrorCode) != want || rc.NodeID != -1 || !strings.Contains(*rc.ErrorMessage, says) {
					t.Errorf("v%d, type %d: %+v", version, kind, rc)
				}
			}
		}
	}
}
