package kafka

// IncrementalAlterConfigs (key 44), v0 and v1 (KIP-339).
//
// Sets, unsets, appends to and subtracts from settings of topics, each topic
// by itself and all or none of its settings; the others stay as they are. The
// cluster's settings are the broker's with an empty name; a single node has
// none (INVALID_REQUEST). A setting or value that is refused is INVALID_CONFIG
// and named. A resource twice in a request is INVALID_REQUEST for it;
// validate_only appends nothing.

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// resource is what settings belong to.
type resource struct {
	kind kmsg.ConfigResourceType
	name string
}

func resourceOf(r *kmsg.IncrementalAlterConfigsRequestResource) resource {
	return resource{r.ResourceType, r.ResourceName}
}

func (s *Server) incrementalAlterConfigs(ctx context.Context, q *kmsg.IncrementalAlterConfigsRequest) *kmsg.IncrementalAlterConfigsResponse {
	resources, times := distinct(q.Resources, resourceOf)
	errs := map[resource]error{}
	var topics []topic.Alteration
	for i := range q.Resources {
		r := &q.Resources[i]
		of := resourceOf(r)
		switch {
		case times[of] > 1:
			errs[of] = fmt.Errorf("resource is named twice: %w", kerr.InvalidRequest)
		case of.kind == kmsg.ConfigResourceTypeTopic:
			topics = append(topics, topic.Alteration{Topic: of.name, Ops: configOps(r.Configs)})
		case of == resource{kmsg.ConfigResourceTypeBroker, ""}:
			errs[of] = s.alterCluster(ctx, q.ValidateOnly, configOps(r.Configs))
		case of.kind == kmsg.ConfigResourceTypeBroker:
			errs[of] = fmt.Errorf("settings are the whole cluster's: leave the broker's name empty: %w", kerr.InvalidRequest)
		default:
			errs[of] = fmt.Errorf("%s has no settings here: %w", of.kind, kerr.InvalidRequest)
		}
	}
	if len(topics) > 0 {
		refused, err := decide(ctx, s, q.ValidateOnly, func(v *topic.View) (topic.Decision, []error) {
			return topic.AlterConfigs(v, topics)
		})
		for i, t := range topics {
			errs[resource{kmsg.ConfigResourceTypeTopic, t.Topic}] = changeError(err, refused, i)
		}
	}
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	for _, of := range resources {
		rr := kmsg.NewIncrementalAlterConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = of.kind, of.name
		rr.ErrorCode, rr.ErrorMessage = s.refuse(errs[of]), message(errs[of])
		resp.Resources = append(resp.Resources, rr)
	}
	return resp
}

func (s *Server) alterCluster(ctx context.Context, validateOnly bool, ops []topic.ConfigOp) error {
	refused, err := decide(ctx, s, validateOnly, func(v *topic.View) (topic.Decision, []error) {
		d, err := topic.AlterCluster(v, ops)
		return d, []error{err}
	})
	return changeError(err, refused, 0)
}

func configOps(configs []kmsg.IncrementalAlterConfigsRequestResourceConfig) []topic.ConfigOp {
	ops := make([]topic.ConfigOp, len(configs))
	for i, c := range configs {
		ops[i] = topic.ConfigOp{Name: c.Name, Op: topic.Op(c.Op), Value: c.Value}
	}
	return ops
}
