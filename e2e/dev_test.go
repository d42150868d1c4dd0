package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestFirstSteps is what a newcomer does: what the greeting says, then a stop
// and a start.
func TestFirstSteps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir)
	if status, body := s.get(t, "/healthy"); status != 200 {
		t.Errorf("/healthy: %d %s", status, body)
	}
	if status, body := s.get(t, "/ready"); status != 200 {
		t.Errorf("/ready: %d %s", status, body)
	}
	if out := s.cli(t, "", "topic", "list"); !strings.Contains(out, "no topics yet") {
		t.Errorf("list on a new cluster: %q", out)
	}
	s.cli(t, "", "topic", "create", "hello", "--partitions", "3")
	s.cli(t, "hello, silt\n", "produce", "hello")
	if out := s.cli(t, "", "consume", "hello", "--exit"); out != "hello, silt\n" {
		t.Errorf("consumed %q", out)
	}
	if status, body := s.get(t, "/metrics"); status != 200 || !strings.Contains(body, "\nsiltstone_") {
		t.Errorf("/metrics: %d %.200s", status, body)
	}
	s.stop(t)
	if r := check(t, dir); r.Objects == 0 || r.Records != 1 {
		t.Errorf("check: %+v", r)
	}

	s = start(t, dir)
	s.cli(t, "again\n", "produce", "hello", "--compression", "zstd")
	out := s.cli(t, "", "consume", "hello", "--exit")
	if !strings.Contains(out, "hello, silt\n") || !strings.Contains(out, "again\n") {
		t.Errorf("consumed after a restart: %q", out)
	}
	s.stop(t)
	check(t, dir)
}

// TestStopFlushes: what acks=1 acknowledged is only buffered, and a stop in
// good order flushes it.
func TestStopFlushes(t *testing.T) {
	const records = 1000
	dir := t.TempDir()
	s := start(t, dir)
	s.cli(t, "", "topic", "create", "t")
	s.cli(t, lines(records, "%d"), "produce", "t", "--acks", "leader")
	s.stop(t)
	if r := check(t, dir); r.Records != records || len(r.Orphans) > 0 {
		t.Errorf("after the stop: %+v", r)
	}
	s = start(t, dir)
	if out := s.cli(t, "", "consume", "t", "--exit"); out != lines(records, "%d") {
		t.Errorf("consumed %.100q", out)
	}
}

func TestTopicCommands(t *testing.T) {
	s := start(t, t.TempDir())
	out := s.cli(t, "", "topic", "create", "a", "b", "-p", "2", "-c", "retention.ms=1000", "-c", "siltstone.durability=object")
	if !strings.Contains(out, "retention.ms: stored, and in force once the jobs") {
		t.Errorf("create does not say that retention waits: %q", out)
	}
	var listed []struct {
		Name       string
		ID         string
		Partitions int
	}
	if err := json.Unmarshal([]byte(s.cli(t, "", "topic", "list", "--json")), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed) != 2 || listed[0].Name != "a" || listed[1].Name != "b" || listed[1].Partitions != 2 || listed[0].ID == listed[1].ID {
		t.Errorf("listed %+v", listed)
	}
	out = s.cli(t, "", "topic", "describe", "a")
	for _, want := range []string{listed[0].ID, "durability object: ", "config retention.ms=1000", "PARTITION"} {
		if !strings.Contains(out, want) {
			t.Errorf("describe does not have %q:\n%s", want, out)
		}
	}
	s.cli(t, "", "topic", "delete", "a")
	if out = s.cli(t, "", "topic", "list"); strings.Contains(out, listed[0].ID) || !strings.Contains(out, listed[1].ID) {
		t.Errorf("listed after deleting a:\n%s", out)
	}
	for _, wrong := range []struct {
		args []string
		says string
	}{
		{[]string{"topic", "create", "b"}, `topic "b" exists`},
		{[]string{"topic", "create", "no/slash"}, "no/slash"},
		{[]string{"topic", "create", "c", "-c", "retention.ms=soon"}, "retention.ms"},
		{[]string{"topic", "create", "c", "-c", "nosuch=1"}, "nosuch"},
		{[]string{"topic", "create", "c", "-c", "nosuch"}, "not name=value"},
		{[]string{"topic", "create", "c", "--replication-factor", "9"}, "replication factors"},
		{[]string{"topic", "delete", "a"}, `no topic "a"`},
		{[]string{"topic", "describe", "a"}, `no topic "a"`},
		{[]string{"produce", "a"}, `no topic "a"`},
		{[]string{"consume", "a"}, `no topic "a"`},
		{[]string{"consume", "b", "-p", "7"}, "no partition 7"},
	} {
		_, stderr, code := run(t, "x\n", append(wrong.args, "--kafka", s.kafka)...)
		oneClearLine(t, strings.Join(wrong.args, " "), stderr, code, wrong.says)
	}
}

func TestConsumeJSON(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	s.cli(t, "k1:v1\nk2:v2\nk3:\xff\n", "produce", "t", "-p", "0", "-K", ":", "-H", "h=1", "-H", "h=2")
	out := s.cli(t, "", "consume", "t", "--exit", "--json", "--from", "1")
	var got []map[string]any
	for line := range strings.Lines(out) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if len(got) != 2 || got[0]["offset"] != 1.0 || got[0]["key"] != "k2" || got[0]["value"] != "v2" {
		t.Fatalf("records from offset 1: %v", got)
	}
	if got[1]["value"] != nil || got[1]["value_base64"] != "/w==" {
		t.Errorf("a value that is not text: %v", got[1])
	}
	if h, ok := got[0]["headers"].([]any); !ok || len(h) != 2 {
		t.Errorf("headers: %v", got[0]["headers"])
	}
}

