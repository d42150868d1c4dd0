package kafka

// DescribeCluster (key 60), v0 to v2.
//
// The nodes of Metadata. From v1 on a client may ask for controllers: agents
// are none, so MISMATCHED_ENDPOINT_TYPE; UNSUPPORTED_ENDPOINT_TYPE for what is
// neither. From v2 on it may ask for fenced brokers too: a node that is not
// live is no node, so there are none. Every client may do all that there is.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	endpointBrokers     = 1
	endpointControllers = 2
)

// What a client may do, as bits of Kafka's AclOperation (KIP-430): there are
// no ACLs, so all that there is to do. notAsked says that it did not ask.
const (
	topicOperations   int32 = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
	groupOperations   int32 = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11
	clusterOperations int32 = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
	notAsked          int32 = -1 << 31
)

func operations(asked bool, all int32) int32 {
	if !asked {
		return notAsked
	}
	return all
}

func (s *Server) describeCluster(_ context.Context, q *kmsg.DescribeClusterRequest) *kmsg.DescribeClusterResponse {
	info := s.cluster.Describe()
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.ClusterID = info.ID
	resp.EndpointType = q.EndpointType
	var err error
	switch q.EndpointType {
	case endpointBrokers:
	case endpointControllers:
		err = kerr.MismatchedEndpointType
	default:
		err = kerr.UnsupportedEndpointType
	}
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = s.refuse(err), message(err)
		return resp
	}
	resp.ControllerID = info.Controller
	resp.ClusterAuthorizedOperations = operations(q.IncludeClusterAuthorizedOperations, clusterOperations)
	for i := range info.Nodes {
		n := &info.Nodes[i]
		b := kmsg.NewDescribeClusterResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = n.ID, n.Host, n.Port, n.rack()
		resp.Brokers = append(resp.Brokers, b)
	}
	return resp
}
