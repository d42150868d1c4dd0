package kafka

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

// configChange is what a request asks of the settings of one resource.
type configChange struct {
	of      resource
	ops     []topic.ConfigOp
	replace bool // those that no operation names go back to their defaults
}

// changeConfigs makes changes, or where they are only to be validated all but
// that: each resource by itself, and all of its settings or none. It returns
// what they are about, each resource once, and why some are refused.
func (s *Server) changeConfigs(ctx context.Context, validateOnly bool, changes []configChange) ([]resource, map[resource]error) {
	resources, times := distinct(changes, func(c *configChange) resource { return c.of })
	errs := map[resource]error{}
	var topics []topic.Alteration
	for _, c := range changes {
		switch {
		case times[c.of] > 1:
			errs[c.of] = fmt.Errorf("resource is named twice: %w", kerr.InvalidRequest)
		case c.of.kind == kmsg.ConfigResourceTypeTopic:
			topics = append(topics, topic.Alteration{Topic: c.of.name, Ops: c.ops, Replace: c.replace})
		case c.of == resource{kmsg.ConfigResourceTypeBroker, ""}:
			errs[c.of] = s.changeCluster(ctx, validateOnly, &c)
		case c.of.kind == kmsg.ConfigResourceTypeBroker:
			errs[c.of] = s.changeBroker(&c)
		default:
			errs[c.of] = fmt.Errorf("%s has no settings here: %w", c.of.kind, kerr.InvalidRequest)
		}
	}
	if len(topics) > 0 {
		refused, err := decide(ctx, s, validateOnly, func(v *topic.View) (topic.Decision, []error) {
			return topic.AlterConfigs(v, topics)
		})
		for i, t := range topics {
			errs[resource{kmsg.ConfigResourceTypeTopic, t.Topic}] = changeError(err, refused, i)
		}
	}
	return resources, errs
}

func (s *Server) changeCluster(ctx context.Context, validateOnly bool, c *configChange) error {
	alter := topic.AlterCluster
	if c.replace {
		alter = topic.ReplaceCluster
	}
	refused, err := decide(ctx, s, validateOnly, func(v *topic.View) (topic.Decision, []error) {
		d, err := alter(v, c.ops)
		return d, []error{err}
	})
	return changeError(err, refused, 0)
}

// changeBroker takes only what leaves a broker as it is, without settings of its
// own: tools that clean up after themselves unset what they may have set.
func (s *Server) changeBroker(c *configChange) error {
	if err := s.liveNode(c.of.name); err != nil {
		return err
	}
	for _, op := range c.ops {
		if op.Op != topic.Unset {
			return fmt.Errorf("settings are the whole cluster's: leave the broker's name empty (kafka-configs: --entity-default): %w", kerr.InvalidRequest)
		}
	}
	return nil
}
