package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestRecordRules(t *testing.T) {
	header := []kgo.RecordHeader{{Key: "h", Value: []byte("1")}}
	keyed := recordRules{partition: -1, separator: "::"}
	for _, tt := range []struct {
		rules      recordRules
		line       string
		key, value []byte
	}{
		{recordRules{}, "k::v", nil, []byte("k::v")},
		{recordRules{}, "", nil, []byte{}},
		{recordRules{key: []byte{}}, "v", []byte{}, []byte("v")},
		{recordRules{headers: header}, "v", nil, []byte("v")},
		{keyed, "k::v::w", []byte("k"), []byte("v::w")},
		{keyed, "::", []byte{}, []byte{}},
		{recordRules{json: true}, `{"key":"k","value":null}`, []byte("k"), nil},
	} {
		r, err := tt.rules.of([]byte(tt.line))
		if err != nil || !cmp.Equal(r.Key, tt.key) || !cmp.Equal(r.Value, tt.value) || !cmp.Equal(r.Headers, tt.rules.headers) {
			t.Errorf("%q: %+v, %v", tt.line, r, err)
		}
	}

	if r, err := keyed.of([]byte("k:v")); err == nil || !strings.Contains(err.Error(), `it has no "::"`) {
		t.Errorf("without a separator: %+v, %v", r, err)
	}
	both := recordRules{json: true, headers: header, partition: 3}
	line := []byte(`{"value":"v","partition":7,"headers":[["a","b"]]}`)
	r, err := both.of(line)
	if err != nil || r.Partition != 3 || len(r.Headers) != 2 || r.Headers[0].Key != "a" || r.Headers[1].Key != "h" {
		t.Errorf("with a partition and a header: %+v, %v", r, err)
	}
	kept := recordRules{json: true, keepPartitions: true, partition: -1}
	if r, err := kept.of(line); err != nil || r.Partition != 7 {
		t.Errorf("with its partition: %+v, %v", r, err)
	}
	if _, err := kept.of([]byte(`{"value":"v"}`)); err == nil || !strings.Contains(err.Error(), "names no partition") {
		t.Errorf("without a partition to keep: %v", err)
	}
}

// readAll is what an input hands on, as "place value".
func readAll(t *testing.T, in *input) (got []string, err error) {
	t.Helper()
	records := make(chan placed, 9)
	err = in.read(t.Context(), records)
	close(records)
	for p := range records {
		got = append(got, fmt.Sprintf("%s %s", p.place, p.record.Value))
	}
	return got, err
}

func TestReadLines(t *testing.T) {
	long := strings.Repeat("x", 70<<10) // more than the reader's buffer
	for _, tt := range []struct {
		name, in string
		rules    recordRules
		limit    int
		want     []string
		says     string
	}{
		{"nothing", "", recordRules{}, 9, nil, ""},
		{"empty lines, and no end", "\n\na\r\nb", recordRules{}, 9, []string{"line 1 ", "line 2 ", "line 3 a\r", "line 4 b"}, ""},
		{"as long as it may be", "123456789\n123456789", recordRules{}, 9, []string{"line 1 123456789", "line 2 123456789"}, ""},
		{"too long", "1\n12345678901\n2\n", recordRules{}, 9, []string{"line 1 1"}, "line 2 is longer than the 9 bytes"},
		{"beyond the buffer", long + "\n" + long + "\n", recordRules{}, 1 << 20, []string{"line 1 " + long, "line 2 " + long}, ""},
		{"too long beyond the buffer", long + long, recordRules{}, 80 << 10, nil, "line 1 is longer"},
		{"bytes", "\xff\x00\n", recordRules{}, 9, []string{"line 1 \xff\x00"}, ""},
		{"JSON", "{\"value\":\"1\"}\n\n \n{\"value\":\"4\"}", recordRules{json: true}, 9, []string{"line 1 1", "line 4 4"}, ""},
		{"no key", "a:b\n:\nc\n", recordRules{separator: ":"}, 9, []string{"line 1 b", "line 2 "}, `line 3: it has no ":"`},
		{"an empty line without a key", "a:b\n\n", recordRules{separator: ":"}, 9, []string{"line 1 b"}, `line 2: it has no ":"`},
		{"wrong JSON", "{\"value\":\"1\"}\n{}\n", recordRules{json: true}, 9, []string{"line 1 1"}, `line 2: it has no "value"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input{rules: tt.rules, limitBytes: tt.limit, stdin: strings.NewReader(tt.in)}
			got, err := readAll(t, &in)
			if !cmp.Equal(got, tt.want) {
				t.Errorf("got %.99q", got)
			}
			if tt.says == "" && (err != nil || in.done.Load() != int64(len(tt.in))) {
				t.Errorf("%v, %d of %d bytes", err, in.done.Load(), len(tt.in))
			}
			if tt.says != "" && (!errors.Is(err, errInput) || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
	broken, w := io.Pipe()
	_ = w.CloseWithError(io.ErrClosedPipe)
	if _, err := readAll(t, &input{stdin: broken, limitBytes: 9}); !errors.Is(err, io.ErrClosedPipe) || !errors.Is(err, errInput) {
		t.Errorf("a reader that fails: %v", err)
	}
}

func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lines, empty, long := file("lines", "a\nb\n"), file("empty", ""), file("long", "0123456789")
	in := input{limitBytes: 9, files: []string{lines, empty}}
	if got, err := readAll(t, &in); err != nil || !cmp.Equal(got, []string{lines + " a\nb\n", empty + " "}) || in.size() != 4 || in.done.Load() != 4 {
		t.Errorf("%q, %v; %d of %d bytes", got, err, in.done.Load(), in.size())
	}
	for _, tt := range []struct{ file, says string }{
		{long, "long is longer than the 9 bytes"},
		{filepath.Join(dir, "nosuch"), "no such file"},
		{dir, "is a directory"},
	} {
		if _, err := readAll(t, &input{limitBytes: 9, files: []string{tt.file}}); !errors.Is(err, errInput) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.file, err)
		}
	}
}
