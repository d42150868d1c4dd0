package kafka

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// sessionClient fetches in a session.
type sessionClient struct {
	*client
	topic   *topic.Topic
	version int16
	id      int32
	epoch   int32
}

// fetch asks with changes to the session and returns the partitions of the answer.
func (c *sessionClient) fetch(change func(*kmsg.FetchRequest)) (map[int32]kmsg.FetchResponseTopicPartition, *kmsg.FetchResponse) {
	c.t.Helper()
	q := kmsg.NewPtrFetchRequest()
	q.MaxBytes, q.SessionID, q.SessionEpoch = 10<<20, c.id, c.epoch
	if change != nil {
		change(q)
	}
	resp := ask[*kmsg.FetchResponse](c.client, c.version, q)
	all := map[int32]kmsg.FetchResponseTopicPartition{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			all[p.Partition] = p
		}
	}
	return all, resp
}

// begin begins a session with some partitions.
func (c *sessionClient) begin(partitions ...int32) {
	c.t.Helper()
	c.epoch = 0
	all, resp := c.fetch(func(q *kmsg.FetchRequest) { q.Topics = fetchTopics(c.topic.Name, c.topic.ID, partitions...) })
	if resp.ErrorCode != 0 || resp.SessionID <= 0 || len(all) != len(partitions) {
		c.t.Fatalf("%s, session %d, %d partitions", errorName(resp.ErrorCode), resp.SessionID, len(all))
	}
	c.id, c.epoch = resp.SessionID, 1
}

// next is the next request of the session.
func (c *sessionClient) next(change func(*kmsg.FetchRequest)) []int32 {
	c.t.Helper()
	all, resp := c.fetch(change)
	if resp.ErrorCode != 0 || resp.SessionID != c.id {
		c.t.Fatalf("%s, session %d", errorName(resp.ErrorCode), resp.SessionID)
	}
	c.epoch++
	var numbers []int32
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if all[p.Partition].ErrorCode != p.ErrorCode {
				c.t.Fatal("a partition twice in an answer")
			}
			numbers = append(numbers, p.Partition)
		}
	}
	return numbers
}

func (f *fixture) write(t testing.TB, to *topic.Topic, partition int32) {
	t.Helper()
	q := produce(to, -1, oneBatch(t, batch.None, "v"))
	q.Topics[0].Partitions[0].Partition = partition
	wantNoError(t, ask[*kmsg.ProduceResponse](f.dial(), 9, q))
}

// at moves the offset of a partition, as a consumer does that has read.
func at(c *sessionClient, partition int32, offset int64) func(*kmsg.FetchRequest) {
	return func(q *kmsg.FetchRequest) {
		q.Topics = fetchTopics(c.topic.Name, c.topic.ID, partition)
		q.Topics[0].Partitions[0].FetchOffset = offset
	}
}

func TestFetchSession(t *testing.T) {
	for _, version := range []int16{7, 12, 13, 18} {
		f := start(t)
		topic := f.create("t", 4)
		c := &sessionClient{client: f.dial(), topic: topic, version: version}
		c.begin(0, 1, 2)
		if got := c.next(nil); len(got) != 0 {
			t.Errorf("v%d: nothing is new, and there are %v", version, got)
		}
		f.write(t, topic, 1)
		if got := c.next(nil); !slices.Equal(got, []int32{1}) {
			t.Errorf("v%d: after a write to 1: %v", version, got)
		}
		// It has not moved on, so it gets the data again, now behind the others.
		f.write(t, topic, 2)
		if got := c.next(nil); !slices.Equal(got, []int32{2, 1}) {
			t.Errorf("v%d: %v, want 2 before 1", version, got)
		}
		c.next(at(c, 1, 1))
		if got := c.next(at(c, 2, 1)); len(got) != 0 {
			t.Errorf("v%d: all is read, and there are %v", version, got)
		}
		// One joins, one leaves.
		got := c.next(func(q *kmsg.FetchRequest) {
			q.Topics = fetchTopics(topic.Name, topic.ID, 3)
			gone := kmsg.NewFetchRequestForgottenTopic()
			gone.Topic, gone.TopicID, gone.Partitions = topic.Name, topic.ID, []int32{1, 9}
			q.ForgottenTopics = append(q.ForgottenTopics, gone)
		})
		if !slices.Equal(got, []int32{3}) {
			t.Errorf("v%d: after 3 joined: %v", version, got)
		}
		f.write(t, topic, 1)
		f.write(t, topic, 3)
		if got := c.next(nil); !slices.Equal(got, []int32{3}) {
			t.Errorf("v%d: after 1 left: %v", version, got)
		}
	}
}

// TestFetchSessionWatermark: a partition whose data does not fit is told of all
// the same, once: its high watermark has moved.
func TestFetchSessionWatermark(t *testing.T) {
	f := start(t)
	topic := f.create("t", 2)
	c := &sessionClient{client: f.dial(), topic: topic, version: 12}
	c.begin(0, 1)
	f.write(t, topic, 0)
	f.write(t, topic, 1)
	tiny := func(q *kmsg.FetchRequest) { q.MaxBytes = 1 }
	if got := c.next(tiny); !slices.Equal(got, []int32{0, 1}) {
		t.Errorf("both have moved: %v", got)
	}
	// Now 1 is served first, and 0 has nothing new to say.
	if got := c.next(tiny); !slices.Equal(got, []int32{1}) {
		t.Errorf("only 1 fits: %v", got)
	}
}

