package e2e

import (
	"strings"
	"testing"
)

// TestHTTPNotYet: what the contract has and this server has not is answered
// 501, whatever else the request says, and nothing of it is done.
func TestHTTPNotYet(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "t", `{"partitions":1}`)
	const topic = "/api/v1/topics/t"
	records := recordsOf("t", 0)
	const one = `{"records":[{"value":"x"}]}`
	for _, tt := range []struct {
		what, method, path, body string
		headers                  []string
	}{
		{"conditional append", "POST", records, one, []string{"If-Match", `"0"`}},
		{"conditional append to a topic", "POST", topic + "/records", one, []string{"If-Match", `"0"`}},
		{"fencing", "POST", records, one, []string{"Fencing-Token", "a"}},
		{"idempotent producer", "POST", records, one, []string{"Producer-Id", "a", "Producer-Epoch", "0", "Producer-Seq", "0"}},
		{"its epoch", "POST", records, one, []string{"Producer-Epoch", "0"}},
		{"its sequence", "POST", records, one, []string{"Producer-Seq", "0"}},
		{"idempotency key", "POST", records, one, []string{"Idempotency-Key", "a"}},
		{"raw, with an idempotency key", "POST", records, "x", []string{"Content-Type", "text/plain", "Idempotency-Key", ""}},
		{"Basic", "GET", records, "", []string{"Authorization", "Basic YTpi"}},
		{"Bearer", "PUT", "/api/v1/topics/u", "", []string{"Authorization", "Bearer a"}},
		{"raw batches", "POST", records, "x", []string{"Content-Type", "application/vnd.kafka.record-batch"}},
		{"batches as an answer", "GET", records, "", []string{"Accept", "application/vnd.kafka.record-batch"}},
		{"SSE", "GET", records + "?wait=1", "", []string{"Accept", "text/event-stream"}},
		{"SSE, resumed", "GET", records, "", []string{"Last-Event-ID", "0:5"}},
		{"until", "GET", records + "?offset=0&until=5", "", nil},
		{"cursor", "GET", topic + "/records?cursor=abc", "", nil},
		{"cursor of one partition", "GET", records + "?cursor=abc", "", nil},
		{"all partitions", "GET", topic + "/records?limit=5&wait=1", "", []string{"Accept", webLines}},
		{"closed range", "GET", topic + "/partitions/0/ranges/AAAAAAAAAAAAAAAAAAAAAA/0-5?encoding=utf8", "", nil},
		{"group offsets", "GET", "/api/v1/groups/g/offsets", "", nil},
		{"commit", "PUT", "/api/v1/groups/g/offsets", `{"offsets":[]}`, nil},
		{"group poll", "POST", "/api/v1/groups/g/poll", `{"member":"w1","topics":["t"]}`, nil},
		{"group ack", "POST", "/api/v1/groups/g/ack", `{}`, nil},
		{"group leave", "POST", "/api/v1/groups/g/leave", `{}`, nil},
		{"description", "GET", "/openapi.json", "", nil},
		{"v2 topics", "GET", "/topics", "", []string{"Accept", "application/vnd.kafka.v2+json"}},
		{"v2 topic", "GET", "/topics/t", "", nil},
		{"v2 produce", "POST", "/topics/t", `{"records":[{"value":"eA=="}]}`, []string{"Content-Type", "application/vnd.kafka.binary.v2+json"}},
		{"v2 partition", "GET", "/topics/t/partitions/0/offsets", "", nil},
		{"v2 brokers", "GET", "/brokers", "", nil},
		{"v2 instance", "POST", "/consumers/g", `{"format":"binary"}`, []string{"Content-Type", "application/vnd.kafka.v2+json"}},
		{"v2 poll", "GET", "/consumers/g/instances/i/records?timeout=1000&max_bytes=5", "", []string{"Accept", "application/vnd.kafka.json.v2+json"}},
		{"v2 leave", "DELETE", "/consumers/g/instances/i", "", nil},
		{"v3 clusters", "GET", "/v3/clusters", "", nil},
		{"v3 produce", "POST", "/v3/clusters/c/topics/t/records", `{}`, nil},
		{"v3 in server", "GET", "/kafka/v3/clusters/c/topics?page_size=5", "", nil},
		{"durable streams", "PUT", "/v1/stream/t", "", []string{"Content-Type", "text/plain"}},
		{"durable streams, tail", "GET", "/v1/stream/t/0?offset=-1&live=sse", "", []string{"Accept", "text/event-stream"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			s.web(t, tt.method, tt.path, strings.NewReader(tt.body), tt.headers...).wantError(501, 50101, "not served yet")
		})
	}
	s.fetch(t, topic+"/partitions/0").want(200, `"high_watermark":0`)
	if out := s.cli(t, "", "topic", "list", "--json"); strings.Contains(out, `"u"`) {
		t.Errorf("listed: %s", out)
	}
}
