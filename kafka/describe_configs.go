package kafka

// DescribeConfigs (key 32), v1 to v4.
//
// Of a topic: every setting that there is, with its value, where that comes
// from, and, when asked, the synonyms that give it; or those named. Of a
// broker: the cluster's settings, which are the same for all, by the id of a
// live node; with an empty name only those that were set. From v3 on a setting
// has its type and, when asked, what it means. Other resources are
// INVALID_REQUEST. A resource that is named twice is described once.

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/topic"
)

func (s *Server) describeConfigs(_ context.Context, q *kmsg.DescribeConfigsRequest) *kmsg.DescribeConfigsResponse {
	resp := kmsg.NewPtrDescribeConfigsResponse()
	described := map[resource]bool{}
	for i := range q.Resources {
		r := &q.Resources[i]
		of := resource{r.ResourceType, r.ResourceName}
		if described[of] {
			continue
		}
		described[of] = true
		rr := kmsg.NewDescribeConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = r.ResourceType, r.ResourceName
		entries, err := s.configsOf(r)
		rr.ErrorCode, rr.ErrorMessage = s.refuse(err), message(err)
		for j := range entries {
			if len(r.ConfigNames) == 0 || slices.Contains(r.ConfigNames, entries[j].Name) {
				rr.Configs = append(rr.Configs, describedConfig(&entries[j], q))
			}
		}
		resp.Resources = append(resp.Resources, rr)
	}
	return resp
}

func (s *Server) configsOf(r *kmsg.DescribeConfigsRequestResource) ([]topic.ConfigEntry, error) {
	view := s.topics.Topics()
	switch r.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		t, ok := view.Topic(r.ResourceName)
		if !ok {
			return nil, noTopic(r.ResourceName)
		}
		return topic.Describe(view, t), nil
	case kmsg.ConfigResourceTypeBroker:
		entries := topic.DescribeCluster(view)
		if r.ResourceName == "" {
			return slices.DeleteFunc(entries, func(e topic.ConfigEntry) bool {
				return e.Source != topic.SourceCluster
			}), nil
		}
		if err := s.liveNode(r.ResourceName); err != nil {
			return nil, err
		}
		return entries, nil
	}
	return nil, fmt.Errorf("%s has no settings here: %w", r.ResourceType, kerr.InvalidRequest)
}

// liveNode wants the id of one.
func (s *Server) liveNode(name string) error {
	if id, err := strconv.ParseInt(name, 10, 32); err == nil {
		info := s.cluster.Describe()
		if _, live := info.node(int32(id)); live {
			return nil
		}
	}
	return fmt.Errorf("no live node %q: %w", name, kerr.InvalidRequest)
}

func describedConfig(e *topic.ConfigEntry, q *kmsg.DescribeConfigsRequest) kmsg.DescribeConfigsResponseResourceConfig {
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name, c.Value = e.Name, configValue(e)
	c.Source, c.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
	c.ReadOnly, c.IsSensitive = e.ReadOnly, e.Sensitive
	c.IsDefault = e.Source == topic.SourceDefault
	if q.IncludeDocumentation {
		c.Documentation = &e.Doc
	}
	if q.IncludeSynonyms {
		for _, synonym := range e.Synonyms {
			rs := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			rs.Name, rs.Source = synonym.Name, kmsg.ConfigSource(synonym.Source)
			if !e.Sensitive {
				rs.Value = &synonym.Value
			}
			c.ConfigSynonyms = append(c.ConfigSynonyms, rs)
		}
	}
	return c
}

// configValue is nil for what must not be shown.
func configValue(e *topic.ConfigEntry) *string {
	if e.Sensitive {
		return nil
	}
	return &e.Value
}
