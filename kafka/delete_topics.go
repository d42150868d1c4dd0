package kafka

// DeleteTopics (key 20), v1 to v6.
//
// By name, from v6 on by name or id, each topic by itself; those that exist go
// together, in one entry of the cluster ledger. UNKNOWN_TOPIC_OR_PARTITION for
// a name and UNKNOWN_TOPIC_ID for an id that there is not; INVALID_REQUEST for
// both at once, for neither, and for a topic named twice.

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

func (s *Server) deleteTopics(ctx context.Context, q *kmsg.DeleteTopicsRequest) *kmsg.DeleteTopicsResponse {
	ctx, cancel := context.WithTimeout(ctx, milliseconds(q.TimeoutMillis))
	defer cancel()
	asked := slices.Grow(q.Topics, len(q.TopicNames))
	for i := range q.TopicNames {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &q.TopicNames[i]
		asked = append(asked, t)
	}
	done, err := decide(ctx, s, false, func(v *topic.View) (topic.Decision, deletion) {
		return decideDeletion(v, asked)
	})
	resp := kmsg.NewPtrDeleteTopicsResponse()
	resp.Topics = make([]kmsg.DeleteTopicsResponseTopic, len(asked))
	for i, a := range asked {
		rt := kmsg.NewDeleteTopicsResponseTopic()
		rt.Topic, rt.TopicID = a.Topic, a.TopicID
		if i < len(done.topics) && done.topics[i] != nil {
			rt.Topic, rt.TopicID = &done.topics[i].Name, done.topics[i].ID
		}
		why := changeError(err, done.refused, i)
		rt.ErrorCode, rt.ErrorMessage = s.refuse(why), message(why)
		resp.Topics[i] = rt
	}
	return resp
}

// deletion says for each topic that was asked for which one it is, or why it stays.
type deletion struct {
	topics  []*topic.Topic
	refused []error
}

func decideDeletion(v *topic.View, asked []kmsg.DeleteTopicsRequestTopic) (topic.Decision, deletion) {
	d := deletion{topics: make([]*topic.Topic, len(asked)), refused: make([]error, len(asked))}
	var ids []siltstone.TopicID
	var places []int
	for i, a := range asked {
		t, err := findTopic(v, a.Topic, a.TopicID)
		if err != nil {
			d.refused[i] = err
			continue
		}
		d.topics[i] = t
		ids, places = append(ids, t.ID), append(places, i)
	}
	decision, refused := topic.Delete(v, ids)
	for i, place := range places {
		d.refused[place] = refused[i]
	}
	return decision, d
}

// findTopic finds a topic by its name or its id; one must be given.
func findTopic(v *topic.View, name *string, id siltstone.TopicID) (*topic.Topic, error) {
	byID := id != siltstone.TopicID{}
	var t *topic.Topic
	var ok bool
	switch {
	case byID == (name != nil):
		return nil, fmt.Errorf("a topic is given by its name or its id: %w", kerr.InvalidRequest)
	case byID:
		if t, ok = v.TopicByID(id); !ok {
			return nil, kerr.UnknownTopicID
		}
	default:
		if t, ok = v.Topic(*name); !ok {
			return nil, kerr.UnknownTopicOrPartition
		}
	}
	return t, nil
}