// TestFetchSessionErrors: an error is told, each time, and its end too.
func TestFetchSessionErrors(t *testing.T) {
	f := start(t)
	topic := f.create("t", 2)
	c := &sessionClient{client: f.dial(), topic: topic, version: 12}
	c.begin(0, 1)
	f.log.failWith(func(tp siltstone.TopicPartition) error {
		if tp.Partition == 1 {
			return siltstone.ErrUnavailable
		}
		return nil
	})
	for range 2 {
		if got := c.next(nil); !slices.Equal(got, []int32{1}) {
			t.Errorf("while 1 fails: %v", got)
		}
	}
	f.log.failWith(nil)
	if got := c.next(nil); !slices.Equal(got, []int32{1}) {
		t.Errorf("when 1 is well again: %v", got)
	}
	if got := c.next(nil); len(got) != 0 {
		t.Errorf("after that: %v", got)
	}
}

func TestFetchSessionRefusals(t *testing.T) {
	f := start(t)
	topic := f.create("t", 2)
	c := &sessionClient{client: f.dial(), topic: topic, version: 12}
	c.begin(0)
	wantError := func(want string, change func(*kmsg.FetchRequest)) {
		t.Helper()
		all, resp := c.fetch(change)
		if errorName(resp.ErrorCode) != want || len(all) != 0 || resp.SessionID != 0 {
			t.Errorf("%s, session %d, want %s", errorName(resp.ErrorCode), resp.SessionID, want)
		}
	}
	wantError("FETCH_SESSION_ID_NOT_FOUND", func(q *kmsg.FetchRequest) { q.SessionID++ })
	wantError("INVALID_FETCH_SESSION_EPOCH", func(q *kmsg.FetchRequest) { q.SessionEpoch = 2 })
	c.version = 13
	wantError("FETCH_SESSION_TOPIC_ID_ERROR", nil)
	c.version = 12
	c.next(nil) // no refusal harms it

	// A full request ends the session that it names, and begins another.
	old := c.id
	c.begin(0, 1)
	if c.id == old {
		t.Error("the same session again")
	}
	fresh, epoch := c.id, c.epoch
	c.id, c.epoch = old, 2
	wantError("FETCH_SESSION_ID_NOT_FOUND", nil)

	// The final epoch ends it too, and begins none.
	c.id, c.epoch = fresh, -1
	if all, resp := c.fetch(func(q *kmsg.FetchRequest) { q.Topics = fetchTopics("t", topic.ID, 0) }); len(all) != 1 || resp.SessionID != 0 {
		t.Errorf("%d partitions, session %d", len(all), resp.SessionID)
	}
	c.epoch = epoch
	wantError("FETCH_SESSION_ID_NOT_FOUND", nil)

	// One that has forgotten all is no more.
	c.id = 0
	c.begin(0)
	c.next(func(q *kmsg.FetchRequest) {
		gone := kmsg.NewFetchRequestForgottenTopic()
		gone.Topic, gone.Partitions = "t", []int32{0}
		q.ForgottenTopics = append(q.ForgottenTopics, gone)
	})
	wantError("FETCH_SESSION_ID_NOT_FOUND", nil)
	if got := metric(f.server.metrics.sessions); got != 0 {
		t.Errorf("%v sessions are kept", got)
	}
}

// TestFetchSessionsAreBounded: by number and by partitions; a new one takes
// the place of one that is idle, or there is none.
func TestFetchSessionsAreBounded(t *testing.T) {
	few := limits(func(l *Limits) { l.FetchSessions, l.FetchSessionPartitions = 2, 5 })
	inBubble(t, few, func(t *testing.T, f *fixture, p *pipes) {
		topic := f.create("t", 9)
		open := func(partitions ...int32) *sessionClient {
			c := &sessionClient{client: p.dial(t), topic: topic, version: 12}
			all, resp := c.fetch(func(q *kmsg.FetchRequest) {
				q.SessionEpoch, q.Topics = 0, fetchTopics("t", topic.ID, partitions...)
			})
			if len(all) != len(partitions) || resp.ErrorCode != 0 {
				t.Fatalf("%d partitions, %s", len(all), errorName(resp.ErrorCode))
			}
			c.id, c.epoch = resp.SessionID, 1
			return c
		}
		a, b := open(0, 1), open(2)
		if c := open(3); c.id != 0 {
			t.Error("a third session, and there is room for two")
		}
		time.Sleep(sessionIdle - time.Second)
		a.next(nil)
		time.Sleep(2 * time.Second)
		if c := open(3, 4, 5); c.id == 0 {
			t.Error("no session, and one was idle")
		}
		if _, resp := b.fetch(nil); errorName(resp.ErrorCode) != "FETCH_SESSION_ID_NOT_FOUND" {
			t.Errorf("the idle one: %s", errorName(resp.ErrorCode))
		}
		// a grows past the bound and is dropped after its answer.
		a.next(func(q *kmsg.FetchRequest) { q.Topics = fetchTopics("t", topic.ID, 6, 7, 8) })
		if _, resp := a.fetch(nil); errorName(resp.ErrorCode) != "FETCH_SESSION_ID_NOT_FOUND" {
			t.Errorf("the one that grew: %s", errorName(resp.ErrorCode))
		}
		if c := open(0, 1); c.id == 0 {
			t.Error("no session, and there is room")
		}
		synctest.Wait()
		if got := metric(f.server.metrics.sessions); got != 2 {
			t.Errorf("%v sessions are kept, want 2", got)
		}
	})
}

// TestFetchSessionEpochWraps: after the largest epoch comes 1.
func TestFetchSessionEpochWraps(t *testing.T) {
	f := start(t)
	topic := f.create("t", 1)
	c := &sessionClient{client: f.dial(), topic: topic, version: 12}
	c.begin(0)
	session := f.server.sessions.take(c.id)
	session.epoch = math.MaxInt32
	f.server.sessions.put(session)
	c.epoch = math.MaxInt32
	c.next(nil)
	c.epoch = 1
	c.next(nil)
}
