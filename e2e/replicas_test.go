package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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

// bulk is how many bytes agents have sent each other on the lane of records.
func bulk(t *testing.T, agents []*server) (sent float64) {
	for _, a := range agents {
		sent += a.metric(t, `siltstone_peer_sent_bytes_total{lane="bulk"}`)
	}
	return sent
}

// TestBytesBetweenZones: each replica costs the records once, as compressed as
// they came, and little more; what only the bucket makes safe costs nothing.
func TestBytesBetweenZones(t *testing.T) {
	const batchBytes = 16 << 10
	stores := ownCluster(t)
	var agents []*server
	for _, zone := range zones {
		agents = append(agents, startCommand(t, "", stores.agentIn(t, anyPort, zone)))
	}
	for _, replicas := range []int{2, 3} {
		agents[0].cli(t, "", "cluster", "alter", "--config", fmt.Sprint("siltstone.replicas=", replicas))
		for _, topic := range []string{"replicated", "object"} {
			batches, copies, more := 1500, float64(replicas-1), .02
			if topic == "object" { // each waits for a flush, of which replicas are told
				batches, copies, more = 60, 0, .05
			}
			name := fmt.Sprint(topic, replicas)
			agents[0].cli(t, "", "topic", "create", name, "--partitions", "4", "--config", "siltstone.durability="+topic)
			eventually(t, "replicas are in", func() bool {
				short := 0.0
				for _, a := range agents {
					short += a.metric(t, "siltstone_agent_under_replicated_shards")
				}
				return short == 0
			})
			before := bulk(t, agents)
			cl := agents[0].franz(t, kgo.ProducerBatchMaxBytes(batchBytes+1024), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
			value := make([]byte, batchBytes)
			var sent atomic.Int64
			for i := range batches {
				r := kgo.SliceRecord(value)
				r.Topic, r.Partition = name, int32(i%4)
				cl.Produce(t.Context(), r, func(_ *kgo.Record, err error) {
					if err == nil {
						sent.Add(1)
					}
				})
			}
			if err := cl.Flush(t.Context()); err != nil || sent.Load() != int64(batches) {
				t.Fatal(sent.Load(), err)
			}
			cl.Close()
			got, want := bulk(t, agents)-before, copies*float64(batches*batchBytes)
			t.Logf("siltstone.replicas=%d, %s: %.0f bytes of records, %.0f between zones (%.2f%% more)", replicas, topic, float64(batches*batchBytes), got, 100*(got-want)/max(want, float64(batches*batchBytes)))
			if got < want || got > want+more*max(want, float64(batches*batchBytes)) {
				t.Errorf("%.0f bytes between zones, wanted %.0f, and %.0f%% at most", got, want, 100*more)
			}
		}
	}
	for _, a := range agents {
		a.stop(t)
	}
}
