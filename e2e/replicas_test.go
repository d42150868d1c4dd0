package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestAcknowledgedFromMemory: with agents in two zones acks=all waits for no
// flush. What it has acknowledged outlives the leader, of which nothing is in the
// bucket.
func TestAcknowledgedFromMemory(t *testing.T) {
	const records = 200
	stores := ownCluster(t)
	start := func(zone string) *server {
		cmd := stores.agentIn(t, anyPort, zone)
		cmd.Args = append(cmd.Args, "--flush-wait", "3s", "--flush-interval", "40s")
		return startCommand(t, "", cmd)
	}
	agents := []*server{start("a"), start("b")}
	agents[0].cli(t, "", "topic", "create", "memory", "--partitions", "1")
	leader, other := agents[0], agents[1]
	eventually(t, "somebody leads, and has a replica", func() bool {
		if !agents[0].leads(t, "memory") {
			leader, other = other, leader
		}
		return leader.leads(t, "memory") && leader.metric(t, "siltstone_agent_under_replicated_shards") == 0
	})
	began := time.Now()
	agents[0].write(t, "memory", 0, records)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("%d records were acknowledged after %v", records, took)
	}
	for _, a := range agents {
		if n := a.metric(t, "siltstone_agent_flushed_bytes_total"); n > 0 {
			t.Errorf("%v bytes have been flushed", n)
		}
	}
	leader.kill()
	other.wantNumbers(t, "memory", records)
	other.write(t, "memory", records, 2*records)
	other.wantNumbers(t, "memory", 2*records)
	other.stop(t)
	if out := stores.must(t, "check"); !strings.HasSuffix(strings.TrimSpace(out), "clean: all that belongs here is here, and whole") {
		t.Errorf("check: %s", out)
	}
}

// leads says whether a server leads a topic's first partition.
func (s *server) leads(t *testing.T, topic string) bool {
	t.Helper()
	adm := s.admin(t)
	defer adm.Close()
	topics, err := adm.ListTopics(t.Context(), topic)
	return err == nil && fmt.Sprint(topics[topic].Partitions[0].Leader) == s.node(t)
}
