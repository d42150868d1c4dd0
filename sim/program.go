package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
	"github.com/siltstone-io/siltstone/kafka"
)

// clusterID of every simulated cluster.
var clusterID = siltstone.ClusterID{0x51}

// program is what a node runs: an agent behind the Kafka door, as the wiring
// of the binary has them.
func (o *agentOptions) program(ctx context.Context, n *node) error {
	a, err := agent.New(agent.Options{
		Coordinator: nodeCoordinator{n}, Alone: !o.shared, Bucket: nodeBucket{n}, Cluster: clusterID,
		Incarnation: n.incarnation, Address: n.host, PeerAddress: n.host, Zone: zoneOf(n.host), Peers: n.peers, Rand: n.random(1), Log: n.log,
		Now: n.world.clockOf(n), Wall: n.world.wallOf(n),
		Flush: o.flush, Memory: o.memory, CheckpointEntries: o.checkpointEntries,
		Phase: timerPhase, Turn: n.turn, Plant: n.world.plant,
	})
	if err != nil {
		return err
	}
	server, err := kafka.New(kafka.Options{
		Log: a, Groups: a, Admin: a, Topics: a, Cluster: view{a}, Random: n.random(2), Logger: n.log,
		Limits: kafka.Limits{Drain: time.Second},
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	engine, door := n.part(ctx), n.part(ctx)
	group.Go(func() error {
		if err := a.Run(engine); !errors.Is(err, agent.ErrUnwritten) {
			return err
		}
		return nil // it was stopped while its stores failed
	})
	group.Go(func() error {
		select {
		case <-a.Ready():
			return server.Serve(door, n.listener)
		case <-door.Done():
			return nil
		}
	})
	return group.Wait()
}

// random is a source of randomness for a node's program. Its goroutines draw
// from it one at a time, as they are woken.
func (n *node) random(number uint64) func() uint64 {
	var mu sync.Mutex
	d := newDice(n.world.seed, n.name, number)
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return d.next()
	}
}

// view describes a cluster to the door of one of its agents.
type view struct{ *agent.Agent }

func (v view) Describe() kafka.ClusterInfo {
	s := v.Status()
	info := kafka.ClusterInfo{ID: clusterID.String(), Self: s.Self, Controller: s.Self}
	for _, m := range s.Members {
		info.Nodes = append(info.Nodes, kafka.Node{ID: m.Node, Host: m.Address, Port: 9092, Rack: m.Zone})
	}
	return info
}
