package e2e

// Case 34 of the field reports: gateways that answered 200 with an error inside,
// after minutes, or took null for the text "null". Two seconds are the report's.

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

const soon = 2 * time.Second

// inTime checks that an answer came soon.
func (r webReply) inTime() webReply {
	r.t.Helper()
	if r.took >= soon {
		r.t.Errorf("it took %v: %d %.1000s", r.took, r.status, r.body)
	}
	return r
}

// TestReport34Keyless: a record without a key is refused by a compacted topic,
// soon, by name, and with all that came with it.
func TestReport34Keyless(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "compacted", `{"partitions":1,"configs":{"cleanup.policy":"compact"}}`)
	const path = "/api/v1/topics/compacted/records"
	s.post(t, path, `{"records":[{"value":"v"}]}`).inTime().wantError(422, 42206, "record 0: ")
	s.post(t, path, `{"records":[{"key":"k","value":"v"},{"key":null,"value":"v"}]}`).inTime().
		wantError(422, 42206, "record 1: ").want(422, `"details":{"record":1}`)
	s.web(t, "POST", path, strings.NewReader(`{"value":null}`), "Content-Type", webLines).inTime().wantError(422, 42206, "no key")
	s.web(t, "POST", path, strings.NewReader("raw")).inTime().wantError(422, 42206, "no key")
	s.fetch(t, "/api/v1/topics/compacted/partitions/0").want(200, `"high_watermark":0`)
	s.post(t, path, `{"records":[{"key":"","value":"v"}]}`).inTime().wantAppended(0, 0, 1)
}

// TestReport34Nulls: null keys are null and go to more than one partition over
// time, null values are tombstones, and the text "null" is text.
func TestReport34Nulls(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "t", `{"partitions":1,"configs":{"cleanup.policy":"compact,delete"}}`)
	s.makeTopic(t, "plain", `{"partitions":1}`)
	s.post(t, recordsOf("t", 0), `{"records":[{"key":"k","value":"v"},{"key":"k","value":null},{"key":"null","value":"null"}]}`).inTime().wantAppended(0, 0, 3)
	s.post(t, recordsOf("plain", 0), `{"records":[{"key":null,"value":"v"},{"value":""},{"key":"","value":null}]}`).inTime().wantAppended(0, 0, 3)
	s.post(t, recordsOf("plain", 0), `{"encoding":"json","records":[{"key":null,"value":null},{"key":"null","value":"null"}]}`).inTime().wantAppended(0, 3, 5)
	s.post(t, recordsOf("plain", 0), `{"encoding":"base64","records":[{"key":null,"value":null},{"key":"bnVsbA==","value":"bnVsbA=="}]}`).inTime().wantAppended(0, 5, 7)
	b := func(s string) []byte { return []byte(s) }
	for topic, want := range map[string][]plain{
		"t": {{0, b("k"), b("v"), nil}, {1, b("k"), nil, nil}, {2, b("null"), b("null"), nil}},
		"plain": {
			{0, nil, b("v"), nil}, {1, nil, b(""), nil}, {2, b(""), nil, nil},
			{3, nil, nil, nil}, {4, b(`"null"`), b(`"null"`), nil},
			{5, nil, nil, nil}, {6, b("null"), b("null"), nil},
		},
	} {
		var got []plain
		for _, r := range s.read(t, topic, 0, 0, len(want)) {
			got = append(got, plainOf(r))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", topic, diff)
		}
		if out := s.kcat(t, nil, "-C", "-t", topic, "-o", "beginning", "-e", "-f", "%o %K %S %h\n"); out != kcatLengths(want) {
			t.Errorf("kcat has\n%swant\n%s", out, kcatLengths(want))
		}
	}

	s.makeTopic(t, "spread", `{"partitions":2}`)
	hit := map[string]bool{}
	for range 100 { // all in one: once in 2^99 runs
		r := s.post(t, "/api/v1/topics/spread/records", `{"records":[{"key":null,"value":"v"}]}`).want(200)
		hit[r.body[:len(`{"results":[{"partition":0`)]] = true
	}
	if len(hit) != 2 {
		t.Errorf("records without a key go to %v", hit)
	}
}

