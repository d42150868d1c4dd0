package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// webTopic is a topic as HTTP shows it.
type webTopic struct {
	Name       string
	ID         string `json:"topic_id"`
	Partitions int
	CreatedMS  int64 `json:"created_ms"`
	Configs    map[string]string
}

func (r webReply) topic() (topic webTopic) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.body), &topic); err != nil {
		r.t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	return topic
}

// TestHTTPTopics: a topic that is made by HTTP is Kafka's too, and the other way round.
func TestHTTPTopics(t *testing.T) {
	s := start(t, t.TempDir())
	const path = "/api/v1/topics/by.http"
	s.fetch(t, path).wantError(404, 40401, "no such topic: by.http")
	s.web(t, "PUT", path, strings.NewReader(`{"Partitions":3}`)).wantError(422, 42217, `invalid topic: "Partitions" is no field of a topic`)
	s.post(t, "/api/v1/topics", `{"name":"by.http"}`).wantError(405, 405, "PUT /api/v1/topics/{topic} makes a topic")
	made := s.web(t, "PUT", path, strings.NewReader(`{"partitions":3,"replication_factor":3,"configs":{"max.message.bytes":5000,"cleanup.policy":"compact"}}`))
	topic := made.want(201).topic()
	if topic.Partitions != 3 || len(topic.Configs) != 2 || made.header.Get("Location") != path {
		t.Errorf("%s, %v", made.body, made.header)
	}
	out := s.cli(t, "", "topic", "describe", "by.http")
	for _, want := range []string{topic.ID, "max.message.bytes=5000", "cleanup.policy=compact"} {
		if !strings.Contains(out, want) {
			t.Errorf("describe does not have %s:\n%s", want, out)
		}
	}
	s.web(t, "PUT", path, strings.NewReader(`{"partitions":3}`)).want(200, topic.ID)
	s.web(t, "PUT", path, strings.NewReader(`{"partitions":4}`)).wantError(409, 40904, "3 partitions, not 4")
	s.web(t, "PUT", "/api/v1/topics/other", strings.NewReader(`{"configs":{"retention.ms":"soon"}}`)).wantError(422, 42214, "retention.ms")

	s.cli(t, "", "topic", "create", "by.cli", "-p", "2", "-c", "retention.ms=1000")
	if got := s.fetch(t, "/api/v1/topics/by.cli").want(200).topic(); got.Partitions != 2 || got.Configs["retention.ms"] != "1000" || got.CreatedMS == 0 {
		t.Errorf("%+v", got)
	}
	var names []string
	for after := ""; ; {
		var page struct {
			Topics []webTopic
			Next   *string `json:"next_after"`
		}
		if err := json.Unmarshal([]byte(s.fetch(t, "/api/v1/topics?limit=1&after="+after).want(200).body), &page); err != nil {
			t.Fatal(err)
		}
		for _, t := range page.Topics {
			names = append(names, t.Name)
		}
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	if fmt.Sprint(names) != "[by.cli by.http]" {
		t.Errorf("listed %v", names)
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		if got := s.fetch(t, path).want(200).topic(); fmt.Sprint(got) != fmt.Sprint(topic) {
			t.Errorf("%+v, want %+v", got, topic)
		}
	})
	s = start(t, s.dir)
	if got := s.web(t, "DELETE", path, nil).want(204); got.body != "" {
		t.Errorf("%s", got.body)
	}
	s.web(t, "DELETE", path, nil).wantError(404, 40401, "by.http")
	s.post(t, recordsOf("by.http", 0), `{"records":[{"value":"a"}]}`).wantError(404, 40401, "PUT "+path+" makes it")
	if out := s.cli(t, "", "topic", "list"); strings.Contains(out, "by.http") {
		t.Errorf("listed:\n%s", out)
	}
}

// TestHTTPMetrics: the page is Prometheus' text, and counts what is done.
func TestHTTPMetrics(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "t", `{"partitions":1}`)
	for i := range 3 {
		s.post(t, recordsOf("t", 0), `{"records":[{"value":"12345"}]}`).wantAppended(0, int64(i), int64(i+1))
	}
	s.fetch(t, recordsOf("t", 0)).want(200)
	s.fetch(t, recordsOf("t", 5)).wantError(404, 40402, "partitions 0 to 0")
	for _, path := range []string{"/healthy", "/ready"} {
		if got := s.fetch(t, path).want(200, path[1:]); got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", got.header)
		}
		if got := s.web(t, "HEAD", path, nil).want(200); got.body != "" {
			t.Errorf("%s", got.body)
		}
		s.post(t, path, "").wantError(405, 405, path+" answers GET, HEAD, not POST")
	}
	got := s.fetch(t, "/metrics").want(200)
	if kind := got.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("Content-Type: %s", kind)
	}
	for _, line := range []string{
		`siltstone_gateway_requests_total{route="partition_records",status="2xx"} 4`,
		`siltstone_gateway_requests_total{route="partition_records",status="4xx"} 1`,
		`siltstone_gateway_requests_total{route="topic",status="2xx"} 1`,
		`siltstone_gateway_requests_total{route="healthy",status="4xx"} 1`,
		`siltstone_gateway_request_seconds_count{route="partition_records"} 5`,
		`siltstone_gateway_requests_in_flight{route="partition_records"} 0`,
		`siltstone_gateway_received_bytes_total ` + fmt.Sprint(3*len(`{"records":[{"value":"12345"}]}`)+len(`{"partitions":1}`)),
		`siltstone_gateway_request_memory_bytes 0`,
	} {
		if !strings.Contains(got.body, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	name := regexp.MustCompile(`^(# (HELP|TYPE) )?(siltstone|go|process)_[a-z0-9_]+[ {]`)
	for line := range strings.Lines(got.body) {
		if !name.MatchString(line) {
			t.Errorf("a line of another form: %s", line)
		}
	}
	s.fetch(t, "/metrics", "Accept", "application/openmetrics-text; version=1.0.0").want(200, "# EOF")
}

// TestHTTPStops: a server that stops tells those who wait, and exits.
func TestHTTPStops(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "t", `{"partitions":1}`)
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		if status, body := s.get(t, recordsOf("t", 0)+"?wait=25"); status != 503 || !strings.Contains(body, `"stopping"`) {
			t.Errorf("%d %s", status, body)
		}
	}()
	eventually(t, "it waits", func() bool {
		_, metrics := s.get(t, "/metrics")
		return strings.Contains(metrics, `siltstone_gateway_requests_in_flight{route="partition_records"} 1`)
	})
	s.stop(t)
	<-polled
}
