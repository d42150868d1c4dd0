package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
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

// TestPlan: --from an offset that is not there yet never begins anywhere else.
func TestPlan(t *testing.T) {
	offsets := func(ps ...int64) kadm.ListedOffsets {
		l := map[int32]kadm.ListedOffset{}
		for p, n := range ps {
			l[int32(p)] = kadm.ListedOffset{Topic: "t", Partition: int32(p), Offset: n}
		}
		return kadm.ListedOffsets{"t": l}
	}
	starts, ends := offsets(0, 5), offsets(10, 20)
	for _, tt := range []struct {
		from      string
		partition int32
		begins    []int64
		left      map[int32]int64
		says      string
	}{
		{"beginning", -1, []int64{0, 5}, map[int32]int64{0: 10, 1: 20}, ""},
		{"end", -1, []int64{10, 20}, map[int32]int64{}, ""},
		{"2", -1, []int64{2, 5}, map[int32]int64{0: 10, 1: 20}, ""},
		{"15", -1, []int64{10, 15}, map[int32]int64{1: 20}, ""},
		{"10", 0, []int64{10}, map[int32]int64{}, ""},
		{"11", 0, nil, nil, "ends at offset 10, before --from 11"},
		{"21", -1, nil, nil, "the longest ends at offset 20"},
		{"0", 2, nil, nil, "no partition 2"},
	} {
		c := consumer{topic: "t", partition: tt.partition, from: tt.from}
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
		wanted, left, err := c.plan(starts, ends)
		if tt.says != "" {
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%+v: %v", tt, err)
			}
			continue
		}
		begins := []int64{}
		for p := range int32(2) {
			if o, ok := wanted[p]; ok {
				begins = append(begins, o.EpochOffset().Offset)
			}
		}
		if err != nil || !cmp.Equal(begins, tt.begins) || !cmp.Equal(left, tt.left) {
			t.Errorf("%+v: begins at %v, left %v, %v", tt, begins, left, err)
		}
	}
}

func TestReadLines(t *testing.T) {
	long := strings.Repeat("x", 70<<10) // more than the reader's buffer
	for _, tt := range []struct {
		name, in string
		limit    int
		want     []string
		says     string
	}{
		{"nothing", "", 9, nil, ""},
		{"empty lines, and no end", "\n\na\r\nb", 9, []string{"", "", "a\r", "b"}, ""},
		{"as long as it may be", "123456789\n123456789", 9, []string{"123456789", "123456789"}, ""},
		{"too long", "1\n12345678901\n2\n", 9, []string{"1"}, "line 2 is longer"},
		{"beyond the buffer", long + "\n" + long + "\n", 1 << 20, []string{long, long}, ""},
		{"too long beyond the buffer", long + long, 80 << 10, nil, "line 1 is longer"},
		{"bytes", "\xff\x00\n", 9, []string{"\xff\x00"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := make(chan []byte, 9)
			err := readLines(t.Context(), strings.NewReader(tt.in), tt.limit, lines)
			close(lines)
			var got []string
			for l := range lines {
				got = append(got, string(l))
			}
			if !cmp.Equal(got, tt.want) {
				t.Errorf("got %.99q", got)
			}
			if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
	broken, w := io.Pipe()
	_ = w.CloseWithError(io.ErrClosedPipe)
	if err := readLines(t.Context(), broken, 9, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a reader that fails: %v", err)
	}
}
