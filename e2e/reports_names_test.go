package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// createTopics asks for topics of one partition; an error for each.
func (w *wire) createTopics(version int16, names ...string) (errs []string) {
	w.t.Helper()
	q := kmsg.NewPtrCreateTopicsRequest()
	q.TimeoutMillis = int32(patience.Milliseconds())
	for _, name := range names {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, 1, -1
		q.Topics = append(q.Topics, t)
	}
	for _, t := range ask[*kmsg.CreateTopicsResponse](w, version, q).Topics {
		errs = append(errs, errorName(t.ErrorCode))
	}
	return errs
}

// topicNames are all topics that there are, asked for with leave to create.
func (w *wire) topicNames() (names []string) {
	w.t.Helper()
	q := kmsg.NewPtrMetadataRequest()
	q.AllowAutoTopicCreation = true
	for _, t := range ask[*kmsg.MetadataResponse](w, 12, q).Topics {
		names = append(names, *t.Topic)
	}
	slices.Sort(names)
	return names
}

// badNames can be no topic's.
var badNames = []string{
	"", ".", "..", strings.Repeat("x", 250), "größe", "主题", "a b", "a/b", "a\\b", "a\nb", "a\x00b", "a:b", "a,b", "\xff", "a*",
}

// TestReport10Names: a name that differs from another's only by '.' and '_' is
// refused, and so is what can be no name; whoever asks, and after a restart.
// (ns4kafka#63, apache/kafka#11910)
func TestReport10Names(t *testing.T) {
	s := start(t, t.TempDir())
	longest := strings.Repeat("x", 249)
	w := s.dial(t)
	taken := []string{"a_b_c", "x.y", "...", "-", longest}
	for _, name := range taken {
		if errs := w.createTopics(5, name); errs[0] != "" {
			t.Errorf("%.20q: %s", name, errs[0])
		}
	}
	if errs := w.createTopics(7, "n.1", "n_1"); !slices.Equal(errs, []string{"", "INVALID_TOPIC_EXCEPTION"}) {
		t.Errorf("two of one request: %q", errs)
	}
	want := append(slices.Clone(taken), "n.1")
	slices.Sort(want)
	wantErrors := map[string]string{
		"a.b_c": "INVALID_TOPIC_EXCEPTION", "a_b.c": "INVALID_TOPIC_EXCEPTION", "a.b.c": "INVALID_TOPIC_EXCEPTION", "a_b_c": "TOPIC_ALREADY_EXISTS",
		"x_y": "INVALID_TOPIC_EXCEPTION", "x.y": "TOPIC_ALREADY_EXISTS", "___": "INVALID_TOPIC_EXCEPTION", "._.": "INVALID_TOPIC_EXCEPTION",
		"n_1": "INVALID_TOPIC_EXCEPTION", longest: "TOPIC_ALREADY_EXISTS", "twice": "",
	}
	for _, name := range badNames {
		wantErrors[name] = "INVALID_TOPIC_EXCEPTION"
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		w := s.dial(t)
		for name, wanted := range wantErrors {
			for version := int16(2); version <= 7; version++ {
				if name == "twice" {
					continue
				}
				if errs := w.createTopics(version, name); errs[0] != wanted {
					t.Errorf("v%d, %.20q: %q, want %q", version, name, errs[0], wanted)
				}
			}
		}
		if errs := w.createTopics(7, "twice", "twice"); !slices.Equal(errs, []string{"INVALID_REQUEST"}) {
			t.Errorf("a name twice: %q", errs)
		}
		// Metadata that may create is under the same rules.
		for _, name := range append([]string{"a.b_c", "x_y", "___"}, badNames...) {
			for version := range int16(13) {
				if got := w.mayCreate(version, name); errorName(got.ErrorCode) != "INVALID_TOPIC_EXCEPTION" || len(got.Partitions) > 0 {
					t.Errorf("Metadata v%d of %.20q: %q, %d partitions", version, name, errorName(got.ErrorCode), len(got.Partitions))
				}
			}
		}
		if got := w.topicNames(); !slices.Equal(got, want) {
			t.Errorf("topics %.200q, want %.200q", got, want)
		}
	})
}

// mayCreate asks for a topic by name, with leave to create it.
func (w *wire) mayCreate(version int16, name string) kmsg.MetadataResponseTopic {
	w.t.Helper()
	q := kmsg.NewPtrMetadataRequest()
	q.AllowAutoTopicCreation = true
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &name
	q.Topics = append(q.Topics, t)
	return ask[*kmsg.MetadataResponse](w, version, q).Topics[0]
}

