package kafka

// CreateTopics (key 19), v2 to v7.
//
// Each topic by itself; those that may be are created together, in one entry
// of the cluster ledger. The names of Kafka's internal topics are reserved
// (INVALID_TOPIC_EXCEPTION). A name twice in a request is INVALID_REQUEST for it.
// -1 partitions are num.partitions. A replication factor of -1 or 1 to 3 means
// the cluster's own. A list of replicas is checked (INVALID_REPLICA_ASSIGNMENT)
// and says only how many partitions there are: the cluster places them.
// validate_only decides and appends nothing. From v5 on the answer has the
// topic's partitions, replication factor and settings, from v7 on its id.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// shownReplicas is how many replicas Metadata shows of a partition.
const shownReplicas = 1

func (s *Server) createTopics(ctx context.Context, q *kmsg.CreateTopicsRequest) *kmsg.CreateTopicsResponse {
	ctx, cancel := context.WithTimeout(ctx, milliseconds(q.TimeoutMillis))
	defer cancel()
	names, times := distinct(q.Topics, func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic })
	var wanted []topic.NewTopic
	errs := map[string]error{}
	for i := range q.Topics {
		t := &q.Topics[i]
		if times[t.Topic] > 1 {
			errs[t.Topic] = fmt.Errorf("duplicate topic name: %w", kerr.InvalidRequest)
			continue
		}
		n, err := s.wantedTopic(t)
		if err != nil {
			errs[t.Topic] = err
			continue
		}
		wanted = append(wanted, n)
	}
	refused, err := decide(ctx, s, q.ValidateOnly, func(v *topic.View) (topic.Decision, []error) {
		return topic.Create(v, wanted)
	})
	for i, n := range wanted {
		errs[n.Name] = changeError(err, refused, i)
	}
	resp := kmsg.NewPtrCreateTopicsResponse()
	for _, name := range names {
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = name, s.refuse(errs[name]), message(errs[name])
		if errs[name] == nil {
			at := slices.IndexFunc(wanted, func(n topic.NewTopic) bool { return n.Name == name })
			s.describeCreated(&rt, &wanted[at], q.ValidateOnly)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// wantedTopic is the topic that a request describes.
func (s *Server) wantedTopic(t *kmsg.CreateTopicsRequestTopic) (topic.NewTopic, error) {
	n := topic.NewTopic{
		Name: t.Topic, ID: s.newTopicID(), Partitions: t.NumPartitions, Replication: t.ReplicationFactor,
		CreatedMS: time.Now().UnixMilli(),
	}
	if len(t.ReplicaAssignment) > 0 {
		if t.NumPartitions != -1 || t.ReplicationFactor != -1 {
			return n, fmt.Errorf("both a list of replicas and a number of partitions or replicas: %w", kerr.InvalidRequest)
		}
		if err := s.checkAssignment(t.ReplicaAssignment); err != nil {
			return n, err
		}
		n.Partitions = int32(len(t.ReplicaAssignment))
	}
	for _, c := range t.Configs {
		n.Configs = append(n.Configs, topic.Setting{Name: c.Name, Value: c.Value})
	}
	return n, nil
}

// checkAssignment wants partitions 0 to n-1, each on live nodes, as many for each.
func (s *Server) checkAssignment(assigned []kmsg.CreateTopicsRequestTopicReplicaAssignment) error {
	numbers := make([]bool, len(assigned))
	for _, a := range assigned {
		if a.Partition < 0 || int(a.Partition) >= len(assigned) || numbers[a.Partition] {
			return fmt.Errorf("partitions are not 0 to %d, each once: %w", len(assigned)-1, kerr.InvalidReplicaAssignment)
		}
		numbers[a.Partition] = true
		if len(a.Replicas) != len(assigned[0].Replicas) {
			return fmt.Errorf("partitions have different numbers of replicas: %w", kerr.InvalidReplicaAssignment)
		}
		if err := s.checkReplicas(a.Replicas); err != nil {
			return err
		}
	}
	return nil
}

// checkReplicas wants live nodes, each once.
func (s *Server) checkReplicas(replicas []int32) error {
	info := s.cluster.Describe()
	if len(replicas) == 0 || len(replicas) > len(info.Nodes) {
		return fmt.Errorf("%d replicas on %d nodes: %w", len(replicas), len(info.Nodes), kerr.InvalidReplicaAssignment)
	}
	for i, id := range replicas {
		if _, live := info.node(id); !live || slices.Contains(replicas[:i], id) {
			return fmt.Errorf("node %d is not live, or named twice: %w", id, kerr.InvalidReplicaAssignment)
		}
	}
	return nil
}

// describeCreated fills in what became of a topic, or would have.
func (s *Server) describeCreated(rt *kmsg.CreateTopicsResponseTopic, n *topic.NewTopic, validateOnly bool) {
	view := s.topics.Topics()
	t := &topic.Topic{Name: n.Name, Partitions: n.Partitions, Configs: map[string]string{}}
	if !validateOnly {
		created, ok := view.TopicByID(n.ID)
		if !ok {
			return // deleted again already
		}
		t = created
	} else {
		for _, c := range n.Configs {
			t.Configs[c.Name] = *c.Value
		}
		if t.Partitions == -1 {
			t.Partitions = view.Cluster().NumPartitions
		}
	}
	rt.TopicID, rt.NumPartitions, rt.ReplicationFactor = t.ID, t.Partitions, shownReplicas
	for _, e := range topic.Describe(view, t) {
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.Value, c.Source, c.ReadOnly, c.IsSensitive = e.Name, configValue(&e), int8(e.Source), e.ReadOnly, e.Sensitive
		rt.Configs = append(rt.Configs, c)
	}
}
