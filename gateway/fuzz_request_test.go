package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// FuzzRequest: whatever a request is, its answer is no fault of ours, has the
// shape of its kind, and what it refuses to do is not done.
func FuzzRequest(f *testing.F) {
	for _, r := range []string{
		"GET /api/v1/topics?limit=1 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /api/v1/topics/t/partitions/0/records?offset=1&encoding=json HTTP/1.1\r\nHost: h\r\nAccept: */*;q=0.1, application/x-ndjson\r\nAccept-Encoding: zstd, gzip;q=0.5\r\n\r\n",
		"HEAD /api/v1/topics/t/partitions/0 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /api/v1/topics/t/partitions/0/offset?timestamp=1001 HTTP/1.1\r\nHost: h\r\n\r\n",
		"PUT /api/v1/topics/u HTTP/1.1\r\nHost: h\r\nContent-Length: 16\r\n\r\n{\"partitions\":2}",
		"DELETE /api/v1/topics/t HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST /api/v1/topics/t/records HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n{\"records\":[{\"value\":\"a\"}]}",
		"POST /api/v1/topics/t/records HTTP/1.1\r\nHost: h\r\nContent-Type: image/png\r\nRecord-Key: k\r\nRecord-Header-A: 1\r\nContent-Length: 1\r\n\r\nx",
		"POST /api/v1/topics/t/records HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
		"POST /api/v1/topics/t/records HTTP/1.1\r\nHost: h\r\nIf-Match: \"5\"\r\nContent-Length: 1\r\n\r\nx",
		"POST /consumers/g HTTP/1.1\r\nHost: h\r\n\r\n",
		"OPTIONS /api/v1/topics/t HTTP/1.1\r\nHost: h\r\n\r\n",
	} {
		f.Add([]byte(r))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil || r.RequestURI == "*" || r.Method == http.MethodConnect {
			return // the server's part
		}
		o := start(t, limits(func(l *Limits) { l.Wait, l.BodyBytes = 1, 10_000 }))
		there := o.create("t", 1)
		o.put(there, 0, batchOf(t, batch.LZ4, 0, "a", strings.Repeat("b", 2000)))
		w := recorded(o.handler, r)
		got := reply{t, w.Code, w.Result().Header, w.Body.String()}
		if got.header.Get("Location") != "" && got.status/100 == 3 {
			return // to a clean path
		}
		switch got.status {
		case 200, 201, 204, 400, 403, 404, 405, 406, 409, 410, 413, 415, 416, 422, 501:
		default:
			t.Fatalf("%q: %d %s", raw, got.status, got.body)
		}
		kept := o.batches(there, 0) == 1 && o.topics.Topics().Len() == 1
		switch {
		case got.status >= 400:
			got.checkError()
			if !kept {
				t.Fatalf("%q: %d, and it was done", raw, got.status)
			}
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			if !kept {
				t.Fatalf("%q: it changed something", raw)
			}
		}
		if kind := got.header.Get("Content-Type"); kind == typeJSON && r.Method != http.MethodHead && !json.Valid([]byte(decompressed(t, got.header.Get("Content-Encoding"), got.body))) {
			t.Fatalf("%q: %q is not JSON", raw, got.body)
		}
	})
}

// FuzzTopic: a topic is made as encoding/json finds it described, or refused;
// the same again changes nothing.
func FuzzTopic(f *testing.F) {
	for _, body := range []string{
		"", "{}", `{"partitions":3,"replication_factor":1,"configs":{"retention.ms":60000,"cleanup.policy":"compact","unclean.leader.election.enable":false}}`,
		`{"partitions":-1}`, `{"configs":{"a":1,"a":2}}`, `{"configs":{"retention.ms":null}}`, `{"Partitions":1}`, `{"partitions":1e1}`, `[`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o := start(t)
		put := func() reply { return o.do("PUT", "/api/v1/topics/t", string(body)) }
		got := put()
		switch got.status {
		case 201:
		case 400, 413, 422:
			if o.topics.Topics().Len() != 0 {
				t.Fatalf("%q: %d, and it was made", body, got.status)
			}
			return
		default:
			t.Fatalf("%q: %d %s", body, got.status, got.body)
		}
		made, _ := o.topics.Topics().Topic("t")
		var std struct {
			Partitions *int32
			Configs    map[string]any
		}
		if err := json.Unmarshal(body, &std); err != nil && len(trim(body)) > 0 {
			t.Fatalf("%q is taken, and encoding/json says: %v", body, err)
		}
		if std.Partitions != nil && *std.Partitions != -1 && *std.Partitions != made.Partitions || len(std.Configs) != len(made.Configs) {
			t.Fatalf("%q makes %+v", body, made)
		}
		if again := put(); again.status != 200 {
			t.Fatalf("%q again: %d %s", body, again.status, again.body)
		}
		if now, _ := o.topics.Topics().Topic("t"); now.ID != made.ID {
			t.Fatalf("%q again makes another: %+v", body, now)
		}
	})
}
