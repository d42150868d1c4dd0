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
	stores := ownCluster(t)
	start := func(zone string) *server {
		cmd := stores.agentIn(t, anyPort, zone)
		cmd.Args = append(cmd.Args, "--flush-wait", "3s", "--flush-interval", "40s")
		return startCommand(t, "", cmd)
	}
	agents := []*server{start("a"), start("b")}
	// Nobody is late, however slow the machine: who is late is flushed around.
	agents[0].cli(t, "", "cluster", "alter", "--config", "replica.lag.time.max.ms=20000")
	agents[0].cli(t, "", "topic", "create", "memory", "--partitions", "1")
	leader, other := agents[0], agents[1]
	eventually(t, "somebody leads, and has a replica", func() bool {
		if !agents[0].leads(t, "memory") {
			leader, other = other, leader
		}
		return leader.leads(t, "memory") && leader.metric(t, "siltstone_agent_under_replicated_shards") == 0
	})
	flushed := func() float64 {
		return leader.metric(t, "siltstone_agent_flushed_bytes_total") + other.metric(t, "siltstone_agent_flushed_bytes_total")
	}
	records := 0
	// Shards may move once more, as the second agent takes its share: what comes
	// meanwhile waits for a flush.
	for round := 0; ; round++ {
		began, before := time.Now(), flushed()
		agents[0].write(t, "memory", records, records+200)
		records += 200
		took, bytes := time.Since(began), flushed()-before
		if took < 2*time.Second && bytes == 0 {
			break
		}
		t.Logf("200 records were acknowledged after %v, and %v bytes flushed", took, bytes)
		if round == 5 {
			t.Fatal("acks=all waits for flushes")
		}
	}
	if other.leads(t, "memory") {
		leader, other = other, leader
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
	stores := ownCluster(t)
	var agents []*server
	for _, zone := range zones {
		agents = append(agents, startCommand(t, "", stores.agentIn(t, anyPort, zone)))
	}
	// A replica that is late on a slow machine would be sent things twice.
	agents[0].cli(t, "", "cluster", "alter", "--config", "replica.lag.time.max.ms=20000")
	for _, replicas := range []int{2, 3} {
		agents[0].cli(t, "", "cluster", "alter", "--config", fmt.Sprint("siltstone.replicas=", replicas))
		for _, durability := range []string{"replicated", "object"} {
			batches, copies, more := 1500, float64(replicas-1), .02
			if durability == "object" { // each waits for a flush, of which replicas are told
				batches, copies, more = 60, 0, .05
			}
			// Shards that move meanwhile are sent anew.
			for try := 0; ; try++ {
				topic := fmt.Sprint(durability, replicas, "-", try)
				agents[0].cli(t, "", "topic", "create", topic, "--partitions", "4", "--config", "siltstone.durability="+durability)
				sent, got := bytesBetween(t, agents, topic, batches)
				want := copies * sent
				t.Logf("siltstone.replicas=%d, %s: %.0f bytes of records, %.0f between zones (%.2f%% more)", replicas, durability, sent, got, 100*(got-want)/max(want, sent))
				if got >= want && got <= want+more*max(want, sent) {
					break
				}
				if try == 3 {
					t.Fatalf("wanted %.0f, and %.0f%% more at most", want, 100*more)
				}
			}
		}
	}
	for _, a := range agents {
		a.stop(t)
	}
}

// bytesBetween writes batches of 16 KiB, and says how many bytes that are, and
// how many agents have sent each other for them.
func bytesBetween(t *testing.T, agents []*server, topic string, batches int) (sent, between float64) {
	const batchBytes = 16 << 10
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
	var acked atomic.Int64
	for i := range batches {
		r := kgo.SliceRecord(value)
		r.Topic, r.Partition = topic, int32(i%4)
		cl.Produce(t.Context(), r, func(_ *kgo.Record, err error) {
			if err == nil {
				acked.Add(1)
			}
		})
	}
	if err := cl.Flush(t.Context()); err != nil || acked.Load() != int64(batches) {
		t.Fatal(acked.Load(), err)
	}
	cl.Close()
	return float64(batches * batchBytes), bulk(t, agents) - before
}
