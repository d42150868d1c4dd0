package gateway

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone"
)

func TestHandler(t *testing.T) {
	tests := []struct {
		name, method, path string
		notReady           error
		status             int
		body               string // contained
	}{
		{"healthy", "GET", "/healthy", nil, 200, "healthy\n"},
		{"healthy while not ready", "GET", "/healthy", errors.New("folding"), 200, "healthy\n"},
		{"healthy, HEAD", "HEAD", "/healthy", nil, 200, ""},
		{"ready", "GET", "/ready", nil, 200, "ready\n"},
		{"ready, HEAD", "HEAD", "/ready", nil, 200, ""},
		{"not ready", "GET", "/ready", errors.New("folding shard-03"), 503, "folding shard-03"},
		{"metrics", "GET", "/metrics", nil, 200, "siltstone_test_things_total 7"},
		{"metrics, HEAD", "HEAD", "/metrics", nil, 200, ""},
		{"wrong method", "POST", "/ready", nil, 405, "method_not_allowed"},
		{"nothing there", "GET", "/nothing", nil, 404, "not_found"},
		{"below a path", "GET", "/healthy/x", nil, 404, "not_found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t, func(o *Options) { o.Agent = agentState{err: tt.notReady} })
			things := prometheus.NewCounter(prometheus.CounterOpts{Name: "siltstone_test_things_total", Help: "Things."})
			f.registry.MustRegister(things)
			things.Add(7)
			// A real server, because it is the server that drops a HEAD's body.
			server := httptest.NewServer(f.handler)
			defer server.Close()
			got := fetch(t, tt.method, server.URL+tt.path)
			if got.status != tt.status || !strings.Contains(got.body, tt.body) {
				t.Errorf("%d %q, want %d with %q", got.status, got.body, tt.status, tt.body)
			}
			if tt.method == "HEAD" && got.body != "" {
				t.Errorf("HEAD has a body: %q", got.body)
			}
			if cache := got.header.Get("Cache-Control"); cache != "no-store" {
				t.Errorf("Cache-Control: %q", cache)
			}
			if tt.status >= 400 {
				got.checkError()
			}
		})
	}
}

// broken is a metric that cannot be told.
type broken struct{ *prometheus.Desc }

func (b broken) Describe(to chan<- *prometheus.Desc) { to <- b.Desc }
func (b broken) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(b.Desc, errors.New("out of order"))
}

// TestMetricsPage: in the form and the coding that is asked for, or an error
// that is none of 200.
func TestMetricsPage(t *testing.T) {
	f := start(t)
	plain := f.do("GET", "/metrics", "").ok()
	for _, coding := range []string{"gzip", "zstd"} {
		got := f.do("GET", "/metrics", "", "Accept-Encoding", coding).ok()
		if text := decompressed(t, got.header.Get("Content-Encoding"), got.body); got.header.Get("Content-Encoding") != coding ||
			!strings.Contains(text, `siltstone_gateway_requests_total{route="metrics",status="2xx"}`) || len(text) < len(plain.body) {
			t.Errorf("%v, %s", got.header, text)
		}
	}
	f.do("GET", "/metrics", "", "Accept", "application/openmetrics-text;version=1.0.0").ok()
	if m := f.do("GET", "/metrics", "").ok().body; !strings.Contains(m, "siltstone_gateway_request_memory_bytes 0\n") {
		t.Errorf("memory is still held: %s", m)
	}
	f.registry.MustRegister(broken{prometheus.NewDesc("siltstone_test_broken", "Broken.", nil, nil)})
	f.do("GET", "/metrics", "").want(500, 50001, "out of order")
}

// TestPanic: a fault of ours is an error of one request, and in the log.
func TestPanic(t *testing.T) {
	var log strings.Builder
	f := start(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	f.create("t", 1)
	f.log.fail = func(siltstone.TopicPartition) error { panic("a hole") }
	f.do("GET", recordsOf, "").want(500, 50001, "a fault of the server")
	if !strings.Contains(log.String(), "a hole") || !strings.Contains(log.String(), "gateway_test.go") {
		t.Errorf("logged: %s", log.String())
	}
	if m := f.do("GET", "/metrics", "").ok().body; !strings.Contains(m, `siltstone_gateway_requests_total{route="partition_records",status="5xx"} 1`) {
		t.Errorf("%s", m)
	}
	h := newHandler(Options{Logger: slog.New(slog.DiscardHandler), Limits: Limits{MemoryBytes: 1}})
	half := h.measured("other", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeText(w, "half")
		panic("a hole")
	}))
	server := httptest.NewServer(half)
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("half an answer looks whole")
	}
}

func fetch(t *testing.T, method, url string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{t, resp.StatusCode, resp.Header, string(text)}
}

