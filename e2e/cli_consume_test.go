package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sorted is output with its lines in order: between partitions there is none.
func sorted(output string) string {
	all := slices.Collect(strings.Lines(output))
	slices.Sort(all)
	return strings.Join(all, "")
}

// TestConsumeFilters: by partition, key, time, offset and count, alone and together.
func TestConsumeFilters(t *testing.T) {
	t.Setenv("TZ", "UTC")
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t", "-p", "3")
	var in strings.Builder
	for i := range 30 { // one a second from 08:00:00 on, by turns in each partition
		fmt.Fprintf(&in, `{"key":"k%d","value":"%02d","partition":%d,"timestamp":%d}`+"\n", i%2, i, i%3, 1735718400000+i*1000)
	}
	s.cli(t, in.String(), "produce", "t", "--json", "--keep-partitions")
	values := func(of ...int) string {
		var b strings.Builder
		for _, i := range of {
			fmt.Fprintf(&b, "%02d\n", i)
		}
		return b.String()
	}
	for _, tt := range []struct{ flags, want string }{
		{"--exit -p 1", values(1, 4, 7, 10, 13, 16, 19, 22, 25, 28)},
		{"--exit -p 0,2 --from 9", values(27, 29)},
		{"--exit -p 0-1 --from 8 --key k1", values(25, 27)},
		{"--from 2025-01-01T08:00:05Z --until 2025-01-01T08:00:08Z", values(5, 6, 7)},
		{"--from @1735718405000 --until 2025-01-01T09:00:08+01:00 --key k0", values(6)},
		{"--from 2025-01-01T08:00:27.001Z --until 1h", values(28, 29)},
		{"--from 2025-01-01T08:00:05 --until 2025-01-01T08:00:08", values(5, 6, 7)},
		{"--from 2025-01-01 --until 2025-01-01T08:00:01", values(0)},
		{"--from 2024-12-31 --until 2025-01-01", ""},
		{"--from 1h --exit", ""},
		{"--from 7 --until 8", values(21, 22, 23)},
		{"--until 1", values(0, 1, 2)},
		{"--exit --key nosuch", ""},
		{"-p 2 --from 3 -n 2", values(11, 14)},
		{"-p 2 --from 9 --until 9", ""},
		{"--exit --isolation read_uncommitted -p 2 --from 9", values(29)},
	} {
		if out := s.cli(t, "", append([]string{"consume", "t"}, strings.Fields(tt.flags)...)...); sorted(out) != tt.want {
			t.Errorf("%s: %q, want %q", tt.flags, sorted(out), tt.want)
		}
	}
	if out := s.cli(t, "", "consume", "t", "-n", "1", "-p", "1", "--details"); out != "2025-01-01T08:00:01.000Z\t1\t0\tk1\t\t01\n" {
		t.Errorf("in detail: %q", out)
	}
	if out := s.cli(t, "", "consume", "t", "-n", "2", "-p", "1", "--format", `%p %o %d %k=%v;`); out != "1 0 1735718401000 k1=01;1 1 1735718404000 k0=04;" {
		t.Errorf("in a format: %q", out)
	}
}

// TestConsumeFollows: records come as they are written, until an interrupt.
func TestConsumeFollows(t *testing.T) {
	s := start(t, t.TempDir())
	for i, tt := range []struct {
		flags []string
		first string
	}{
		{nil, "old\n"},
		{[]string{"--from", "1"}, "new\n"},
		{[]string{"--group", "g"}, "old\n"},
	} {
		topic := fmt.Sprint("t", i)
		s.cli(t, "", "topic", "create", topic)
		s.cli(t, "old\n", "produce", topic)
		cmd := exec.CommandContext(t.Context(), program, append([]string{"consume", topic, "--kafka", s.kafka}, tt.flags...)...)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(stdout)
		if tt.first == "new\n" {
			s.cli(t, "new\n", "produce", topic)
		}
		if line, err := r.ReadString('\n'); err != nil || line != tt.first {
			t.Errorf("%v: first %q, %v", tt.flags, line, err)
		}
		s.cli(t, "newer\n", "produce", topic)
		for line := ""; line != "newer\n"; {
			if line, err = r.ReadString('\n'); err != nil {
				t.Fatalf("%v: %v: %s", tt.flags, err, stderr.String())
			}
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Errorf("%v, interrupted: %v: %s", tt.flags, err, stderr.String())
		}
	}
}

