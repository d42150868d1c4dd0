package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// shell runs a command line that may use siltstone, $KAFKA and $HTTP.
func (s *server) shell(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -o pipefail; siltstone() { "+program+` "$@" --kafka $KAFKA; }; `+line)
	cmd.Env = append(os.Environ(), "KAFKA="+s.kafka, "HTTP="+s.http)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", line, err, out, errs.String())
	}
	return string(out)
}

// TestHTTPRoundTrip: what consume --json prints is appended by curl, and what
// HTTP gives in lines is written by produce --json, as the same records.
func TestHTTPRoundTrip(t *testing.T) {
	const partitions = 3
	s := start(t, t.TempDir())
	for _, name := range []string{"a", "b", "c"} {
		s.makeTopic(t, name, fmt.Sprintf(`{"partitions":%d}`, partitions))
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	cl := s.franz(t)
	for i, r := range []*kgo.Record{
		{Value: nil},
		{Key: []byte{}, Value: []byte{}},
		{Key: every, Value: every, Headers: []kgo.RecordHeader{{Key: "h", Value: every}, {Key: "h", Value: nil}, {Key: "", Value: []byte{}}, {Key: "\xff", Value: []byte("x")}}},
		{Key: []byte("<&>\u2028\"\\\n"), Value: []byte("line\nline\r\n"), Headers: []kgo.RecordHeader{{Key: "ü", Value: []byte("ü")}}},
		{Key: []byte("none"), Value: []byte("it has no time"), Timestamp: time.UnixMilli(-1)},
		{Value: []byte(`{"json":[1,2]}`), Timestamp: time.UnixMilli(1735689600000)},
		{Value: []byte("null")},
	} {
		r.Topic, r.Partition = "a", int32(i%partitions)
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	a := s.cli(t, "", "consume", "a", "--exit", "--json")
	if strings.Count(a, "\n") != 7 {
		t.Fatalf("%s", a)
	}

	s.shell(t, `siltstone consume a --exit --json |
		curl -sSf http://$HTTP/api/v1/topics/b/records -H 'Content-Type: application/x-ndjson' --data-binary @-`)
	if b := s.cli(t, "", "consume", "b", "--exit", "--json"); sorted(b) != sorted(a) {
		t.Errorf("by curl:\n%s\nwant\n%s", sorted(b), sorted(a))
	}

	for p := range partitions {
		s.shell(t, fmt.Sprintf(`curl -sSf 'http://%s%s' -H 'Accept: application/x-ndjson' | siltstone produce c --json -p %d`, s.http, recordsOf("a", p), p))
	}
	if c := s.cli(t, "", "consume", "c", "--exit", "--json"); sorted(c) != sorted(a) {
		t.Errorf("by produce --json:\n%s\nwant\n%s", sorted(c), sorted(a))
	}

	// The page of a read is lines too, for jq.
	s.shell(t, `curl -sSf http://$HTTP/api/v1/topics/a/partitions/2/records | jq '{records}' |
		curl -sSf http://$HTTP/api/v1/topics/c/partitions/0/records -H 'Content-Type: application/json' --data-binary @-`)
	s.fetch(t, recordsOf("c", 0)+"?offset=3").want(200, `"offset":4,`, `"value":"{\"json\":[1,2]}"`)

	// The line of another partition is refused by the path of one.
	s.web(t, "POST", recordsOf("b", 1), strings.NewReader(strings.SplitAfter(sorted(a), "\n")[0]), "Content-Type", webLines).
		wantError(422, 42206, "record 0: it is for partition")
}
