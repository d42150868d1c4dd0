package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProduceFiles: a file is a record, with a key and headers.
func TestProduceFiles(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	dir := t.TempDir()
	var files []string
	for _, content := range []string{"a\nb\n", "\x00\xff", ""} {
		files = append(files, filepath.Join(dir, string(rune('a'+len(files)))))
		if err := os.WriteFile(files[len(files)-1], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.cli(t, "not read", append([]string{"produce", "t", "--key", "k", "-H", "h=1", "--file"}, files...)...)
	got := s.cli(t, "", "consume", "t", "--exit", "--format", `%k %h{%k=%v} %V{ascii} %v{hex}\n`)
	if want := "k h=1 4 610a620a\nk h=1 2 00ff\nk h=1 0 \n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestProduceKeys: the separator may be an escape. A line without one is an
// error that names it, and what was read before is written.
func TestProduceKeys(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	in := lines(1000, "k%[1]d\tv%[1]d") + "no key\n" + "k\tnever\n"
	_, stderr, code := run(t, in, "produce", "t", "-K", `\t`, "--kafka", s.kafka)
	oneClearLine(t, "a line without a key", stderr, code, `after 1000 acknowledged records: cannot read on: line 1001: it has no "\t"`)
	if out := s.cli(t, "", "consume", "t", "--exit", "--format", `%k=%v\n`); code != 1 || out != lines(1000, "k%[1]d=v%[1]d") {
		t.Errorf("code %d, written: %.200q", code, out)
	}
}

// TestProduceAcks: by name, and by Kafka's numbers.
func TestProduceAcks(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	want := ""
	for i, acks := range []string{"all", "leader", "none", "-1", "1", "0"} {
		s.cli(t, acks+"\n", "produce", "t", "--acks", acks)
		want += acks + "\n"
		if out := s.cli(t, "", "consume", "t", "-n", fmt.Sprint(i+1)); out != want { // waits for what nobody acknowledges
			t.Errorf("--acks %s: %q", acks, out)
		}
	}
}

// TestProduceErrors: they name the line or the file, and count what is written.
func TestProduceErrors(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t", "-c", "max.message.bytes=1000")
	s.cli(t, "", "topic", "create", "compact", "-c", "cleanup.policy=compact")
	long := strings.Repeat("x", 990)
	for _, tt := range []struct {
		what, in string
		args     []string
		says     string
	}{
		{"too long a line", "a\nb\n" + long + long + "\n", []string{"t"}, "line 3 is longer than the 1000 bytes"},
		{"too long a record", "a\n" + long + "\n", []string{"t"}, "line 2: topic \"t\": a record is longer than its max.message.bytes allows"},
		{"wrong JSON", "{\"value\":\"a\"}\n\n{\"key\":\"a\"}\n", []string{"t", "--json"}, `line 3: it has no "value"`},
		{"no partition to keep", "{\"value\":\"a\"}\n", []string{"t", "--json", "--keep-partitions"}, "line 1: it names no partition"},
		{"a partition that is not there", "{\"value\":\"a\",\"partition\":7}\n", []string{"t", "--json", "--keep-partitions"}, "line 1: "},
		{"no key", "a\n", []string{"compact"}, "line 1: "},
		{"no file", "", []string{"t", "--file", "/nosuch/file"}, "/nosuch/file: no such file"},
		{"no such partition", "", []string{"t", "-p", "7"}, "no partition 7: it has 1 partition"},
	} {
		_, stderr, code := run(t, tt.in, append([]string{"produce", "--kafka", s.kafka}, tt.args...)...)
		oneClearLine(t, tt.what, stderr, code, tt.says)
	}
}
