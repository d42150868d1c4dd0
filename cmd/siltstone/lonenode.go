package main

import (
	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/kafka"
)

const loneNodeID = 1

// loneNode is a cluster whose one agent leads whatever is led.
type loneNode struct {
	engine *agent.Agent
	info   kafka.ClusterInfo
}

// newLoneNode tells clients to come to an address.
func newLoneNode(engine *agent.Agent, at address, zone string) *loneNode {
	node := kafka.Node{ID: loneNodeID, Host: at.host, Port: at.port, Rack: zone}
	return &loneNode{engine, kafka.ClusterInfo{
		ID: engine.Cluster().String(), Self: loneNodeID, Controller: loneNodeID, Nodes: []kafka.Node{node},
	}}
}

// Describe the one node.
func (l *loneNode) Describe() kafka.ClusterInfo { return l.info }

// Leader is the one node, where it leads.
func (l *loneNode) Leader(tp siltstone.TopicPartition) (int32, siltstone.Epoch, bool) {
	epoch, ok := l.engine.Leads(tp)
	return loneNodeID, epoch, ok
}

// Coordinator is the one node, where it coordinates.
func (l *loneNode) Coordinator(group string) (int32, bool) {
	return loneNodeID, l.engine.Coordinates(group)
}