// TestNotYet: what the contract has and is not served is said to be so.
func TestNotYet(t *testing.T) {
	f := start(t)
	f.create("t", 1)
	const records = "/api/v1/topics/t/partitions/0/records"
	for _, path := range []string{
		"/api/v1/topics/t/records", "/api/v1/topics/t/partitions/0/ranges/x/0-5", "/api/v1/groups", "/api/v1/groups/g/offsets",
		"/v3/clusters", "/kafka/v3/clusters/c/topics", "/consumers/g", "/topics", "/topics/t", "/brokers", "/v1/stream/t/0", "/openapi.json",
		records + "?cursor=x", records + "?until=5",
	} {
		f.do("GET", path, "").want(501, 50101, "not served yet")
	}
	f.do("GET", "/consumers/g/instances/i/records?timeout=1000", "", "Accept", "application/vnd.kafka.json.v2+json").want(501, 50101, "consumers")
	f.do("GET", "/v1/stream/t?offset=-1&live=sse", "", "Accept", "text/event-stream").want(501, 50101, "durable streams")
	f.do("GET", "/api/v1/topics/t/records?limit=5&wait=1", "", "Accept", typeLines).want(501, 50101, "cursor")
	f.post(records, `{"records":[{"value":"x"}]}`, "If-Match", "").want(501, 50101, "If-Match")
	f.do("POST", "/consumers/g", "{}").want(501, 50101, "consumers")
	for _, header := range []string{
		"If-Match", "Fencing-Token", "Producer-Id", "Producer-Epoch", "Producer-Seq", "Idempotency-Key", "Authorization",
	} {
		f.post(records, `{"records":[{"value":"x"}]}`, header, `"1"`).want(501, 50101, header)
	}
	f.do("GET", records, "", "Last-Event-ID", "0:5").want(501, 50101, "Last-Event-Id")
	for _, accept := range []string{"text/event-stream", "application/vnd.kafka.record-batch", "text/event-stream, text/html"} {
		f.do("GET", records, "", "Accept", accept).want(501, 50101, "replies of type")
	}
	f.do("POST", records, "x", "Content-Type", "application/vnd.kafka.record-batch").want(501, 50101, "record-batch")
	if n := len(f.log.appends); n > 0 {
		t.Errorf("%d appends", n)
	}
}

// TestUnknown: what nobody knows is refused, and what is there says what it takes.
func TestUnknown(t *testing.T) {
	f := start(t)
	f.create("t", 2)
	const records = "/api/v1/topics/t/partitions/0/records"
	f.do("GET", records+"?ofset=5", "").want(400, 40001, `"ofset"`)
	f.do("GET", records+"?limit=5&limit=6", "").want(400, 40001, "twice")
	f.do("GET", records+"?limit=%zz", "").want(400, 40001, "query")
	f.post("/api/v1/topics/t/records?wait=5", `{}`).want(400, 40001, `"wait"`)
	f.do("GET", "/api/v1/topics/t?x=5", "").want(400, 40001, "there is: none")
	f.do("GET", records, "", "Accept", "text/html").want(406, 40601, "text/html")
	f.do("GET", "/api/v1/topics", "", "Accept", typeLines).want(406, 40601, typeLines)
	f.do("GET", "/api/v1/topics", "", "Accept", "application/json;q=0").want(406, 40601, "")
	f.do("GET", "/api/v1/topics/none", "").want(404, 40401, "none")
	f.do("GET", "/api/v1/topics/none/partitions/0/records", "").want(404, 40401, "none")
	for _, p := range []string{"2", "-1", "x", "99999999999"} {
		f.do("GET", "/api/v1/topics/t/partitions/"+p, "").want(404, 40402, p)
		f.do("GET", "/api/v1/topics/t/partitions/"+p+"/records", "").want(404, 40402, p)
		f.post("/api/v1/topics/t/partitions/"+p+"/records", `{"records":[{"value":"x"}]}`).want(404, 40402, p)
	}
	got := f.do("PATCH", records, "")
	if got.want(405, 405, "GET, HEAD, POST"); got.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow: %s", got.header.Get("Allow"))
	}
	got = f.post("/api/v1/topics", `{"name":"t"}`)
	if got.want(405, 405, "GET, HEAD, not POST; PUT /api/v1/topics/{topic} makes a topic"); got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow: %s", got.header.Get("Allow"))
	}
	f.post("/api/v1/topics/t", `{"partitions":1}`).want(405, 405, "PUT makes a topic, and POST /api/v1/topics/{topic}/records appends")
	f.do("GET", "/", "").want(404, 404, "/api/v1/topics")
	if moved := f.do("GET", "//api/v1/topics", ""); moved.header.Get("Location") != "/api/v1/topics" || moved.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d, %v", moved.status, moved.header)
	}
}
