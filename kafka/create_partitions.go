package kafka

// CreatePartitions (key 37), v0 to v3.
//
// Each topic by itself; those that may grow do so together, in one entry of
// the cluster ledger. INVALID_PARTITIONS unless there are to be more than
// there are. A list of replicas for the new ones is checked
// (INVALID_REPLICA_ASSIGNMENT) and not followed: the cluster places them.
// A topic named twice is INVALID_REQUEST; validate_only appends nothing.

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/topic"
)

func (s *Server) createPartitions(ctx context.Context, q *kmsg.CreatePartitionsRequest) *kmsg.CreatePartitionsResponse {
	ctx, cancel := context.WithTimeout(ctx, milliseconds(q.TimeoutMillis))
	defer cancel()
	names, times := distinct(q.Topics, func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic })
	errs := map[string]error{}
	var wanted []topic.NewPartitions
	for i := range q.Topics {
		t := &q.Topics[i]
		err := s.checkNewReplicas(t)
		if times[t.Topic] > 1 {
			err = fmt.Errorf("duplicate topic name: %w", kerr.InvalidRequest)
		}
		if err != nil {
			errs[t.Topic] = err
			continue
		}
		wanted = append(wanted, topic.NewPartitions{Topic: t.Topic, Total: t.Count})
	}
	refused, err := decide(ctx, s, q.ValidateOnly, func(v *topic.View) (topic.Decision, []error) {
		return topic.AddPartitions(v, wanted)
	})
	for i, n := range wanted {
		errs[n.Topic] = changeError(err, refused, i)
	}
	resp := kmsg.NewPtrCreatePartitionsResponse()
	for _, name := range names {
		rt := kmsg.NewCreatePartitionsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = name, s.refuse(errs[name]), message(errs[name])
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// checkNewReplicas wants a list for each new partition, if there is one at all.
func (s *Server) checkNewReplicas(t *kmsg.CreatePartitionsRequestTopic) error {
	if t.Assignment == nil {
		return nil
	}
	have, ok := s.topics.Topics().Topic(t.Topic)
	if ok && t.Count <= have.Partitions {
		return nil // INVALID_PARTITIONS, whatever the lists
	}
	if ok && int(t.Count-have.Partitions) != len(t.Assignment) {
		return fmt.Errorf("%d lists of replicas for %d new partitions: %w",
			len(t.Assignment), t.Count-have.Partitions, kerr.InvalidReplicaAssignment)
	}
	for _, a := range t.Assignment {
		if err := s.checkReplicas(a.Replicas); err != nil {
			return err
		}
	}
	return nil
}
