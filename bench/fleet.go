package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// fleetSize is how many agents, or brokers, replicate between as many zones.
const fleetSize = 3

// brokersName is that of as many brokers of Apache Kafka.
const brokersName = kafkaName + ", 3 brokers"

// farStores are what a bucket takes that is not in the same machine.
var farStores = delays{put: 50 * time.Millisecond, get: 20 * time.Millisecond}

// agentsName is that of agents in three zones.
func agentsName(replicas int, d delays) string {
	name := fmt.Sprintf("Siltstone, 3 agents, %d replicas", replicas)
	if d != (delays{}) {
		name += ", PUT and GET 50 and 20 ms later"
	}
	return name
}

// agents are three of this tree's binary over MinIO, each in a zone of its own.
// With three replicas a record is safe once two zones have it, as with the brokers.
func agents(binary string, replicas int, d delays) system {
	return system{agentsName(replicas, d), func(ctx context.Context, dir string) (*server, error) {
		var fleet []*server
		var addrs [][]string
		for i := range fleetSize {
			at, err := freeAddrs(3)
			if err != nil {
				return nil, err
			}
			own := filepath.Join(dir, fmt.Sprint("agent-", i))
			if err := os.Mkdir(own, 0o700); err != nil {
				return nil, err
			}
			addrs, fleet = append(addrs, at), append(fleet, agentAt(at, own))
		}
		s := fleet[0]
		s.others, s.heap = fleet[1:], nil
		stores, err := s.startStores(ctx, binary, d)
		if err != nil {
			return nil, s.closeAfter(err)
		}
		for i, one := range fleet {
			one.argv = agentCommand(binary, addrs[i], append(stores, "--zone", string(rune('a'+i))))
		}
		s.configure = func(ctx context.Context) error {
			alter := exec.CommandContext(ctx, binary, "cluster", "alter", "--kafka", s.addr,
				"--config", fmt.Sprint("siltstone.replicas=", replicas), "--config", "min.insync.replicas=2")
			if out, err := alter.CombinedOutput(); err != nil {
				return fmt.Errorf("setting replicas: %w: %s", err, out)
			}
			return nil
		}
		return s, nil
	}}
}

// brokers are three nodes of Apache Kafka, each broker and controller. A record
// has three replicas, and is acknowledged once those in sync, at least two, have it.
func brokers(jars string) system {
	return system{brokersName, func(ctx context.Context, dir string) (*server, error) {
		addrs, err := freeAddrs(2 * fleetSize)
		if err != nil {
			return nil, err
		}
		var voters []string
		for i := range fleetSize {
			voters = append(voters, fmt.Sprintf("%d@%s", i+1, addrs[2*i+1]))
		}
		var fleet []*server
		for i := range fleetSize {
			own := filepath.Join(dir, fmt.Sprint("broker-", i+1))
			if err := os.Mkdir(own, 0o700); err != nil {
				return nil, err
			}
			settings := fmt.Sprintf(`process.roles=broker,controller
node.id=%d
broker.rack=%c
listeners=PLAINTEXT://%s,CONTROLLER://%s
controller.listener.names=CONTROLLER
controller.quorum.voters=%s
log.dirs=%s
default.replication.factor=%d
min.insync.replicas=2
offsets.topic.replication.factor=%[7]d
group.initial.rebalance.delay.ms=0
`, i+1, 'a'+i, addrs[2*i], addrs[2*i+1], strings.Join(voters, ","), filepath.Join(own, "data"), fleetSize)
			one, err := broker(ctx, jars, own, addrs[2*i], settings)
			if err != nil {
				return nil, err
			}
			one.heap = nil
			fleet = append(fleet, one)
		}
		fleet[0].others = fleet[1:]
		return fleet[0], nil
	}}
}