// TestReport34Invalid: what is no JSON or no base64 is a 4xx that says where,
// soon, and nothing of it is appended.
func TestReport34Invalid(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "t", `{"partitions":1}`)
	const good = `{"value":"Z29vZA=="},`
	for body, want := range map[string]struct {
		status, number int
		says           string
	}{
		`{"records":[`:                         {400, 40003, "not JSON"},
		`{"records":[` + good + `{]}`:          {400, 40003, "at byte 35"},
		`{"records":[{"value":"Z`:              {400, 40003, "not JSON"},
		``:                                     {400, 40003, "not JSON"},
		`***`:                                  {400, 40003, "not JSON"},
		"{\"records\":[{\"value\":\"\xff\"}]}": {400, 40003, "UTF-8"},
		`{"records":[` + good + `{"value":"***"}]}`:             {422, 42206, "record 1: value is not base64"},
		`{"records":[` + good + `{"value":"AA"}]}`:              {422, 42206, "record 1: value is not base64"},
		`{"records":[` + good + `{"key":"-_==","value":""}]}`:   {422, 42206, "record 1: key is not base64"},
		`{"records":[` + good + `{"value":{"a":1}}]}`:           {422, 42206, "record 1: value is not a string"},
		`{"records":[` + good + `{"value":7}]}`:                 {422, 42206, "record 1: value is not a string"},
		`{"records":[` + good + `{"key":"AA==","vlaue":"AA"}]}`: {422, 42206, `record 1: "vlaue" is no field`},
		`{"records":[` + good + `{"key":"AA=="}]}`:              {422, 42206, "record 1: it has no value"},
		`{"records":[]}`: {422, 42206, "no records"},
		`{}`:             {422, 42206, "records"},
		`[]`:             {422, 42206, "not an object"},
	} {
		s.post(t, recordsOf("t", 0)+"?encoding=base64", body).inTime().wantError(want.status, want.number, want.says)
	}
	s.web(t, "POST", recordsOf("t", 0), strings.NewReader(`{"records":[{"value":"a"}]}`), "Content-Type", "application/x-www-form-urlencoded").
		inTime().wantError(415, 41501, "send Content-Type: application/json")
	s.fetch(t, "/api/v1/topics/t/partitions/0").want(200, `"high_watermark":0`)
}

const ninetyMB = 90 << 20

// TestReport34Large: a body of 90 MB is refused before it is read.
func TestReport34Large(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "t", `{"partitions":1}`)

	t.Run("none of it sent", func(t *testing.T) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.http)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		begin := time.Now()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", recordsOf("t", 0), ninetyMB)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		webReply{t, resp.StatusCode, resp.Header, string(text), time.Since(begin)}.inTime().wantError(413, 41302, fmt.Sprintf("%d bytes", ninetyMB))
	})

	t.Run("by curl", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "large")
		if err := os.WriteFile(file, []byte(`{"records":[{"value":"`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, ninetyMB); err != nil {
			t.Fatal(err)
		}
		for _, header := range []string{"Expect: 100-continue", "Transfer-Encoding: chunked"} {
			cmd := exec.CommandContext(t.Context(), "curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{size_upload} %{time_total}",
				"-H", header, "-H", "Content-Type: application/json", "-T", file, "-X", "POST", "http://"+s.http+recordsOf("t", 0))
			out, _ := cmd.Output() // an error says that not all was sent
			var status, sent int
			var seconds float64
			if _, err := fmt.Sscan(string(out), &status, &sent, &seconds); err != nil || status != 413 || sent > ninetyMB/2 || seconds >= soon.Seconds() {
				t.Errorf("%s: status, bytes sent and seconds: %s", header, out)
			}
		}
	})
	s.fetch(t, "/api/v1/topics/t/partitions/0").want(200, `"high_watermark":0`)
	if resident := s.resident(); resident > 150<<20 {
		t.Errorf("%d MiB are resident", resident>>20)
	}
}

// TestReport04HTTP: null, empty and present, of keys, values and headers, go
// through HTTP and come back, and are what Kafka's clients see.
func TestReport04HTTP(t *testing.T) {
	s := start(t, t.TempDir())
	s.makeTopic(t, "t", `{"partitions":1}`)
	text := func(b []byte) string {
		if b == nil {
			return "null"
		}
		return fmt.Sprintf("%q", b)
	}
	var body strings.Builder
	var want []plain
	for _, key := range nulls {
		for _, value := range nulls {
			want = append(want, plain{int64(len(want)), key, value, []kgo.RecordHeader{{Key: "h", Value: nil}, {Key: "h", Value: []byte{}}, {Key: "h", Value: []byte("x")}}})
			fmt.Fprintf(&body, `{"key":%s,"value":%s,"headers":[["h",null],["h",""],["h","x"]]}`+"\n", text(key), text(value))
		}
	}
	s.web(t, "POST", recordsOf("t", 0), strings.NewReader(body.String()), "Content-Type", webLines).wantAppended(0, 0, 9)
	inEveryState(t, s, func(t *testing.T, s *server) {
		s.wantRecords(t, "t", want)
		var got []plain
		for _, r := range s.fetch(t, recordsOf("t", 0)).page().Records {
			got = append(got, r.plain(t, "utf8"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by HTTP (-want +got):\n%s", diff)
		}
	})
}
