package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/coordinator/topic/topictest"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

type agentState struct {
	err      error
	starting error
}

func (a agentState) Ready() error { return cmp.Or(a.starting, a.err) }
func (a agentState) Begun() error { return a.starting }

// fixture is a handler over fakes.
type fixture struct {
	t        testing.TB
	log      *fakeLog
	topics   *topictest.Topics
	registry *prometheus.Registry
	handler  http.Handler
}

func start(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, log: newFakeLog(), topics: topictest.New(), registry: prometheus.NewRegistry()}
	o := Options{
		Agent: agentState{}, Log: f.log, Topics: f.topics, Random: rand.Uint64, Gatherer: f.registry, Metrics: f.registry,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, c := range change {
		c(&o)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.handler = h
	return f
}

func limits(set func(*Limits)) func(*Options) { return func(o *Options) { set(&o.Limits) } }

// create makes a topic; settings are name, value, name, value.
func (f *fixture) create(name string, partitions int32, settings ...string) *topic.Topic {
	f.t.Helper()
	n := topic.NewTopic{Name: name, ID: siltstone.TopicID{byte(rand.IntN(255) + 1), byte(rand.IntN(256)), byte(rand.IntN(256))}, Partitions: partitions, Replication: -1}
	for i := 0; i < len(settings); i += 2 {
		n.Configs = append(n.Configs, topic.Setting{Name: settings[i], Value: &settings[i+1]})
	}
	var refused error
	err := f.topics.Change(f.t.Context(), func(v *topic.View) topic.Decision {
		d, errs := topic.Create(v, []topic.NewTopic{n})
		refused = errs[0]
		return d
	})
	if err != nil || refused != nil {
		f.t.Fatal(err, refused)
	}
	t, _ := f.topics.Topics().Topic(name)
	return t
}

// reply is what came back.
type reply struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

// do sends a request; headers are name, value, name, value.
func (f *fixture) do(method, url, body string, headers ...string) reply {
	f.t.Helper()
	return f.doWith(f.t.Context(), method, url, strings.NewReader(body), headers...)
}

func (f *fixture) doWith(ctx context.Context, method, url string, body io.Reader, headers ...string) reply {
	f.t.Helper()
	r := httptest.NewRequestWithContext(ctx, method, url, body)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	got := reply{f.t, w.Code, w.Result().Header, w.Body.String()}
	if got.status >= 400 && method != http.MethodHead {
		got.checkError()
	}
	return got
}

// post sends JSON.
func (f *fixture) post(url, body string, headers ...string) reply {
	f.t.Helper()
	return f.do("POST", url, body, append([]string{"Content-Type", typeJSON}, headers...)...)
}

// checkError: one shape for all errors, and what the status obliges to.
func (r reply) checkError() {
	r.t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(r.body), &fields); err != nil {
		r.t.Fatalf("body %q: %v", r.body, err)
	}
	for _, f := range []string{"error_code", "message", "code", "retriable", "details"} {
		if fields[f] == nil {
			r.t.Errorf("no %s in %s", f, r.body)
		}
	}
	if number, _ := fields["error_code"].(float64); int(number) != r.status && int(number)/100 != r.status {
		r.t.Errorf("error_code %v with status %d", fields["error_code"], r.status)
	}
	if r.status == 503 && (r.header.Get("Retry-After") == "" || fields["retriable"] != true) {
		r.t.Errorf("503 without Retry-After, or not retriable: %s", r.body)
	}
	if r.status == 405 && r.header.Get("Allow") == "" {
		r.t.Error("405 without Allow")
	}
}

// want checks an answer that is no success.
func (r reply) want(status, number int, contains string) {
	r.t.Helper()
	var e Error
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || r.status != status || e.Number != number || !strings.Contains(e.Message, contains) {
		r.t.Errorf("%d %s, want %d/%d with %q", r.status, r.body, status, number, contains)
	}
}

// ok checks that a request succeeded.
func (r reply) ok() reply {
	r.t.Helper()
	if r.status != http.StatusOK {
		r.t.Fatalf("%d %s", r.status, r.body)
	}
	return r
}

// stored is what a partition holds.
func (f *fixture) stored(t *topic.Topic, partition int32) (all []batch.Record) {
	f.t.Helper()
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	for _, b := range f.log.partition(siltstone.TopicPartition{Topic: t.ID, Partition: partition}).batches {
		for r, err := range batch.Records(b, 0) {
			if err != nil {
				f.t.Fatal(err)
			}
			r.Headers = append([]batch.RecordHeader(nil), r.Headers...)
			all = append(all, r)
		}
	}
	return all
}

// batches is how many a partition holds.
func (f *fixture) batches(t *topic.Topic, partition int32) int {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return len(f.log.partition(siltstone.TopicPartition{Topic: t.ID, Partition: partition}).batches)
}

// put puts a batch into the log without the handler.
func (f *fixture) put(t *topic.Topic, hole siltstone.Offset, b []byte) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.log.put(f.log.partition(siltstone.TopicPartition{Topic: t.ID}), b, hole)
	close(f.log.changed)
	f.log.changed = make(chan struct{})
}

// batchOf is a batch of values, at 1000, 1001, ... ms.
func batchOf(t testing.TB, codec batch.Codec, attributes batch.Attributes, values ...string) []byte {
	t.Helper()
	b := batch.NewBuilder(codec, 0)
	b.Header.Attributes = attributes
	for i, v := range values {
		b.Append(batch.Record{Timestamp: 1000 + int64(i), Value: []byte(v)})
	}
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// marker is a control batch.
func marker(t testing.TB) []byte {
	t.Helper()
	b := batch.NewBuilder(batch.None, 0)
	b.Header.Attributes = batch.ControlBit | batch.TransactionalBit
	b.Header.ProducerID, b.Header.ProducerEpoch = 5, 0
	b.Append(batch.Marker{Type: batch.Commit}.Record(1000))
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return built
}
