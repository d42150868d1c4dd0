package main

import (
	"slices"
	"sync"

	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/kafka"
)

// clusterView is the agents of a cluster, as one of them knows them and Kafka's
// clients see them.
type clusterView struct {
	*agent.Agent

	mu      sync.Mutex
	members []agent.MemberInfo // that nodes is of
	nodes   []kafka.Node
}

// Describe is who lives.
func (v *clusterView) Describe() kafka.ClusterInfo {
	s := v.Status()
	info := kafka.ClusterInfo{ID: v.Cluster().String(), Self: s.Self, Controller: s.Self, Nodes: v.nodesOf(s.Members)}
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
		if at, err := parseAddress("advertise", m.Address); err == nil {
			v.nodes = append(v.nodes, kafka.Node{ID: m.Node, Host: at.host, Port: at.port, Rack: m.Zone})
		}
	}
	return v.nodes
}
