package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// idlers are idempotent producers that write 0 to 6 to their topic, wait until
// the topic go exists, and write 7 to 14; every record must be acknowledged, at
// the offset that it says.
var idlers = map[string]func(s *server, t *testing.T, topic, goOn string){
	"librdkafka": func(s *server, t *testing.T, topic, goOn string) { s.python(t, "idle.py", topic, goOn) },
	"java": func(s *server, t *testing.T, topic, goOn string) {
		o, err := java.run("", "Idle", s.kafka, topic, goOn)
		if err != nil || o.code != 0 {
			t.Errorf("java: %v, code %d\n%s%s", err, o.code, o.stdout, o.stderr)
		}
	},
	"franz-go": func(s *server, t *testing.T, topic, goOn string) {
		cl, err := kgo.NewClient(kgo.SeedBrokers(s.kafka), kgo.DefaultProduceTopic(topic), kgo.AlwaysRetryEOF(), kgo.MetadataMinAge(50*time.Millisecond))
		if err != nil {
			t.Error(err)
			return
		}
		defer cl.Close()
		admin := kadm.NewClient(cl)
		for i := range int64(15) {
			for tick := time.NewTicker(10 * time.Millisecond); i == 7; <-tick.C {
				if listed, err := admin.ListTopics(t.Context()); err == nil && listed.Has(goOn) {
					break
				}
			}
			r, err := cl.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprint(i))).First()
			if err != nil || r.Offset != i {
				t.Errorf("franz-go: record %d at %d: %v", i, r.Offset, err)
			}
		}
	},
}

// TestReport18IdleProducer: an idempotent producer of which nothing is known any
// more, or whose records are gone, or whose server was away, goes on.
// (redpanda-data/redpanda#22670)
func TestReport18IdleProducer(t *testing.T) {
	const expiry = 1500 * time.Millisecond
	s := start(t, t.TempDir())
	s.setClusterConfig(t, "producer.id.expiration.ms", fmt.Sprint(expiry.Milliseconds()))
	whiles := []ending{
		{"expired", func(s *server, t *testing.T) {
			for name := range idlers {
				eventually(t, "nothing is known of the producer", func() bool { return s.producersOf(t, name+"-expired") == 0 })
			}
		}},
		{"deleted", func(s *server, t *testing.T) {
			for name := range idlers {
				s.deleteRecords(t, name+"-deleted", 7)
			}
		}},
		{"stop", (*server).stop},
		{"kill", func(s *server, _ *testing.T) { s.kill() }},
		{"expired-and-kill", func(s *server, t *testing.T) {
			for name := range idlers {
				eventually(t, "nothing is known of the producer", func() bool { return s.producersOf(t, name+"-expired-and-kill") == 0 })
			}
			s.kill()
		}},
	}
	for _, while := range whiles {
		done := make(chan string)
		for name, idle := range idlers {
			topic := name + "-" + while.name
			s.createTopic(t, topic, 1)
			go func() {
				idle(s, t, topic, "go-on-"+while.name)
				done <- name
			}()
			eventually(t, topic+" has seven records", func() bool { return s.end(t, topic) == 7 })
		}
		while.end(s, t)
		if s.ended() {
			s = s.again(t)
		}
		s.createTopic(t, "go-on-"+while.name, 1)
		for range idlers {
			<-done
		}
		for name := range idlers {
			topic, first := name+"-"+while.name, 0
			if while.name == "deleted" {
				first = 7
			}
			var got, want []string
			for _, r := range s.read(t, topic, 0, int64(first), 15-first) {
				got = append(got, string(r.Value))
			}
			for i := first; i < 15; i++ {
				want = append(want, strconv.Itoa(i))
			}
			if end := s.end(t, topic); !slices.Equal(got, want) || end != 15 {
				t.Errorf("%s: %q, and the end is %d", topic, got, end)
			}
		}
	}
	s.stop(t)
	check(t, s.dir)
}

func (s *server) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// end is the end offset of a topic's partition 0.
func (s *server) end(t *testing.T, topic string) int64 {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	ends, err := admin.ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	o, _ := ends.Lookup(topic, 0)
	return o.Offset
}

// producersOf is of how many producers a topic's partition 0 knows.
func (s *server) producersOf(t *testing.T, topic string) int {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	var of kadm.TopicsSet
	of.Add(topic, 0)
	described, err := admin.DescribeProducers(t.Context(), of)
	if err != nil || described[topic].Partitions[0].Err != nil {
		t.Fatalf("producers of %s: %v %v", topic, err, described[topic].Partitions[0].Err)
	}
	return len(described[topic].Partitions[0].ActiveProducers)
}

func (s *server) deleteRecords(t *testing.T, topic string, before int64) {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, before, -1)
	deleted, err := admin.DeleteRecords(t.Context(), offsets)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		t.Fatalf("deleting the records of %s: %v", topic, err)
	}
}
