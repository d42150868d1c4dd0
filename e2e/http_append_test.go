package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	webJSON  = "application/json"
	webLines = "application/x-ndjson"
)

// appendForm is a body, and the records that it must be.
type appendForm struct {
	name, kind, query, body string
	headers                 []string
	want                    []plain
}

func appendForms() []appendForm {
	b := func(s string) []byte { return []byte(s) }
	h := func(name string, value []byte) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: value} }
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return []appendForm{
		{"utf8", webJSON, "", `{"records":[{"key":"k","value":"v","headers":[["h","1"],["h",null],["",""]]},{"value":"😀\u0000\ud83d\ude00"},{"key":"","value":""},{"key":"k","value":null},{"key":null,"value":"null"}]}`, nil,
			[]plain{{0, b("k"), b("v"), []kgo.RecordHeader{h("h", b("1")), h("h", nil), h("", b(""))}}, {1, nil, b("😀\x00😀"), nil}, {2, b(""), b(""), nil}, {3, b("k"), nil, nil}, {4, nil, b("null"), nil}}},
		{"json", webJSON, "", `{"encoding":"json","records":[{"key":7,"value":{"b":1.00, "a":[1,2]},"headers":[["h","text"]]},{"key":"k","value":"s"},{"key":null,"value":null},{"value":true}]}`, nil,
			[]plain{{0, b("7"), b(`{"b":1.00, "a":[1,2]}`), []kgo.RecordHeader{h("h", b("text"))}}, {1, b(`"k"`), b(`"s"`), nil}, {2, nil, nil, nil}, {3, nil, b("true"), nil}}},
		{"base64", webJSON, "?encoding=base64", `{"records":[{"key":"AA==","value":"` + base64Of(every) + `","headers":[["h","/w=="]]},{"value":""}]}`, nil,
			[]plain{{0, b("\x00"), every, []kgo.RecordHeader{h("h", b("\xff"))}}, {1, nil, b(""), nil}}},
		{"fields in base64", webJSON, "", `{"records":[{"key_base64":"/w==","value":null,"value_base64":"gA==","headers":[{"name_base64":"/w==","value":"x"},{"name":"n","value_base64":"/g=="}]}]}`, nil,
			[]plain{{0, b("\xff"), b("\x80"), []kgo.RecordHeader{h("\xff", b("x")), h("n", b("\xfe"))}}}},
		{"lines", webLines, "", "{\"value\":\"a\"}\r\n\n{\"key\":\"k\",\"value\":null}", nil,
			[]plain{{0, nil, b("a"), nil}, {1, b("k"), nil, nil}}},
		{"lines of json", webLines, "?encoding=json", "{\"value\":{\"a\":1}}\n{\"key\":[1],\"value\":\"x\"}\n", nil,
			[]plain{{0, nil, b(`{"a":1}`), nil}, {1, b("[1]"), b(`"x"`), nil}}},
		{"lines of base64", webLines, "?encoding=base64", `{"key":"/w==","value":"/g=="}`, nil,
			[]plain{{0, b("\xff"), b("\xfe"), nil}}},
		{"raw", "image/png", "", string(every), []string{"Record-Key", "cat", "Record-Header-Source", "phone", "Record-Header-A", "1", "Record-Header-A", "2"},
			[]plain{{0, b("cat"), every, []kgo.RecordHeader{h("content-type", b("image/png")), h("a", b("1")), h("a", b("2")), h("source", b("phone"))}}}},
		{"raw and empty", "text/plain", "", "", []string{"Record-Key", ""},
			[]plain{{0, b(""), b(""), []kgo.RecordHeader{h("content-type", b("text/plain"))}}}},
		{"raw without a type", "", "", "as it is\n", nil, []plain{{0, nil, b("as it is\n"), nil}}},
	}
}

// TestHTTPAppend: what is appended in any form is stored byte for byte as it
// was meant, in memory and on the disk.
func TestHTTPAppend(t *testing.T) {
	forms := appendForms()
	s := start(t, t.TempDir())
	topicOf := func(i int) string { return fmt.Sprintf("t%d", i) }
	for i, f := range forms {
		s.makeTopic(t, topicOf(i), `{"partitions":2}`)
		headers := f.headers
		if f.kind != "" {
			headers = append(headers, "Content-Type", f.kind)
		}
		path := recordsOf(topicOf(i), 1)
		got := s.web(t, "POST", path+f.query, strings.NewReader(f.body), headers...)
		got.wantAppended(1, 0, int64(len(f.want)))
		if etag := got.header.Get("ETag"); etag != fmt.Sprintf(`"%d"`, len(f.want)) {
			t.Errorf("%s: ETag %s", f.name, etag)
		}
	}
	inEveryState(t, s, func(t *testing.T, s *server) {
		for i, f := range forms {
			t.Run(f.name, func(t *testing.T) {
				var got []plain
				for _, r := range s.read(t, topicOf(i), 1, 0, len(f.want)) {
					got = append(got, plainOf(r))
				}
				if diff := cmp.Diff(f.want, got); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			})
		}
	})
}

