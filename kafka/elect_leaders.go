package kafka

// ElectLeaders (key 43), v0 to v2 (KIP-183, KIP-460).
//
// Leadership is of shards, and the cluster sees to it by itself: there is
// nothing to elect. A partition that has a leader is ELECTION_NOT_NEEDED,
// whichever kind of election is asked for, as in Kafka. One that has none is
// PREFERRED_LEADER_NOT_AVAILABLE, or for an unclean election
// ELIGIBLE_LEADERS_NOT_AVAILABLE: another agent takes over in time, and cannot
// be made to. A null list is all partitions; of those the answer has, as
// Kafka's, only what is not as it should be. Other kinds of election are
// INVALID_REQUEST.

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// leaderless says for each kind of election what a partition without a leader is.
var leaderless = []*kerr.Error{kerr.PreferredLeaderNotAvailable, kerr.EligibleLeadersNotAvailable}

func (s *Server) electLeaders(_ context.Context, q *kmsg.ElectLeadersRequest) *kmsg.ElectLeadersResponse {
	resp := kmsg.NewPtrElectLeadersResponse()
	var unknown error
	if q.ElectionType < 0 || int(q.ElectionType) >= len(leaderless) {
		unknown = fmt.Errorf("there is no election of kind %d: %w", q.ElectionType, kerr.InvalidRequest)
		resp.ErrorCode = s.refuse(unknown)
	}
	info, view := s.cluster.Describe(), s.topics.Topics()
	if q.Topics == nil && unknown == nil {
		for _, t := range view.All() {
			rt := kmsg.NewElectLeadersResponseTopic()
			rt.Topic = t.Name
			for n := range t.Partitions {
				if err := s.elect(&info, q, t, n); kafkaError(err) != kerr.ElectionNotNeeded {
					rt.Partitions = append(rt.Partitions, s.elected(n, err))
				}
			}
			if len(rt.Partitions) > 0 {
				resp.Topics = append(resp.Topics, rt)
			}
		}
		return resp
	}
	for _, asked := range q.Topics {
		rt := kmsg.NewElectLeadersResponseTopic()
		rt.Topic = asked.Topic
		t, _ := view.Topic(asked.Topic)
		for _, n := range asked.Partitions {
			err := unknown
			if err == nil {
				err = s.elect(&info, q, t, n)
			}
			rt.Partitions = append(rt.Partitions, s.elected(n, err))
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// elect is what comes of an election in one partition: no leader, ever.
func (s *Server) elect(info *ClusterInfo, q *kmsg.ElectLeadersRequest, t *topic.Topic, partition int32) error {
	if t == nil || partition < 0 || partition >= t.Partitions {
		return kerr.UnknownTopicOrPartition
	}
	if _, _, err := s.leader(info, siltstone.TopicPartition{Topic: t.ID, Partition: partition}); err != nil {
		return fmt.Errorf("an agent takes over by itself, and cannot be made to: %w", leaderless[q.ElectionType])
	}
	return kerr.ElectionNotNeeded
}

func (s *Server) elected(partition int32, err error) kmsg.ElectLeadersResponseTopicPartition {
	rp := kmsg.NewElectLeadersResponseTopicPartition()
	rp.Partition, rp.ErrorCode, rp.ErrorMessage = partition, s.refuse(err), message(err)
	return rp
}
