package main

import (
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/kafka"
)

// clusterView is the agents of a cluster, as one of them knows them and Kafka's
// clients see them.
type clusterView struct {
	engine *agent.Agent

	mu      sync.Mutex
	members []agent.MemberInfo // that nodes is of
	nodes   []kafka.Node
}

// Describe is who lives.
func (v *clusterView) Describe() kafka.ClusterInfo {
	s := v.engine.Status()
	info := kafka.ClusterInfo{ID: v.engine.Cluster().String(), Self: s.Self, Controller: s.Self, Nodes: v.nodesOf(s.Members)}
	if len(info.Nodes) > 0 {
		info.Controller = info.Nodes[0].ID // all do the same work; one name for all is less of a riddle
	}
	return info
}

func (v *clusterView) nodesOf(members []agent.MemberInfo) []kafka.Node {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.Equal(members, v.members) {
		return v.nodes
	}
	v.members, v.nodes = members, nil
	for _, m := range members {
		host, text, err := net.SplitHostPort(m.Address)
		port, err2 := strconv.ParseUint(text, 10, 16)
		if err == nil && err2 == nil {
			v.nodes = append(v.nodes, kafka.Node{ID: m.Node, Host: host, Port: int32(port), Rack: m.Zone})
		}
	}
	return v.nodes
}

// Leader is who leads the partition's shard.
func (v *clusterView) Leader(tp siltstone.TopicPartition) (int32, siltstone.Epoch, bool) {
	l := v.engine.Leader(tp)
	return l.Node, l.Epoch, l.Node >= 0
}

// Coordinator is who coordinates the group.
func (v *clusterView) Coordinator(group string) (int32, bool) {
	l := v.engine.Coordinator(group)
	return l.Node, l.Node >= 0
}
