package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// webClient takes answers as they come, compressed ones too.
var webClient = &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: 2 * patience}

// webReply is an answer to an HTTP request.
type webReply struct {
	t      *testing.T
	status int
	header http.Header
	body   string
	took   time.Duration
}

// web sends a request; headers are name, value, name, value.
func (s *server) web(t *testing.T, method, path string, body io.Reader, headers ...string) webReply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.http+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	begin := time.Now()
	resp, err := webClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return webReply{t, resp.StatusCode, resp.Header, string(text), time.Since(begin)}
}

// post sends JSON.
func (s *server) post(t *testing.T, path, body string, headers ...string) webReply {
	t.Helper()
	return s.web(t, "POST", path, strings.NewReader(body), append([]string{"Content-Type", "application/json"}, headers...)...)
}

// fetch is a GET.
func (s *server) fetch(t *testing.T, path string, headers ...string) webReply {
	t.Helper()
	return s.web(t, "GET", path, nil, headers...)
}

// make makes a topic by HTTP.
func (s *server) makeTopic(t *testing.T, name, body string) {
	t.Helper()
	s.web(t, "PUT", "/api/v1/topics/"+name, strings.NewReader(body)).want(201, `"name":"`+name+`"`)
}

// want checks an answer.
func (r webReply) want(status int, contains ...string) webReply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%d %.1000s, want %d", r.status, r.body, status)
	}
	for _, c := range contains {
		if !strings.Contains(r.body, c) {
			r.t.Errorf("%d %.1000s, want %q in it", r.status, r.body, c)
		}
	}
	return r
}

// wantError checks an answer that is an error: the shape of all of them.
func (r webReply) wantError(status, number int, contains string) webReply {
	r.t.Helper()
	var e struct {
		Number    int `json:"error_code"`
		Message   string
		Code      string
		Retriable *bool
		Details   map[string]any
	}
	if err := json.Unmarshal([]byte(r.want(status).body), &e); err != nil {
		r.t.Fatalf("%s: %v", r.body, err)
	}
	if e.Number != number || !strings.Contains(e.Message, contains) || e.Code == "" || e.Retriable == nil || e.Details == nil ||
		r.header.Get("Content-Type") != "application/json" || r.header.Get("Cache-Control") != "no-store" {
		r.t.Errorf("%s, %v; want %d with %q", r.body, r.header, number, contains)
	}
	return r
}

// wantAppended checks the answer to an append to one partition.
func (r webReply) wantAppended(partition int, base, next int64) webReply {
	r.t.Helper()
	return r.want(200, fmt.Sprintf(`"results":[{"partition":%d,"base_offset":%d,"next_offset":%d,"timestamp":1`, partition, base, next))
}

// webPage is a read's answer.
type webPage struct {
	ID       string      `json:"topic_id"`
	Start    int64       `json:"start_offset"`
	Next     int64       `json:"next_offset"`
	High     int64       `json:"high_watermark"`
	LogStart int64       `json:"log_start_offset"`
	Records  []webRecord `json:"records"`
}

func (r webReply) page() (p webPage) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.want(200).body), &p); err != nil {
		r.t.Fatalf("%.1000s: %v", r.body, err)
	}
	if r.header.Get("Next-Offset") != fmt.Sprint(p.Next) || r.header.Get("High-Watermark") != fmt.Sprint(p.High) ||
		r.header.Get("Up-To-Date") != fmt.Sprint(p.Next == p.High) {
		r.t.Errorf("%v and next %d, high watermark %d", r.header, p.Next, p.High)
	}
	return p
}

func recordsOf(topic string, partition int) string {
	return fmt.Sprintf("/api/v1/topics/%s/partitions/%d/records", topic, partition)
}
