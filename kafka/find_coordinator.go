package kafka

// FindCoordinator (key 10), v0 to v6.
//
// The node that coordinates a group, from v4 on of several, each answered once;
// where none does, or none that lives, COORDINATOR_NOT_AVAILABLE, on which
// clients ask again.
// There are no transactions or share groups yet, and a message says so. For
// transactions it comes with CLUSTER_AUTHORIZATION_FAILED: librdkafka asks for
// ever after any other error but TRANSACTIONAL_ID_AUTHORIZATION_FAILED, of which
// Java does not show the message. For share groups it is UNSUPPORTED_VERSION. A
// key type that Kafka does not have either is INVALID_REQUEST.
//
// librdkafka takes a broker that lists FindCoordinator v0 for one that
// understands LZ4, and sends LZ4 to no other.

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// coordinatorTypes says what has coordinators, by the protocol's number, since
// which version of the request, and the error where this release has none.
var coordinatorTypes = []struct {
	name    string
	since   int16
	missing error
}{
	{"consumer groups", 0, nil},
	{"transactions", 1, kerr.ClusterAuthorizationFailed},
	{"share groups", 6, kerr.UnsupportedVersion},
}

func (s *Server) findCoordinator(_ context.Context, q *kmsg.FindCoordinatorRequest) *kmsg.FindCoordinatorResponse {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	info := s.cluster.Describe()
	err := checkCoordinatorType(q)
	if q.Version < 4 {
		c := s.coordinator(&info, q.CoordinatorKey, err)
		resp.NodeID, resp.Host, resp.Port = c.NodeID, c.Host, c.Port
		resp.ErrorCode, resp.ErrorMessage = c.ErrorCode, c.ErrorMessage
		return resp
	}
	keys, _ := distinct(q.CoordinatorKeys, func(key *string) string { return *key })
	resp.Coordinators = make([]kmsg.FindCoordinatorResponseCoordinator, len(keys))
	for i, key := range keys {
		resp.Coordinators[i] = s.coordinator(&info, key, err)
	}
	return resp
}

func checkCoordinatorType(q *kmsg.FindCoordinatorRequest) error {
	switch t := int(q.CoordinatorType); {
	case t < 0 || t >= len(coordinatorTypes) || q.Version < coordinatorTypes[t].since:
		return kerr.InvalidRequest
	case coordinatorTypes[t].missing != nil:
		return fmt.Errorf("this release does not serve %s: %w", coordinatorTypes[t].name, coordinatorTypes[t].missing)
	}
	return nil
}

// coordinator is the node that coordinates a group, unless err says why there is none.
func (s *Server) coordinator(info *ClusterInfo, id string, err error) kmsg.FindCoordinatorResponseCoordinator {
	c := kmsg.NewFindCoordinatorResponseCoordinator()
	c.Key, c.NodeID, c.Port = id, -1, -1
	if err == nil {
		err = kerr.CoordinatorNotAvailable
		if at, ok := s.cluster.Coordinator(id); ok {
			if n, live := info.node(at); live {
				c.NodeID, c.Host, c.Port = n.ID, n.Host, n.Port
				err = nil
			}
		}
	}
	c.ErrorCode, c.ErrorMessage = s.refuse(err), message(err)
	return c
}
