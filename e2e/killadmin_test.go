package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// administrator creates and deletes topics, and deletes records of another,
// while the server is up. It belongs to one goroutine at a time: its own from
// begin on, the test's from end on.
type administrator struct {
	pace    time.Duration
	trimmed string // the topic whose records go, of one partition
	topics  [3]shortTopic
	turn    int

	// Where the log of trimmed was asked to begin, and did.
	asked, begins int64

	stop context.CancelFunc
	done chan struct{}
}

// shortTopic is a topic that comes and goes.
type shortTopic struct {
	state        certainty
	id           kadm.TopicID // if it is there, and anybody knows
	sent, stored int64        // records of this id
}

type certainty int

const (
	gone certainty = iota
	there
	either // a client did not hear what came of it
)

func (a *administrator) begin(t *testing.T, s *server) {
	ctx, cancel := context.WithCancel(t.Context())
	a.stop, a.done = cancel, make(chan struct{})
	cl := s.franz(t, noRetries...)
	go func() {
		defer close(a.done)
		defer cl.Close()
		pace := time.NewTicker(a.pace)
		defer pace.Stop()
		for ctx.Err() == nil {
			a.step(ctx, cl)
			<-pace.C
		}
	}()
}

// end waits until it has stopped. What was asked for meanwhile has come true or not.
func (a *administrator) end() {
	a.stop()
	<-a.done
}

func shortName(i int) string { return fmt.Sprint("short-", i) }

// step makes or deletes one topic, and deletes half of the other's records.
func (a *administrator) step(ctx context.Context, cl *kgo.Client) {
	admin := kadm.NewClient(cl)
	a.turn = (a.turn + 1) % len(a.topics)
	if topic, name := &a.topics[a.turn], shortName(a.turn); topic.state == gone {
		topic.create(ctx, cl, name)
	} else {
		topic.state = either
		if _, err := admin.DeleteTopic(ctx, name); err == nil || errors.Is(err, kerr.UnknownTopicOrPartition) {
			*topic = shortTopic{}
		}
	}
	ends, err := admin.ListEndOffsets(ctx, a.trimmed)
	if err != nil || ends.Error() != nil {
		return
	}
	end, _ := ends.Lookup(a.trimmed, 0)
	upTo := (a.begins + end.Offset) / 2
	a.asked = max(a.asked, upTo)
	var offsets kadm.Offsets
	offsets.AddOffset(a.trimmed, 0, upTo, -1)
	if deleted, err := admin.DeleteRecords(ctx, offsets); err == nil && deleted.Error() == nil {
		a.begins = max(a.begins, upTo)
	}
}

// create makes a topic, and writes a record to it.
func (s *shortTopic) create(ctx context.Context, cl *kgo.Client, name string) {
	s.state = either
	created, err := kadm.NewClient(cl).CreateTopic(ctx, 1, -1, nil, name)
	if err != nil {
		return
	}
	s.state, s.id = there, created.ID
	s.sent++
	if cl.ProduceSync(ctx, &kgo.Record{Topic: name, Value: []byte("x")}).FirstErr() == nil {
		s.stored++
	}
}

// verify looks at what a server has of it. What that shows is so from now on.
func (a *administrator) verify(t *testing.T, s *server) {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	listed, err := admin.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.topics {
		topic, name := &a.topics[i], shortName(i)
		seen, is := listed[name]
		switch {
		case topic.state == there && !is:
			t.Fatalf("topic %s is gone, which was created", name)
		case topic.state == gone && is:
			t.Fatalf("topic %s is there, which was deleted", name)
		case topic.state == there && seen.ID != topic.id:
			t.Fatalf("topic %s has id %v, and was created as %v", name, seen.ID, topic.id)
		case !is:
			*topic = shortTopic{}
			continue
		}
		topic.state, topic.id = there, seen.ID
		if b := s.bounds(t, name)[0]; b.start != 0 || b.end < topic.stored || b.end > topic.sent {
			t.Fatalf("topic %s has offsets %d to %d; %d records were sent, and %d acknowledged", name, b.start, b.end, topic.sent, topic.stored)
		}
	}
	if b := s.bounds(t, a.trimmed)[0]; b.start < a.begins || b.start > a.asked {
		t.Fatalf("%s begins at %d; its records were deleted up to %d, and no further than to %d asked for", a.trimmed, b.start, a.begins, a.asked)
	} else {
		a.begins = b.start
	}
}
