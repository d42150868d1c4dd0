package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

type agentState struct{ err error }

func (a agentState) Ready() error { return a.err }

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
		{"nothing there", "GET", "/topics", nil, 404, "not_found"},
		{"below a path", "GET", "/healthy/x", nil, 404, "not_found"},
	}
	registry := prometheus.NewRegistry()
	things := prometheus.NewCounter(prometheus.CounterOpts{Name: "siltstone_test_things_total", Help: "Things."})
	registry.MustRegister(things)
	things.Add(7)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := New(Options{Agent: agentState{tt.notReady}, Metrics: registry})
			// A real server, because it is the server that drops a HEAD's body.
			server := httptest.NewServer(h)
			defer server.Close()
			status, header, body := do(t, tt.method, server.URL+tt.path)
			if status != tt.status || !strings.Contains(body, tt.body) {
				t.Errorf("%d %q, want %d with %q", status, body, tt.status, tt.body)
			}
			if tt.method == "HEAD" && body != "" {
				t.Errorf("HEAD has a body: %q", body)
			}
			if got := header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control: %q", got)
			}
			if tt.status >= 400 {
				checkError(t, status, header, body)
			}
		})
	}
}

func do(t *testing.T, method, url string) (status int, header http.Header, body string) {
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
	return resp.StatusCode, resp.Header, string(text)
}

// checkError: one shape for all errors, and what the status obliges to.
func checkError(t *testing.T, status int, header http.Header, body string) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	for _, f := range []string{"error_code", "message", "code", "retriable", "details"} {
		if fields[f] == nil {
			t.Errorf("no %s in %s", f, body)
		}
	}
	if status == 503 && (header.Get("Retry-After") == "" || fields["retriable"] != true) {
		t.Errorf("503 without Retry-After, or not retriable: %s", body)
	}
	if status == 405 && header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow: %q", header.Get("Allow"))
	}
}
