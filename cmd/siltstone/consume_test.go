package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestPrintable: null, empty, text and bytes are told apart in JSON.
func TestPrintable(t *testing.T) {
	got, err := json.Marshal(printable(&kgo.Record{
		Partition: 2, Offset: 7, Timestamp: time.UnixMilli(1_700_000_000_123),
		Key: nil, Value: []byte{},
		Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("ü")}, {Key: "h", Value: nil}, {Key: "h", Value: []byte{0xff}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"partition":2,"offset":7,"time":"2023-11-14T22:13:20.123Z","key":null,"value":"",` +
		`"headers":[{"name":"h","value":"ü"},{"name":"h","value":null},{"name":"h","value":null,"value_base64":"/w=="}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestLineRules(t *testing.T) {
	keyed := lineRules{topic: "t", partition: -1, separator: "::"}
	for _, tt := range []struct {
		rules      lineRules
		line       string
		key, value []byte
	}{
		{lineRules{topic: "t"}, "k::v", nil, []byte("k::v")},
		{lineRules{topic: "t"}, "", nil, []byte{}},
		{keyed, "k::v::w", []byte("k"), []byte("v::w")},
		{keyed, "::", []byte{}, []byte{}},
		{keyed, "no key", nil, []byte("no key")},
	} {
		r := tt.rules.record([]byte(tt.line))
		if !cmp.Equal(r.Key, tt.key) || !cmp.Equal(r.Value, tt.value) {
			t.Errorf("%q: key %q, value %q", tt.line, r.Key, r.Value)
		}
	}
}
