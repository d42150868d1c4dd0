package main

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

var printed = &kgo.Record{
	Topic: "t", Partition: 2, Offset: 7, Timestamp: time.UnixMilli(1_700_000_000_123),
	Key: []byte("k"), Value: []byte("<\xc3\xbc>\n"),
	Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "i", Value: nil}},
}

func TestPrinters(t *testing.T) {
	for _, tt := range []struct {
		flags printerFlags
		want  string
	}{
		{printerFlags{}, "<ü>\n\n"},
		{printerFlags{keys: true}, "k\t<ü>\n\n"},
		{printerFlags{details: true}, "2023-11-14T22:13:20.123Z\t2\t7\tk\th=1,i=\t<ü>\n\n"},
		{printerFlags{format: `%t/%p/%o %d %K %h{%k:%v;}|%%\x00`}, "t/2/7 1700000000123 1 h:1;i:;|%\x00"},
		{printerFlags{json: true}, `{"partition":2,"offset":7,"timestamp":1700000000123,"key":"k","value":"<ü>\n","headers":[["h","1"],["i",null]]}` + "\n"},
	} {
		printer, err := tt.flags.printer()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, size := range []int{16, 4096} {
			out.Reset()
			w := bufio.NewWriterSize(&out, size)
			if err := printer(w, printed); err != nil || w.Flush() != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("%+v, %d bytes at once:\n%s", tt.flags, size, diff)
			}
		}
	}
}

// TestJSONRecord: what is printed is read again, with null, empty, text and
// bytes told apart.
func TestJSONRecord(t *testing.T) {
	for _, r := range []*kgo.Record{
		printed,
		{Timestamp: time.UnixMilli(-1)},
		{Key: []byte{}, Value: []byte{}, Headers: []kgo.RecordHeader{{}, {Key: "h", Value: []byte{}}}},
		{Key: []byte("\xff"), Value: []byte("\x00\xfe"), Headers: []kgo.RecordHeader{{Key: "h\xff", Value: nil}, {Key: "h", Value: []byte("\xff")}}},
		{Key: []byte("\u2028\\\"\x00"), Value: nil},
	} {
		var out strings.Builder
		w := bufio.NewWriter(&out)
		if err := printJSONRecord(w, r); err != nil || w.Flush() != nil {
			t.Fatal(err)
		}
		got, err := parseJSONRecord([]byte(strings.TrimSuffix(out.String(), "\n")))
		if err != nil {
			t.Fatalf("%s: %v", out.String(), err)
		}
		if got.Partition != r.Partition || got.Timestamp.UnixMilli() != r.Timestamp.UnixMilli() || got.Offset != 0 ||
			!cmp.Equal(got.Key, r.Key) || !cmp.Equal(got.Value, r.Value) || !cmp.Equal(got.Headers, r.Headers) {
			t.Errorf("%s is\n%+v, want\n%+v", out.String(), got, r)
		}
	}
}

func TestParseJSONRecord(t *testing.T) {
	got, err := parseJSONRecord([]byte(`{"value":"v","headers":[{"name":"h","value":"1"}]}`))
	if err != nil || got.Partition != -1 || !got.Timestamp.IsZero() || got.Key != nil || string(got.Value) != "v" || !cmp.Equal(got.Headers, []kgo.RecordHeader{{Key: "h", Value: []byte("1")}}) {
		t.Errorf("%+v, %v", got, err)
	}
	for line, says := range map[string]string{
		`{"key":"k"}`:                          `it has no "value"`,
		`{"value":{"a":1}}`:                    "JSON that is to be a value is written as text",
		`{"value":1}`:                          "written as text",
		`{"vlaue":"v"}`:                        `unknown field "vlaue"`,
		`{"value":"v"`:                         "does not end",
		`{"value":"v"} {}`:                     "more than one",
		`"v"`:                                  "cannot be a JSON string",
		`v`:                                    "not a record in JSON: invalid character",
		`{"value":"v","value_base64":"dg=="}`:  "value and value_base64 are both given",
		`{"value":"v","key_base64":"?"}`:       "key_base64 is not base64",
		`{"value":"v","partition":"1"}`:        `"partition" cannot be a JSON string`,
		`{"value":"v","partition":4294967296}`: `"partition" cannot be a JSON number`,
		`{"value":"v","headers":[["h","1"],["h"]]}`:      "header 2: it is not a pair",
		`{"value":"v","headers":[[null,"1"]]}`:           "header 1: it has no name",
		`{"value":"v","headers":[{"value":"1"}]}`:        "header 1: it has no name",
		`{"value":"v","headers":[{"name":"h","x":"1"}]}`: `header 1: it is not a record in JSON: unknown field "x"`,
		`{"value":"v","headers":{"h":"1"}}`:              `"headers" cannot be a JSON object`,
		"{\"value\":\"\xff\"}":                           "it is not UTF-8",
	} {
		if got, err := parseJSONRecord([]byte(line)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v; want %q", line, got, err, says)
		}
	}
}
