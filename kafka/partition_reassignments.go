package kafka

// AlterPartitionReassignments (key 45), v0 and v1 (KIP-455, KIP-860).
//
// Nothing is ever moved: which agent leads a partition is the cluster's to
// say, and its records are in the bucket. The replicas that a partition has
// already, which are its leader alone, are no change and no error; others are
// INVALID_REPLICA_ASSIGNMENT, with the reason. Calling off a reassignment (a
// null list) is NO_REASSIGNMENT_IN_PROGRESS.
//
// ListPartitionReassignments (key 46), v0. There is none.

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (s *Server) alterPartitionReassignments(_ context.Context, q *kmsg.AlterPartitionAssignmentsRequest) *kmsg.AlterPartitionAssignmentsResponse {
	resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
	resp.AllowReplicationFactorChange = q.AllowReplicationFactorChange
	info := s.cluster.Describe()
	for _, t := range q.Topics {
		rt := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			err := s.reassign(&info, t.Topic, &p)
			rp.Partition, rp.ErrorCode, rp.ErrorMessage = p.Partition, s.refuse(err), message(err)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// reassign says why a partition's replicas cannot be these.
func (s *Server) reassign(info *ClusterInfo, name string, p *kmsg.AlterPartitionAssignmentsRequestTopicPartition) error {
	tp, err := s.partition(name, p.Partition)
	switch {
	case err != nil:
		return err
	case p.Replicas == nil:
		return kerr.NoReassignmentInProgress
	}
	if err := s.checkReplicas(p.Replicas); err != nil {
		return err
	}
	leader, _, err := s.leader(info, tp)
	if err == nil && len(p.Replicas) == 1 && p.Replicas[0] == leader {
		return nil
	}
	return fmt.Errorf("the cluster places partitions by itself, and shows the leader as the only replica: %w", kerr.InvalidReplicaAssignment)
}

func (s *Server) listPartitionReassignments(_ context.Context, _ *kmsg.ListPartitionReassignmentsRequest) *kmsg.ListPartitionReassignmentsResponse {
	return kmsg.NewPtrListPartitionReassignmentsResponse()
}
