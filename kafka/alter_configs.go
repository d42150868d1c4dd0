package kafka

// AlterConfigs (key 33), v0 to v2.
//
// The settings of a topic, or those of the cluster (the broker's with an empty
// name), become those of the request: one that it does not name goes back to
// its default. Who means to change some and leave the rest wants
// IncrementalAlterConfigs; all else is as there. A null value is
// INVALID_REQUEST, as in Kafka: what is to go back to its default is left out.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/topic"
)

func (s *Server) alterConfigs(ctx context.Context, q *kmsg.AlterConfigsRequest) *kmsg.AlterConfigsResponse {
	changes := make([]configChange, len(q.Resources))
	for i, r := range q.Resources {
		changes[i] = configChange{of: resource{r.ResourceType, r.ResourceName}, replace: true}
		for _, c := range r.Configs {
			changes[i].ops = append(changes[i].ops, topic.ConfigOp{Name: c.Name, Op: topic.Set, Value: c.Value})
		}
	}
	resources, errs := s.changeConfigs(ctx, q.ValidateOnly, changes)
	resp := kmsg.NewPtrAlterConfigsResponse()
	for _, of := range resources {
		rr := kmsg.NewAlterConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = of.kind, of.name
		rr.ErrorCode, rr.ErrorMessage = s.refuse(errs[of]), message(errs[of])
		resp.Resources = append(resp.Resources, rr)
	}
	return resp
}
