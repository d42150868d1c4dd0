package main

import (
	"net"
	"os"

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

// newLoneNode tells clients to come to addr, or where that is every address of
// this machine, to this machine by its name.
func newLoneNode(engine *agent.Agent, cluster siltstone.ClusterID, addr net.Addr) *loneNode {
	node := kafka.Node{ID: loneNodeID}
	if tcp, ok := addr.(*net.TCPAddr); ok {
		node.Host, node.Port = tcp.IP.String(), int32(tcp.Port)
		if name, err := os.Hostname(); err == nil && tcp.IP.IsUnspecified() {
			node.Host = name
		}
	}
	return &loneNode{engine, kafka.ClusterInfo{
		ID: cluster.String(), Self: loneNodeID, Controller: loneNodeID, Nodes: []kafka.Node{node},
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
