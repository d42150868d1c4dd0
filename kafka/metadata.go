package kafka

// Metadata (key 3), v0 to v13.
//
// The live nodes, the controller (one of them), and topics: all (v0 an empty
// list, later null), none (an empty list), or those named, by id from v12 on
// (UNKNOWN_TOPIC_ID; v10 and v11 have the field and must leave it empty:
// INVALID_REQUEST). A partition's replicas and ISR are its leader alone:
// copies in other zones are not addressed by clients. A partition without a
// leader that is a live node has LEADER_NOT_AVAILABLE.
//
// A topic that does not exist is created if the request names it and allows
// that (v4 on; before, naming it is allowing it), and the cluster's
// auto.create.topics.enable is on. Else it is UNKNOWN_TOPIC_OR_PARTITION, or
// INVALID_TOPIC_EXCEPTION if its name could not be one.

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// autoCreateTime bounds the creation of topics for a Metadata request, which has no timeout of its own.
const autoCreateTime = 10 * time.Second

func (s *Server) metadata(ctx context.Context, q *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	info := s.cluster.Describe()
	resp.ClusterID, resp.ControllerID = &info.ID, info.Controller
	resp.AuthorizedOperations = operations(q.IncludeClusterAuthorizedOperations, clusterOperations)
	for i := range info.Nodes {
		n := &info.Nodes[i]
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = n.ID, n.Host, n.Port, n.rack()
		resp.Brokers = append(resp.Brokers, b)
	}
	for _, t := range s.askedFor(ctx, q) {
		rt := kmsg.NewMetadataResponseTopic()
		rt.ErrorCode, rt.TopicID = s.refuse(t.err), t.id
		if t.name != "" || t.id == (siltstone.TopicID{}) {
			rt.Topic = &t.name
		}
		if t.topic != nil {
			rt.Partitions = s.metadataPartitions(&info, t.topic)
			rt.AuthorizedOperations = operations(q.IncludeTopicAuthorizedOperations, topicOperations)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// asked is a topic that a request asks for, or why there is none.
type asked struct {
	name  string
	id    siltstone.TopicID
	topic *topic.Topic
	err   error
}

// askedFor finds the topics of a request, each once, and creates those that
// are missing where that is allowed.
func (s *Server) askedFor(ctx context.Context, q *kmsg.MetadataRequest) []asked {
	view := s.topics.Topics()
	if q.Topics == nil || q.Version == 0 && len(q.Topics) == 0 {
		all := make([]asked, 0, view.Len())
		for _, t := range view.All() {
			all = append(all, asked{name: t.Name, id: t.ID, topic: t})
		}
		return all
	}
	var topics []asked
	var missing []string
	byID := q.Version >= 12 && slices.ContainsFunc(q.Topics, func(t kmsg.MetadataRequestTopic) bool {
		return t.TopicID != [16]byte{}
	})
	seen := map[asked]bool{}
	for _, t := range q.Topics {
		a := asked{id: t.TopicID}
		if t.Topic != nil {
			a.name = *t.Topic
		}
		if seen[a] {
			continue
		}
		seen[a] = true
		switch {
		case byID && a.id != siltstone.TopicID{}:
			// A name beside it says nothing: Java's admin client sends an empty one.
			if t, ok := view.TopicByID(a.id); ok {
				a = asked{name: t.Name, id: t.ID, topic: t}
			} else {
				a = asked{id: a.id, err: kerr.UnknownTopicID}
			}
		case byID, a.id != siltstone.TopicID{}, t.Topic == nil:
			a.err = kerr.InvalidRequest
		default:
			if t, ok := view.Topic(a.name); ok {
				a = asked{name: t.Name, id: t.ID, topic: t}
			} else {
				a.err = noTopic(a.name)
				missing = append(missing, a.name)
			}
		}
		topics = append(topics, a)
	}
	if allowed := q.Version < 4 || q.AllowAutoTopicCreation; allowed && len(missing) > 0 && view.Cluster().AutoCreateTopics {
		created := s.autoCreate(ctx, missing)
		for i, a := range topics {
			if c, ok := created[a.name]; ok && a.topic == nil {
				topics[i] = c
			}
		}
	}
	return topics
}

// noTopic is the error of a name that no topic has.
func noTopic(name string) error {
	if topic.CheckName(name) != nil {
		return kerr.InvalidTopicException
	}
	return kerr.UnknownTopicOrPartition
}

// autoCreate creates topics. One that somebody else made meanwhile will do.
func (s *Server) autoCreate(ctx context.Context, names []string) map[string]asked {
	ctx, cancel := context.WithTimeout(ctx, autoCreateTime)
	defer cancel()
	topics := make([]topic.NewTopic, len(names))
	for i, name := range names {
		topics[i] = topic.NewTopic{Name: name, ID: s.newTopicID(), Partitions: -1, Replication: -1, CreatedMS: time.Now().UnixMilli()}
	}
	refused, err := decide(ctx, s, false, func(v *topic.View) (topic.Decision, []error) {
		return topic.Create(v, topics)
	})
	view := s.topics.Topics()
	created := make(map[string]asked, len(names))
	for i, name := range names {
		a := asked{name: name}
		if t, ok := view.Topic(name); ok {
			a.id, a.topic = t.ID, t
		} else {
			a.err = changeError(err, refused, i)
		}
		created[name] = a
	}
	return created
}

func (s *Server) metadataPartitions(info *ClusterInfo, t *topic.Topic) []kmsg.MetadataResponseTopicPartition {
	partitions := make([]kmsg.MetadataResponseTopicPartition, t.Partitions)
	var replicas []int32
	for i := range partitions {
		rp := &partitions[i]
		*rp = kmsg.NewMetadataResponseTopicPartition()
		rp.Partition = int32(i)
		leader, epoch, err := s.leader(info, siltstone.TopicPartition{Topic: t.ID, Partition: int32(i)})
		rp.ErrorCode, rp.Leader, rp.LeaderEpoch = code(err), leader, int32(epoch)
		if err == nil {
			replicas = alone(replicas, leader)
			rp.Replicas, rp.ISR = replicas, replicas
		}
	}
	return partitions
}

// leader is a partition's, if it is a live node.
func (s *Server) leader(info *ClusterInfo, tp siltstone.TopicPartition) (int32, siltstone.Epoch, error) {
	if id, epoch, ok := s.cluster.Leader(tp); ok {
		if _, live := info.node(id); live {
			return id, epoch, nil
		}
	}
	return -1, -1, kerr.LeaderNotAvailable
}

// alone is a list of one id: the last one made, if it will do.
func alone(last []int32, id int32) []int32 {
	if len(last) == 1 && last[0] == id {
		return last
	}
	return []int32{id}
}

// newTopicID is random, and a version 4 UUID as Kafka's are.
func (s *Server) newTopicID() (id siltstone.TopicID) {
	a, b := s.random(), s.random()
	for i := range 8 {
		id[i], id[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}