// TestConsumeIntoHead: when nobody reads on it ends, quietly, also while it
// waits for records.
func TestConsumeIntoHead(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	s.cli(t, lines(100_000, "%d"), "produce", "t")
	for _, flags := range []string{"", "--exit", "--from 99998", "--group g"} {
		script := fmt.Sprintf("set -o pipefail; %s consume t --kafka %s %s | head -n 1", program, s.kafka, flags)
		cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil || stderr.Len() > 0 || strings.Count(stdout.String(), "\n") != 1 {
			t.Errorf("%s: %v: %q, %q", flags, err, stdout.String(), stderr.String())
		}
	}
	for _, at := range s.describeGroup(t, "g", "0").committed("t") {
		if at == 100_000 {
			t.Error("what nobody could read is committed")
		}
	}
}

// TestRoundTrip: what consume --json prints and produce --json writes is the
// same records, byte for byte, at the same offsets of the same partitions.
func TestRoundTrip(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "a", "b", "-p", "2")
	cl := s.franz(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	header := func(key string, value []byte) kgo.RecordHeader { return kgo.RecordHeader{Key: key, Value: value} }
	for i, r := range []*kgo.Record{
		{Key: nil, Value: nil},
		{Key: []byte{}, Value: []byte{}},
		{Key: every, Value: every, Headers: []kgo.RecordHeader{header("h", every), header("h", nil), header("a", []byte{}), header("", []byte("x"))}},
		{Key: []byte("<&>\u2028\"\\\n"), Value: []byte("line\nline\r\n")},
		{Value: []byte("\ufffd"), Headers: []kgo.RecordHeader{header("ü", []byte("ü"))}},
		{Value: bytes.Repeat([]byte{0}, 900_000)},
	} {
		r.Topic, r.Partition = "a", int32(i%2)
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	a := s.cli(t, "", "consume", "a", "--exit", "--json")
	s.cli(t, a, "produce", "b", "--json", "--keep-partitions", "--compression", "zstd")
	if b := s.cli(t, "", "consume", "b", "--exit", "--json"); sorted(a) != sorted(b) || strings.Count(a, "\n") != 6 {
		t.Errorf("%.2000s\nis not\n%.2000s", sorted(b), sorted(a))
	}
}

// TestConsumeInGroup: each record is printed once, over several runs, and
// committed.
func TestConsumeInGroup(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t", "-p", "3")
	for p := range 3 {
		s.cli(t, lines(40, fmt.Sprint(p)+" %02d"), "produce", "t", "-p", fmt.Sprint(p))
	}
	some := s.cli(t, "", "consume", "t", "--group", "g", "-n", "50")
	if n := strings.Count(some, "\n"); n != 50 {
		t.Errorf("%d lines, want 50", n)
	}
	if g := s.describeGroup(t, "g", "0"); g.State != "Empty" || g.Total.Lag != 70 {
		t.Errorf("after 50 of 120: %+v", g)
	}
	rest := s.cli(t, "", "consume", "t", "--group", "g", "--exit")
	if want := lines(40, "0 %02d") + lines(40, "1 %02d") + lines(40, "2 %02d"); sorted(some+rest) != want {
		t.Errorf("together: %q", sorted(some+rest))
	}
	if again := s.cli(t, "", "consume", "t", "--group", "g", "--exit"); again != "" {
		t.Errorf("again: %q", again)
	}
	if late := s.cli(t, "", "consume", "t", "--group", "late", "--from", "end", "--exit"); late != "" {
		t.Errorf("from the end on: %q", late)
	}
	_, stderr, code := run(t, "", "consume", "nosuch", "--group", "g", "--kafka", s.kafka)
	oneClearLine(t, "no topic", stderr, code, `there is no topic "nosuch"`)
}

// TestConsumeInGroupThroughRestarts: a member waits for a server that is away.
func TestConsumeInGroupThroughRestarts(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	member := exec.CommandContext(t.Context(), program, "consume", "t", "--group", "g", "-n", "3", "--kafka", s.kafka)
	stdout, err := member.StdoutPipe()
	var stderr bytes.Buffer
	member.Stderr = &stderr
	if err := errors.Join(err, member.Start()); err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewScanner(stdout)
	for i, end := range []func(){func() { s.stop(t) }, s.kill, func() {}} {
		want := fmt.Sprint("record ", i)
		s.cli(t, want+"\n", "produce", "t")
		if !printed.Scan() || printed.Text() != want {
			t.Fatalf("printed %q, want %q; %s", printed.Text(), want, stderr.String())
		}
		if end(); s.ended() {
			s = s.again(t)
		}
	}
	if err := member.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
}
