package faultproxy

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// store keeps what is put, and what came with the last request of each method.
type store struct {
	mu      sync.Mutex
	objects map[string][]byte
	last    map[string]*http.Request
	broken  int // uploads that ended too early
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.broken++
		return
	}
	s.last[r.Method] = r
	switch r.Method {
	case http.MethodPut:
		s.objects[r.URL.Path] = body
	case http.MethodGet:
		_, _ = w.Write(s.objects[r.URL.Path])
	}
}

func (s *store) get(path string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.objects[path]
	return string(b), ok
}

func (s *store) lastOf(method string) *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[method]
}

type fixture struct {
	*testing.T
	*Proxy
	*store
	url string
}

// newFixture is a proxy before a store, with faults.
func newFixture(t *testing.T, faults ...Fault) *fixture {
	t.Helper()
	s := &store{objects: map[string][]byte{}, last: map[string]*http.Request{}}
	upstream := httptest.NewServer(s)
	t.Cleanup(upstream.Close)
	p, err := New(Options{Upstream: upstream.URL, Seed: 1, Secret: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Set(faults...); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return &fixture{t, p, s, front.URL}
}

type answer struct {
	status int
	body   string
	err    error // of the request, or of reading the body
}

func (f *fixture) send(method, path, body string, headers ...string) answer {
	f.Helper()
	return f.sendFor(f.Context(), method, path, body, headers...)
}

func (f *fixture) sendFor(ctx context.Context, method, path, body string, headers ...string) answer {
	f.Helper()
	r, err := http.NewRequestWithContext(ctx, method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	// Each has a connection of its own: on one that was used before, the client
	// would repeat what is safe to be repeated.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	reply, err := client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer reply.Body.Close()
	b, err := io.ReadAll(reply.Body)
	return answer{reply.StatusCode, string(b), err}
}

// TestUntouched: a request reaches the store as it was sent, as its signature
// covers it, and so does the answer.
func TestUntouched(t *testing.T) {
	f := newFixture(t)
	const odd = "/b/a%2Fb+c%20d"
	body := strings.Repeat("silt", 1<<20)
	f.send("PUT", odd+"?x=1&y=a%2Fb", body, "Authorization: secret", "Accept-Encoding: identity", "Expect: 100-continue")
	got := f.lastOf("PUT")
	if got == nil || got.URL.EscapedPath() != odd || got.URL.RawQuery != "x=1&y=a%2Fb" || got.Header.Get("Authorization") != "secret" || got.ContentLength != int64(len(body)) {
		t.Fatalf("the store has %+v", got)
	}
	if host := strings.TrimPrefix(f.url, "http://"); got.Host != host {
		t.Errorf("host %q, want %q", got.Host, host)
	}
	if a := f.send("GET", odd, ""); a.body != body || a.status != http.StatusOK {
		t.Errorf("status %d, %d bytes, %v", a.status, len(a.body), a.err)
	}
	for method, sent := range map[string][]string{
		"PUT": {"Authorization", "Accept-Encoding", "Content-Length", "User-Agent", "Expect"},
		"GET": {"User-Agent"},
	} {
		for name := range f.lastOf(method).Header {
			if !slices.Contains(sent, name) {
				t.Errorf("%s: the header %s was added", method, name)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	f := newFixture(t,
		Fault{Operations: []string{"PutObject"}, Action: Answer, Error: SlowDown},
		Fault{Operations: []string{"GetObject", "HeadObject"}, Action: Answer, Error: ExpiredToken},
		Fault{Operations: []string{"PutItem"}, Action: Answer, Error: Throttled},
	)
	a := f.send("PUT", "/b/k", strings.Repeat("x", 1<<20))
	var e struct {
		XMLName                            xml.Name `xml:"Error"`
		Code, Message, Resource, RequestId string
	}
	if err := xml.Unmarshal([]byte(a.body), &e); err != nil || a.status != 503 || e.Code != "SlowDown" || e.Resource != "/b/k" || e.RequestId == "" {
		t.Errorf("PUT: %+v, %v", a, err)
	}
	if _, ok := f.get("/b/k"); ok {
		t.Error("the store has what was refused")
	}
	if a := f.send("GET", "/b/k", ""); a.status != 403 || !strings.Contains(a.body, "<Code>ExpiredToken</Code>") {
		t.Errorf("GET: %+v", a)
	}
	if a := f.send("HEAD", "/b/k", ""); a.status != 403 || a.body != "" {
		t.Errorf("HEAD: %+v", a)
	}
	a = f.send("POST", "/", "{}", "X-Amz-Target: DynamoDB_20120810.PutItem")
	if a.status != 400 || !strings.Contains(a.body, `"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"`) {
		t.Errorf("PutItem: %+v", a)
	}
	if a := f.send("POST", "/", "{}", "X-Amz-Target: DynamoDB_20120810.GetItem"); a.status != 200 {
		t.Errorf("GetItem: %+v", a)
	}
	if taken := f.Taken(); !slices.Equal(taken, []int{1, 2, 1}) {
		t.Errorf("taken: %v", taken)
	}
}

// TestDropReply: the store has done it, and the client does not know.
func TestDropReply(t *testing.T) {
	f := newFixture(t, Fault{Method: "PUT", Times: 1, Action: DropReply})
	if a := f.send("PUT", "/b/k", "silt"); !errors.Is(a.err, io.EOF) {
		t.Errorf("the client has %+v", a)
	}
	if body, _ := f.get("/b/k"); body != "silt" {
		t.Errorf("the store has %q", body)
	}
	if a := f.send("PUT", "/b/k", "stone"); a.status != 200 {
		t.Errorf("the second: %+v", a)
	}
}

func TestCutReply(t *testing.T) {
	f := newFixture(t, Fault{Action: CutReply})
	body := strings.Repeat("silt", 100) // less than any buffer
	if a := f.send("PUT", "/b/k", body); a.status != 200 || a.err != nil {
		t.Errorf("a reply without body: %+v", a)
	}
	a := f.send("GET", "/b/k", "")
	if a.status != 200 || !errors.Is(a.err, io.ErrUnexpectedEOF) || a.body != body[:len(body)/2] {
		t.Errorf("status %d, %d bytes of %d, %v", a.status, len(a.body), len(body), a.err)
	}
}

func TestCutUpload(t *testing.T) {
	f := newFixture(t, Fault{Action: CutUpload, PathPrefix: "/b/cut"})
	if a := f.send("PUT", "/b/cut", strings.Repeat("silt", 1<<20)); a.err == nil {
		t.Errorf("the client has %+v", a)
	}
	f.await("a broken upload", func() bool { f.store.mu.Lock(); defer f.store.mu.Unlock(); return f.broken == 1 })
	if _, ok := f.get("/b/cut"); ok {
		t.Error("the store has it")
	}
	if a := f.send("PUT", "/b/whole", "silt"); a.status != 200 {
		t.Errorf("%+v", a)
	}
	if a := f.send("GET", "/b/cut", ""); a.status != 200 {
		t.Errorf("a request without body: %+v", a)
	}
}

func (f *fixture) await(what string, is func() bool) {
	f.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("%s does not come", what)
		}
	}
}

// TestBlackHole: it ends when the client gives up, and not before.
func TestBlackHole(t *testing.T) {
	f := newFixture(t, Fault{Action: BlackHole})
	ctx, giveUp := context.WithCancel(t.Context())
	answered := make(chan answer, 1)
	go func() { answered <- f.sendFor(ctx, "PUT", "/b/k", strings.Repeat("silt", 1<<20)) }()
	f.await("the request", func() bool { return f.Requests() == 1 })
	select {
	case a := <-answered:
		t.Fatalf("it answers %+v", a)
	default:
	}
	giveUp()
	if a := <-answered; !errors.Is(a.err, context.Canceled) {
		t.Errorf("%+v", a)
	}
	if _, ok := f.get("/b/k"); ok {
		t.Error("the store has it")
	}
}

// TestDelay: a delay is a lower bound, before the store sees the request, and
// delays add up with each other and with what else is done.
func TestDelay(t *testing.T) {
	f := newFixture(t, Fault{DelayMs: 30}, Fault{Method: "PUT", DelayMs: 40}, Fault{Method: "PUT", Action: DropReply})
	for method, least := range map[string]time.Duration{"GET": 30 * time.Millisecond, "PUT": 70 * time.Millisecond} {
		begin := time.Now()
		a := f.send(method, "/b/k", "")
		if took := time.Since(begin); took < least {
			t.Errorf("%s took %s, below %s", method, took, least)
		}
		if dropped := a.err != nil; dropped != (method == "PUT") {
			t.Errorf("%s: %+v", method, a)
		}
	}
}

// TestStripConditions: the store sees an unconditional request with a signature
// over what it sees.
func TestStripConditions(t *testing.T) {
	f := newFixture(t, Fault{Action: StripConditions})
	const signed = "Authorization: AWS4-HMAC-SHA256 Credential=KEY/20261202/us-east-1/s3/aws4_request, SignedHeaders=host;if-none-match, Signature=00"
	send := func(payload string) answer {
		return f.send("PUT", "/b/k", "silt", "If-None-Match: *", "X-Amz-Date: 20261202T030405Z", "X-Amz-Content-Sha256: "+payload, signed)
	}
	if a := send("UNSIGNED-PAYLOAD"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	got := f.lastOf("PUT")
	auth := got.Header.Get("Authorization")
	if got.Header.Get("If-None-Match") != "" || strings.Contains(auth, "if-none-match") || strings.HasSuffix(auth, "Signature=00") ||
		!strings.Contains(auth, "Credential=KEY/20261202/us-east-1/s3/aws4_request") {
		t.Errorf("the store has %v", got.Header)
	}
	_, names, _ := strings.Cut(auth, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	for name := range strings.SplitSeq(names, ";") {
		if name != "host" && got.Header.Get(name) == "" {
			t.Errorf("%s is signed, and the store has none: %v", name, got.Header)
		}
	}
	if body, _ := f.get("/b/k"); body != "silt" {
		t.Errorf("the store has %q", body)
	}
	if a := send("STREAMING-AWS4-HMAC-SHA256-PAYLOAD"); a.status != http.StatusNotImplemented {
		t.Errorf("signed chunks: %+v", a)
	}
}

func TestWhichRequests(t *testing.T) {
	refused := func(f *fixture, n int) (taken []int) {
		for i := 1; i <= n; i++ {
			if f.send("GET", "/b/k", "").status == 500 {
				taken = append(taken, i)
			}
		}
		return taken
	}
	fault := func(f Fault) Fault { f.Action, f.Error = Answer, InternalError; return f }
	for _, tt := range []struct {
		name  string
		fault Fault
		want  []int
	}{
		{"every", Fault{Every: 3}, []int{3, 6, 9}},
		{"first", Fault{Times: 2}, []int{1, 2}},
		{"both", Fault{Every: 2, Times: 2}, []int{2, 4}},
		{"another method", Fault{Method: "PUT"}, nil},
		{"another path", Fault{PathPrefix: "/b/l"}, nil},
		{"another operation", Fault{Operations: []string{"PutObject"}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, fault(tt.fault))
			if got := refused(f, 10); !slices.Equal(got, tt.want) {
				t.Errorf("refused %v, want %v", got, tt.want)
			}
		})
	}
	t.Run("share", func(t *testing.T) {
		share := fault(Fault{Share: 0.3})
		a, b := refused(newFixture(t, share), 200), refused(newFixture(t, share), 200)
		if !slices.Equal(a, b) || len(a) < 30 || len(a) > 90 {
			t.Errorf("of 200 it took %d and %d, want about 60, and the same", len(a), len(b))
		}
	})
}

func TestSetRefuses(t *testing.T) {
	p, err := New(Options{Upstream: "http://127.0.0.1:9000"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		fault Fault
		says  string
	}{
		{Fault{}, "an action or a delay"},
		{Fault{Action: "explode"}, "explode"},
		{Fault{Action: Answer}, "an error"},
		{Fault{Action: DropReply, Error: SlowDown}, "an error"},
		{Fault{Action: Answer, Error: &Error{Status: 200, Code: "OK"}}, "400 to 599"},
		{Fault{DelayMs: 1, Share: 1.5}, "share"},
		{Fault{DelayMs: -1}, "not below 0"},
		{Fault{Action: StripConditions}, "secret key"},
	} {
		if err := p.Set(Fault{DelayMs: 1}, tt.fault); err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "fault 2") {
			t.Errorf("%+v: %v, want %q", tt.fault, err, tt.says)
		}
	}
	for _, upstream := range []string{"127.0.0.1:9000", "https://127.0.0.1", "http://127.0.0.1/b", ""} {
		if _, err := New(Options{Upstream: upstream}); err == nil {
			t.Errorf("upstream %q is taken", upstream)
		}
	}
}

// TestNoStore: where nobody listens the client's connection is closed.
func TestNoStore(t *testing.T) {
	f := newFixture(t)
	p, err := New(Options{Upstream: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	f.url = front.URL
	if a := f.send("GET", "/b/k", ""); !errors.Is(a.err, io.EOF) {
		t.Errorf("%+v", a)
	}
}

func TestCounts(t *testing.T) {
	f := newFixture(t, Fault{Method: "GET", Action: Answer, Error: SlowDown})
	var together sync.WaitGroup
	for range 10 {
		together.Go(func() { f.send("GET", "/b/k", "") })
		together.Go(func() { f.send("PUT", "/b/k", "silt") })
	}
	together.Wait()
	f.send("POST", "/", "{}", "X-Amz-Target: DynamoDB_20120810.PutItem")
	if f.Requests() != 21 || f.Requests("GetObject") != 10 || f.Requests("PutObject", "PutItem") != 11 || f.Requests("Query") != 0 {
		t.Errorf("%d, %d, %d, %d", f.Requests(), f.Requests("GetObject"), f.Requests("PutObject", "PutItem"), f.Requests("Query"))
	}
	if got := total(f.PerSecond("GetObject")); got != 10 {
		t.Errorf("by seconds: %v", f.PerSecond("GetObject"))
	}
	f.ResetCounts()
	if f.Requests() != 0 || len(f.PerSecond()) != 0 {
		t.Errorf("after: %v", f.PerSecond())
	}
}

func TestControl(t *testing.T) {
	f := newFixture(t)
	control := httptest.NewServer(f.Control())
	t.Cleanup(control.Close)
	proxy := f.url
	ask := func(method, path, body string) answer {
		f.url = control.URL
		defer func() { f.url = proxy }()
		return f.send(method, path, body)
	}
	a := ask("PUT", "/faults", `[{"operations":["PutObject"],"every":2,"action":"answer","error":{"status":503,"code":"SlowDown"}},{"delay_ms":1}]`)
	if a.status != 200 {
		t.Fatalf("%+v", a)
	}
	if one, two := f.send("PUT", "/b/k", "silt"), f.send("PUT", "/b/k", "silt"); one.status != 200 || two.status != 503 {
		t.Errorf("%+v, %+v", one, two)
	}
	want := `[{"operations":["PutObject"],"every":2,"action":"answer","error":{"status":503,"code":"SlowDown"},"taken":1},{"delay_ms":1,"taken":2}]` + "\n"
	if a := ask("GET", "/faults", ""); a.body != want {
		t.Errorf("%s, want %s", a.body, want)
	}
	if a := ask("GET", "/requests", ""); !strings.HasPrefix(a.body, `{"PutObject":[`) {
		t.Errorf("%+v", a)
	}
	if a := ask("DELETE", "/requests", ""); a.status != 204 || f.Requests() != 0 {
		t.Errorf("%+v, then %d", a, f.Requests())
	}
	for _, bad := range []string{`[{"action":"explode"}]`, `[{"evry":2}]`, `{`, string(bytes.Repeat([]byte(" "), 2*maxFaultsBytes))} {
		if a := ask("PUT", "/faults", bad); a.status != 400 {
			t.Errorf("%.40s: %+v", bad, a)
		}
	}
	if a := ask("GET", "/faults", ""); !strings.Contains(a.body, "PutObject") {
		t.Errorf("what was refused has replaced the faults: %s", a.body)
	}
}