// TestHTTPAppendCompressed: bodies come compressed, and an answer goes out so.
func TestHTTPAppendCompressed(t *testing.T) {
	s := start(t, t.TempDir())
	value := strings.Repeat("compressible ", 1000)
	for coding, of := range map[string]struct {
		compress   func(io.Writer) io.WriteCloser
		decompress func(io.Reader) (io.Reader, error)
	}{
		"gzip": {
			func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
			func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		},
		"zstd": {
			func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
			func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
		},
	} {
		t.Run(coding, func(t *testing.T) {
			s.makeTopic(t, coding, `{"partitions":1}`)
			var body bytes.Buffer
			z := of.compress(&body)
			if _, err := fmt.Fprintf(z, `{"records":[{"value":%q}]}`, value); err != nil || z.Close() != nil {
				t.Fatal(err)
			}
			whole := body.String()
			s.post(t, recordsOf(coding, 0), whole, "Content-Encoding", coding).wantAppended(0, 0, 1)
			if got := s.read(t, coding, 0, 0, 1)[0]; string(got.Value) != value {
				t.Errorf("stored %.100q", got.Value)
			}
			s.post(t, recordsOf(coding, 0), whole[:len(whole)-5], "Content-Encoding", coding).wantError(400, 40003, "decompressed")

			got := s.fetch(t, recordsOf(coding, 0), "Accept-Encoding", coding)
			if got.header.Get("Content-Encoding") != coding || len(got.body) > 1000 {
				t.Fatalf("%d bytes, %v", len(got.body), got.header)
			}
			plain, err := of.decompress(strings.NewReader(got.body))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(plain)
			if err != nil {
				t.Fatal(err)
			}
			got.body = string(text)
			if p := got.page(); len(p.Records) != 1 || p.Records[0].plain(t, "utf8").String() != value {
				t.Errorf("%.1000s", got.body)
			}
		})
	}
}

// TestHTTPPartitions: keys go where franz-go sends them, a partition that is
// given counts, and each partition of a request has an outcome.
func TestHTTPPartitions(t *testing.T) {
	const keys, partitions = 50, 7
	s := start(t, t.TempDir())
	for _, name := range []string{"http", "franz"} {
		s.makeTopic(t, name, fmt.Sprintf(`{"partitions":%d}`, partitions))
	}
	cl := s.franz(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	var body strings.Builder
	want := map[int32][]string{}
	for i := range keys {
		key := strings.Repeat(fmt.Sprintf("ключ %d ", i), i%3)
		fmt.Fprintf(&body, `{"key":%q,"value":"%d"}`+"\n", key, i)
		r := &kgo.Record{Topic: "franz", Key: []byte(key)}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		want[r.Partition] = append(want[r.Partition], key)
	}
	got := s.web(t, "POST", "/api/v1/topics/http/records", strings.NewReader(body.String()), "Content-Type", webLines).want(200)
	for p, keys := range want {
		if outcome := fmt.Sprintf(`{"partition":%d,"base_offset":0,"next_offset":%d,`, p, len(keys)); !strings.Contains(got.body, outcome) {
			t.Errorf("no %s in %s", outcome, got.body)
		}
		var stored []string
		for _, r := range s.read(t, "http", p, 0, len(keys)) {
			stored = append(stored, string(r.Key))
		}
		if diff := cmp.Diff(keys, stored); diff != "" {
			t.Errorf("partition %d (-want +got):\n%s", p, diff)
		}
	}
	s.post(t, "/api/v1/topics/http/records", `{"records":[{"key":"any","value":"here","partition":5}]}`).want(200, `"partition":5`)
	s.post(t, "/api/v1/topics/http/records", `{"records":[{"value":"a"},{"value":"b","partition":7}]}`).wantError(404, 40402, "record 1: ")
	s.post(t, recordsOf("http", 5), `{"records":[{"value":"a","partition":6}]}`).wantError(422, 42206, "the URL is of partition 5")
}
