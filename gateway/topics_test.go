package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone"
)

func (r reply) topic(status int) (s topicShown) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.body), &s); err != nil || r.status != status {
		r.t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	return s
}

// TestTopics: a topic is made, shown, listed and deleted.
func TestTopics(t *testing.T) {
	f := start(t)
	const url = "/api/v1/topics/a.b"
	got := f.do("PUT", url, `{"partitions":3,"replication_factor":3,"configs":{"retention.ms":60000,"cleanup.policy":"compact"}}`)
	made := got.topic(201)
	want := topicShown{"a.b", made.ID, 3, made.CreatedMS, map[string]string{"retention.ms": "60000", "cleanup.policy": "compact"}}
	if diff := cmp.Diff(want, made); diff != "" || len(made.ID) != 22 || made.CreatedMS == 0 || got.header.Get("Location") != url {
		t.Errorf("(-want +got):\n%s%v", diff, got.header)
	}
	for _, again := range []string{"", "{}", `{"partitions":3}`, `{"configs":{"retention.ms":"60000"}}`} {
		if diff := cmp.Diff(want, f.do("PUT", url, again).topic(200)); diff != "" {
			t.Errorf("again with %q (-want +got):\n%s", again, diff)
		}
	}
	f.do("PUT", url, `{"partitions":4}`).want(409, 40904, "3 partitions, not 4")
	f.do("PUT", url, `{"configs":{"retention.ms":5}}`).want(409, 40904, "retention.ms")
	f.do("PUT", url, `{"configs":{"max.message.bytes":5000}}`).want(409, 40904, "max.message.bytes")
	if diff := cmp.Diff(want, f.do("GET", url, "").topic(200)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := f.do("DELETE", url, ""); d.status != 204 || d.body != "" {
		t.Errorf("%d %s", d.status, d.body)
	}
	f.do("DELETE", url, "").want(404, 40401, "a.b")
	f.do("GET", url, "").want(404, 40401, "a.b")
	if p := f.do("PUT", "/api/v1/topics/defaults", "").topic(201); p.Partitions < 1 || p.Configs == nil {
		t.Errorf("%+v", p)
	}
}

func TestTopicsRefused(t *testing.T) {
	f := start(t)
	const url = "/api/v1/topics/t"
	tests := []struct {
		url, body      string
		status, number int
		contains       string
	}{
		{url, `{`, 400, 40003, "JSON"},
		{url, `[]`, 422, 42217, "invalid topic: it is not an object"},
		{url, `{"Partitions":1}`, 422, 42217, `invalid topic: "Partitions" is no field of a topic, which has partitions`},
		{url, `{"partitions":"1"}`, 422, 42217, "partitions is not an integer"},
		{url, `{"partitions":0}`, 422, 42212, "0"},
		{url, `{"partitions":3000000000}`, 422, 42217, "32 bits"},
		{url, `{"replication_factor":9}`, 422, 42213, "9"},
		{url, `{"configs":{"no.such":"1"}}`, 422, 42214, "no.such"},
		{url, `{"configs":{"retention.ms":null}}`, 422, 42214, "retention.ms"},
		{url, `{"configs":{"retention.ms":[1]}}`, 422, 42214, "retention.ms"},
		{url, `{"configs":{"retention.ms":1,"retention.ms":2}}`, 422, 42217, "twice"},
		{url, `{"configs":[]}`, 422, 42217, "configs is not an object"},
		{"/api/v1/topics/a%20b", ``, 422, 42211, "a b"},
		{"/api/v1/topics/__consumer_offsets", ``, 422, 42211, "reserved"},
	}
	for _, tt := range tests {
		f.do("PUT", tt.url, tt.body).want(tt.status, tt.number, tt.contains)
	}
	if n := f.topics.Topics().Len(); n != 0 {
		t.Errorf("%d topics were made", n)
	}
	f.create("t", 1)
	f.topics.FailWith(fmt.Errorf("the ledger: %w", siltstone.ErrUnavailable))
	f.do("PUT", "/api/v1/topics/u", "").want(503, 50302, "ledger")
	f.do("DELETE", url, "").want(503, 50302, "ledger")
}

// TestListTopics gives all topics in pages.
func TestListTopics(t *testing.T) {
	f := start(t)
	type page struct {
		Topics []struct{ Name string }
		Next   *string `json:"next_after"`
	}
	list := func(query string) (names []string, next string) {
		t.Helper()
		var p page
		if err := json.Unmarshal([]byte(f.do("GET", "/api/v1/topics"+query, "").ok().body), &p); err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Topics {
			names = append(names, s.Name)
		}
		if p.Next != nil {
			next = *p.Next
		}
		return names, next
	}
	if got := f.do("GET", "/api/v1/topics", "").ok().body; got != `{"topics":[],"next_after":null}`+"\n" {
		t.Errorf("%s", got)
	}
	for _, name := range []string{"c", "a", "d", "b"} {
		f.create(name, 1)
	}
	for _, tt := range []struct{ query, names, next string }{
		{"", "[a b c d]", ""}, {"?limit=4", "[a b c d]", ""}, {"?limit=3", "[a b c]", "c"}, {"?limit=3&after=c", "[d]", ""},
		{"?limit=1&after=aa", "[b]", "b"}, {"?after=d", "[]", ""}, {"?after=", "[a b c d]", ""},
	} {
		if names, next := list(tt.query); fmt.Sprint(names) != tt.names || next != tt.next {
			t.Errorf("%s: %v, then %q", tt.query, names, next)
		}
	}
	f.do("GET", "/api/v1/topics?limit=0", "").want(400, 40001, "limit")
}

// TestListTopicsLimits: a page ends where a reply does, and has one topic at least.
func TestListTopicsLimits(t *testing.T) {
	f := start(t, limits(func(l *Limits) { l.ReplyBytes = 300 }))
	var want, got []string
	for i := range 7 {
		want = append(want, fmt.Sprint(i, strings.Repeat("x", i*30)))
		f.create(want[i], 1)
	}
	most := 0
	for after := ""; len(got) < len(want); {
		var p struct {
			Topics []topicShown
			Next   *string `json:"next_after"`
		}
		if err := json.Unmarshal([]byte(f.do("GET", "/api/v1/topics?after="+after, "").ok().body), &p); err != nil || len(p.Topics) == 0 {
			t.Fatalf("after %s: %v, %+v", after, err, p)
		}
		for _, s := range p.Topics {
			got = append(got, s.Name)
		}
		most = max(most, len(p.Topics))
		if (p.Next == nil) != (len(got) == len(want)) {
			t.Fatalf("after %s: %+v", after, p)
		}
		after = got[len(got)-1]
	}
	if diff := cmp.Diff(want, got); diff != "" || most != 2 {
		t.Errorf("%d on a page; (-want +got):\n%s", most, diff)
	}
	f = start(t, limits(func(l *Limits) { l.BodyBytes, l.MemoryBytes = 100, 600 }))
	for _, name := range want {
		f.create(name, 1)
	}
	if got := f.do("GET", "/api/v1/topics", "").ok().body; !strings.Contains(got, `"next_after":"1xx`) && !strings.Contains(got, `"next_after":"2xx`) {
		t.Errorf("with little memory: %s", got)
	}
	f = start(t, limits(func(l *Limits) { l.BodyBytes, l.MemoryBytes = 10, 60 }))
	f.create("t", 1)
	f.do("GET", "/api/v1/topics", "").want(503, 50305, "memory")
}