// TestRefusals: whatever keeps dev from starting is one clear line.
func TestRefusals(t *testing.T) {
	folderless(t)
	held := t.TempDir()
	s := start(t, held)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	with := func(name, content string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	file := filepath.Join(with("plain", ""), "plain")
	for _, tt := range []struct {
		name  string
		dir   string
		flags []string
		says  string
	}{
		{"busy kafka port", t.TempDir(), []string{"--kafka", taken.Addr().String()}, "choose another address with --kafka"},
		{"busy http port", t.TempDir(), []string{"--http", taken.Addr().String()}, "choose another address with --http"},
		{"no address", t.TempDir(), []string{"--kafka", "9092"}, "--kafka"},
		{"locked", held, nil, "another siltstone uses it"},
		{"locked, and its port busy", held, []string{"--kafka", s.kafka}, "another siltstone uses it"},
		{"foreign", with("thesis.tex", "text"), nil, "thesis.tex"},
		{"foreign stamp", with("FORMAT", "Parquet 2\n"), nil, "is not Siltstone's"},
		{"newer", with("FORMAT", "siltstone data folder, format 99\n"), nil, "start the newer one"},
		{"a file", file, nil, "not a folder"},
		{"below a file", filepath.Join(file, "x"), nil, "not a folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, code := run(t, "", append(devArgs(tt.dir), tt.flags...)...)
			oneClearLine(t, tt.name, stderr, code, tt.says)
		})
	}
	s.stop(t)
}

// TestAdvertise: clients are told to come to the address that was given, or to
// this machine by its name where it listens on all of its addresses.
func TestAdvertise(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--kafka", "0.0.0.0:0"}, name},
		{[]string{"--advertise", "silt.example.org:4711"}, "silt.example.org"},
	} {
		dir := t.TempDir()
		s := startCommand(t, dir, serverCommand(t, dir, tt.flags...))
		brokers, err := s.admin(t).ListBrokers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(s.kafka)
		if err != nil {
			t.Fatal(err)
		}
		if tt.want != name {
			port = "4711"
		}
		if len(brokers) != 1 || brokers[0].Host != tt.want || fmt.Sprint(brokers[0].Port) != port {
			t.Errorf("%q: %+v, want %s:%s", tt.flags, brokers, tt.want, port)
		}
	}
}

func TestBadDisks(t *testing.T) {
	folderless(t)
	for _, tt := range []struct{ name, mount, says string }{
		{"full", "-o size=16k", "the disk is full"},
		{"read-only", "-o ro", "the disk is read-only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := onDisk(t.TempDir(), tt.mount)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			_ = cmd.Run()
			oneClearLine(t, tt.name, stderr.String(), cmd.ProcessState.ExitCode(), tt.says)
		})
	}
}

// TestDiskFills: a disk that fills up under a running server makes it say so
// and wait, not exit, and it goes on when there is room.
func TestDiskFills(t *testing.T) {
	folderless(t)
	dir := t.TempDir()
	s := startCommand(t, dir, onDisk(dir, "-o size=8m"))
	s.cli(t, "", "topic", "create", "t")
	s.cli(t, "before\n", "produce", "t")
	filler := filepath.Join(fmt.Sprintf("/proc/%d/root", s.cmd.Process.Pid), dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	cl := s.franz(t, kgo.ProduceRequestTimeout(time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: make([]byte, 100_000)}).FirstErr(); err == nil {
		t.Error("a record is acknowledged that the disk has no room for")
	}
	if status, body := s.get(t, "/ready"); status != 503 || !strings.Contains(body, "no space left") {
		t.Errorf("/ready: %d %s", status, body)
	}
	if status, _ := s.get(t, "/healthy"); status != 200 {
		t.Errorf("/healthy: %d", status)
	}
	if out := s.cli(t, "", "consume", "t", "--count", "1"); out != "before\n" {
		t.Errorf("consumed on a full disk: %q", out)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	eventually(t, "ready again", func() bool { status, _ := s.get(t, "/ready"); return status == 200 })
	s.cli(t, "after\n", "produce", "t")
	if out := s.cli(t, "", "consume", "t", "--exit"); !strings.HasPrefix(out, "before\n") || !strings.HasSuffix(out, "after\n") {
		t.Errorf("consumed: %.100q", out)
	}
	if n := strings.Count(s.errors(), "\n"); n == 0 || n > 10 {
		t.Errorf("%d lines of complaint:\n%s", n, s.errors())
	}
	s.stop(t)
}

func TestCheckRefusals(t *testing.T) {
	folderless(t)
	held, begun := t.TempDir(), t.TempDir()
	start(t, held)
	if err := os.WriteFile(filepath.Join(begun, "FORMAT"), []byte("siltstone data folder, format 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, dir, says string }{
		{"in use", held, "another siltstone uses it"},
		{"empty", t.TempDir(), "there is no data in it"},
		{"begun, and no further", begun, "it is empty, and there is nothing to check"},
		{"missing", filepath.Join(t.TempDir(), "nosuch"), "there is no data in it"},
	} {
		_, stderr, code := run(t, "", "check", "--data", tt.dir)
		oneClearLine(t, tt.name, stderr, code, tt.says)
	}
	_, stderr, code := run(t, "", "topic", "list", "--kafka", "127.0.0.1:1")
	oneClearLine(t, "no server", stderr, code, "start one with siltstone dev")
}

// oneClearLine: code 1 is for errors, 2 for what is called in a wrong way.
func oneClearLine(t *testing.T, what, stderr string, code int, says string) {
	t.Helper()
	if code != 1 && code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, says) || strings.Contains(stderr, "goroutine") {
		t.Errorf("%s: code %d, want 1 or 2 and one line with %q:\n%s", what, code, says, stderr)
	}
}
