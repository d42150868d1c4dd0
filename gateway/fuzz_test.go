package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// readRecords reads a body, and keeps what it has.
func readRecords(body []byte, e encoding, lines bool) (all []incoming, err error) {
	d := recordReader{encoding: e, now: 5}
	d.add = func(r *incoming) error {
		own := *r
		own.Headers = slices.Clone(r.Headers)
		all = append(all, own)
		return nil
	}
	if lines {
		err = d.readLines(body)
	} else {
		err = d.readJSON(body, false)
	}
	return all, err
}

// FuzzRecords: whatever a body is, it is refused, or JSON of records that
// encoding/json finds too; and what is read is written and read again, in each
// encoding, as the same records.
func FuzzRecords(f *testing.F) {
	for _, body := range []string{
		`{"records":[{"key":"k","value":"v","headers":[["a","b"],{"name":"c","value_base64":"/w=="}],"timestamp":7,"partition":3}]}`,
		`{"encoding":"json","records":[{"value":{"a":[1,"]"]}},{"key":null,"value":null}]}`,
		`{"encoding":"base64","records":[{"value":"AAH/"},{"value_base64":"","key_base64":null,"value":null}]}`,
		`{"records":[{"value":"\ud83d\ude00\u0000\\"}]}`, `{"records":[`, `{"records":[{"value":"\ud83d"}]}`, `[]`, ` {} `,
	} {
		f.Add([]byte(body), false)
	}
	f.Add([]byte("{\"value\":\"a\"}\n\n{\"value\":null,\"key\":\"\"}\r\n"), true)
	f.Fuzz(func(t *testing.T, body []byte, lines bool) {
		records, err := readRecords(slices.Clone(body), asUTF8, lines)
		if err != nil {
			return
		}
		var count int
		if lines {
			for line := range bytes.Lines(body) {
				if len(trim(line)) > 0 && json.Valid(line) {
					count++
				}
			}
		} else {
			var std struct{ Records []json.RawMessage }
			if err := json.Unmarshal(body, &std); err != nil {
				t.Fatalf("%q is taken, and encoding/json says: %v", body, err)
			}
			count = len(std.Records)
		}
		if count != len(records) {
			t.Fatalf("%q: %d records, encoding/json has %d", body, len(records), count)
		}
		for _, e := range encodings {
			var out []byte
			for i := range records {
				out = e.appendRecord(out, &records[i].Record)
				out = append(out, '\n')
			}
			again, err := readRecords(out, e, true)
			if err != nil {
				t.Fatalf("%q is not read again: %v", out, err)
			}
			for i := range again {
				again[i].partition = records[i].partition // which no reply has
				if e == asJSON {
					sameJSON(t, &records[i].Key, again[i].Key)
					sameJSON(t, &records[i].Value, again[i].Value)
				}
			}
			if diff := cmp.Diff(records, again, cmp.AllowUnexported(incoming{})); diff != "" {
				t.Fatalf("%q (-want +got):\n%s", out, diff)
			}
		}
	})
}

// sameJSON takes JSON that is the same but for space as it was read.
func sameJSON(t *testing.T, was *[]byte, is []byte) {
	t.Helper()
	if bytes.Equal(*was, is) || !json.Valid(*was) {
		return
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, *was); err != nil || !bytes.Equal(compact.Bytes(), is) {
		t.Fatalf("%q came back as %q", *was, is)
	}
	*was = is
}

// FuzzReadQuery: a query of a read is refused, or within the limits.
func FuzzReadQuery(f *testing.F) {
	o := start(f)
	topic := o.create("t", 1)
	o.put(topic, 0, batchOf(f, batch.LZ4, 0, "a", "b"))
	for _, q := range []string{"offset=1&limit=1", "timestamp=1001&encoding=json", "offset=latest", "max_bytes=1&isolation=read_uncommitted", "wait=0"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if bytes.Contains([]byte(query), []byte("wait")) {
			t.Skip()
		}
		o.t = t
		r := requestOf(query)
		if r == nil {
			t.Skip()
		}
		w := recorded(o.handler, r)
		switch w.Code {
		case 200, 400, 406, 410, 416, 501:
		default:
			t.Fatalf("%q: %d %s", query, w.Code, w.Body)
		}
	})
}

// requestOf is a read with a query; nil where a server would not have parsed it.
func requestOf(query string) *http.Request {
	u, err := url.ParseRequestURI(recordsOf + "?" + query)
	if err != nil {
		return nil
	}
	return &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}, Body: http.NoBody}
}

func recorded(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