// TestReport10Again: a topic that is gone leaves its name free, with those that
// collide with it, and nothing of what it held.
func TestReport10Again(t *testing.T) {
	s := start(t, t.TempDir())
	w := s.dial(t)
	previous := [16]byte{}
	inEveryState(t, s, func(t *testing.T, s *server) {
		w = s.dial(t)
		for i, name := range []string{"a_b", "a.b", "a.b", "a_b"} {
			if errs := w.createTopics(7, name); errs[0] != "" {
				t.Fatalf("%s: %s", name, errs[0])
			}
			topic := w.topic(name)
			if topic.TopicID == previous {
				t.Errorf("%s has the id of a topic that is gone", name)
			}
			previous = topic.TopicID
			if end := w.listOffsets(1, topic, -1, -1)[0]; end.Offset != 0 || end.ErrorCode != 0 {
				t.Errorf("%s is new and ends at %d (%s)", name, end.Offset, errorName(end.ErrorCode))
			}
			w.mustProduce(topic, 0, batchOf(t, batch.None, value(fmt.Sprint(i))))
			if got := s.kcat(t, nil, atOnce("-C", "-t", name, "-o", "beginning", "-e", "-f", "%o %s")...); got != fmt.Sprint("0 ", i) {
				t.Errorf("%s holds %q", name, got)
			}
			s.cli(t, "", "topic", "delete", name)
		}
	})
}

// TestReport10Races: of many that create one topic at once, or topics that
// collide, one succeeds, and all others learn why they do not. (apache/kafka#2425)
func TestReport10Races(t *testing.T) {
	const racers, rounds = 20, 5
	s := start(t, t.TempDir())
	admins := make([]*kadm.Client, racers)
	for i := range admins {
		admins[i] = s.admin(t)
		if _, err := admins[i].ListTopics(t.Context()); err != nil { // it is connected
			t.Fatal(err)
		}
	}
	var want []string
	for round := range rounds {
		names := []string{fmt.Sprintf("race.%d", round)}
		if round%2 == 1 {
			names = append(names, fmt.Sprintf("race_%d", round))
		}
		errs := make([]error, racers)
		var wg sync.WaitGroup
		gun := make(chan struct{})
		for i, admin := range admins {
			wg.Go(func() {
				<-gun
				_, errs[i] = admin.CreateTopic(t.Context(), 2, -1, nil, names[i%len(names)])
			})
		}
		close(gun)
		wg.Wait()
		winner := slices.Index(errs, nil)
		if winner < 0 {
			t.Fatalf("%v: nobody made it: %v", names, errs)
		}
		want = append(want, names[winner%len(names)])
		for i, err := range errs {
			expected := error(kerr.TopicAlreadyExists)
			if i%len(names) != winner%len(names) {
				expected = kerr.InvalidTopicException
			}
			if i != winner && err != expected { //nolint:errorlint // kadm gives it as it is
				t.Errorf("%v, client %d: %v, want %v", names, i, err, expected)
			}
		}
	}
	slices.Sort(want)
	if got := s.dial(t).topicNames(); !slices.Equal(got, want) {
		t.Errorf("topics %v, want %v", got, want)
	}
	for _, name := range want {
		if topic := s.dial(t).topic(name); len(topic.Partitions) != 2 {
			t.Errorf("%s has %d partitions", name, len(topic.Partitions))
		}
	}
	for _, name := range want { // and the other way round
		deleted := make([]error, racers)
		var wg sync.WaitGroup
		for i, admin := range admins {
			wg.Go(func() { _, deleted[i] = admin.DeleteTopic(t.Context(), name) })
		}
		wg.Wait()
		winner := slices.Index(deleted, nil)
		for i, err := range deleted {
			if i != winner && err != error(kerr.UnknownTopicOrPartition) { //nolint:errorlint // kadm gives it as it is
				t.Errorf("%s, client %d deletes it: %v", name, i, err)
			}
		}
		if winner < 0 {
			t.Errorf("nobody deleted %s", name)
		}
	}
}

// TestReport10RaceToUse: topics that come by being named come once, for
// whoever names them first; all see the same.
func TestReport10RaceToUse(t *testing.T) {
	const racers = 20
	s := start(t, t.TempDir())
	wires := make([]*wire, racers)
	for i := range wires {
		wires[i] = s.dial(t)
		wires[i].metadata()
	}
	got := make([]kmsg.MetadataResponseTopic, racers)
	var wg sync.WaitGroup
	gun := make(chan struct{})
	for i, w := range wires {
		wg.Go(func() {
			<-gun
			if i%5 == 4 { // some create it, all others use it
				w.createTopics(7, "t")
			}
			got[i] = w.mayCreate(12, "t")
		})
	}
	close(gun)
	wg.Wait()
	for i, topic := range got {
		if topic.ErrorCode != 0 || topic.TopicID != got[0].TopicID || len(topic.Partitions) != 1 {
			t.Errorf("client %d: %s, id %x, %d partitions", i, errorName(topic.ErrorCode), topic.TopicID, len(topic.Partitions))
		}
	}
	if names := s.dial(t).topicNames(); !slices.Equal(names, []string{"t"}) {
		t.Errorf("topics %v", names)
	}
}
