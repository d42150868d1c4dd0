package kafka

// FindCoordinator (key 10), v0 to v6.
//
// There are no consumer groups, transactions or share groups yet, so there is
// no coordinator of one: every key is answered UNSUPPORTED_VERSION, which
// clients do not retry and report in so many words, with a message that says
// what is missing. (COORDINATOR_NOT_AVAILABLE would keep them asking for ever.)
// A key type that Kafka does not have either is INVALID_REQUEST.
//
// It is served all the same because librdkafka takes a broker that lists
// FindCoordinator v0 for one that understands LZ4, and sends LZ4 to no other.

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// coordinatorTypes says what has coordinators, by the protocol's number, and
// since which version of the request.
var coordinatorTypes = []struct {
	name  string
	since int16
}{{"consumer groups", 0}, {"transactions", 1}, {"share groups", 6}}

func (s *Server) findCoordinator(_ context.Context, q *kmsg.FindCoordinatorRequest) *kmsg.FindCoordinatorResponse {
	err := error(kerr.InvalidRequest)
	if t := int(q.CoordinatorType); 0 <= t && t < len(coordinatorTypes) && q.Version >= coordinatorTypes[t].since {
		err = fmt.Errorf("this release does not serve %s: %w", coordinatorTypes[t].name, kerr.UnsupportedVersion)
	}
	code, says := s.refuse(err), message(err)
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if q.Version < 4 {
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Port = code, says, -1, -1
		return resp
	}
	resp.Coordinators = make([]kmsg.FindCoordinatorResponseCoordinator, len(q.CoordinatorKeys))
	for i, key := range q.CoordinatorKeys {
		c := kmsg.NewFindCoordinatorResponseCoordinator()
		c.Key, c.NodeID, c.Port, c.ErrorCode, c.ErrorMessage = key, -1, -1, code, says
		resp.Coordinators[i] = c
	}
	return resp
}
