package kafka

// IncrementalAlterConfigs (key 44), v0 and v1 (KIP-339).
//
// Sets, unsets, appends to and subtracts from settings of topics, each topic
// by itself and all or none of its settings; the others stay as they are. The
// cluster's settings are the broker's with an empty name. A single node has
// none: there is nothing to unset, and none can be set (INVALID_REQUEST). A
// setting or value that is refused is INVALID_CONFIG and named. A resource
// twice in a request is INVALID_REQUEST for it; validate_only appends nothing.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/topic"
)

func (s *Server) incrementalAlterConfigs(ctx context.Context, q *kmsg.IncrementalAlterConfigsRequest) *kmsg.IncrementalAlterConfigsResponse {
	changes := make([]configChange, len(q.Resources))
	for i, r := range q.Resources {
		changes[i].of = resource{r.ResourceType, r.ResourceName}
		for _, c := range r.Configs {
			changes[i].ops = append(changes[i].ops, topic.ConfigOp{Name: c.Name, Op: topic.Op(c.Op), Value: c.Value})
		}
	}
	resources, errs := s.changeConfigs(ctx, q.ValidateOnly, changes)
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	for _, of := range resources {
		rr := kmsg.NewIncrementalAlterConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = of.kind, of.name
		rr.ErrorCode, rr.ErrorMessage = s.refuse(errs[of]), message(errs[of])
		resp.Resources = append(resp.Resources, rr)
	}
	return resp
}
