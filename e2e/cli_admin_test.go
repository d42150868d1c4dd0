package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
)

func TestTopicAlter(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t", "u", "-c", "retention.ms=1000", "-c", "compression.type=zstd")
	out := s.cli(t, "", "topic", "alter", "t", "u", "-p", "3", "-c", "max.message.bytes=5000", "-c", "retention.bytes=7", "--delete-config", "compression.type")
	const said = "(compression.type is its default, max.message.bytes=5000, retention.bytes=7, 3 partitions)\n"
	if want := "altered t " + said + "altered u " + said; !strings.HasPrefix(out, want) || !strings.Contains(out, "retention.bytes: stored, and in force once") {
		t.Errorf("%q, want it to begin %q", out, want)
	}
	configs := func() string {
		_, rest, _ := strings.Cut(s.cli(t, "", "topic", "describe", "t"), "\nconfig ")
		return rest
	}
	before := configs()
	if want := "max.message.bytes=5000\nconfig retention.bytes=7\nconfig retention.ms=1000\nPARTITION"; !strings.HasPrefix(before, want) || strings.Count(before, "\n") != 7 {
		t.Errorf("described %q, want it to begin %q", before, want)
	}
	for _, wrong := range []struct {
		args string
		says string
	}{
		{"t -p 2 -c retention.ms=5", `topic "t": `},
		{"t -c nosuch=1", "nosuch"},
		{"t -c retention.ms=soon", "retention.ms"},
		{"t nosuch -c retention.ms=5", `no topic "nosuch"`},
	} {
		_, stderr, code := run(t, "", append([]string{"topic", "alter", "--kafka", s.kafka}, strings.Fields(wrong.args)...)...)
		oneClearLine(t, wrong.args, stderr, code, wrong.says)
	}
	if after := configs(); after != before {
		t.Errorf("what was refused made of %q %q", before, after)
	}
}

func TestDeleteRecordsCommand(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t", "-p", "2")
	var in strings.Builder
	for i := range 20 {
		fmt.Fprintf(&in, `{"value":"%d","partition":%d,"timestamp":%d}`+"\n", i, i%2, 1735718400000+i*1000)
	}
	s.cli(t, in.String(), "produce", "t", "--json", "--keep-partitions")
	for _, tt := range []struct {
		flags  string
		starts [2]int64
	}{
		{"--before beginning", [2]int64{0, 0}},
		{"--before 3", [2]int64{3, 3}},
		{"--before 2", [2]int64{3, 3}}, // what is gone is gone
		{"--before 2025-01-01T08:00:11Z -p 0", [2]int64{6, 3}},
		{"--before 99 -p 1", [2]int64{6, 10}},
		{"--before end", [2]int64{10, 10}},
	} {
		s.cli(t, "", append([]string{"topic", "delete-records", "t", "--json"}, strings.Fields(tt.flags)...)...)
		var described []struct{ Partitions []struct{ Start, End int64 } }
		if err := json.Unmarshal([]byte(s.cli(t, "", "topic", "describe", "t", "--json")), &described); err != nil {
			t.Fatal(err)
		}
		if p := described[0].Partitions; [2]int64{p[0].Start, p[1].Start} != tt.starts || p[0].End != 10 {
			t.Errorf("%s: %+v, want them to start at %v", tt.flags, p, tt.starts)
		}
	}
}

func TestClusterCommands(t *testing.T) {
	s := start(t, t.TempDir())
	if out := s.cli(t, "", "cluster", "alter", "-c", "num.partitions=4"); out != "altered the cluster (num.partitions=4)\n" {
		t.Errorf("alter: %q", out)
	}
	var described struct {
		ID    string
		Nodes []struct {
			Node    int
			Address string
		}
		Configs []struct {
			Name, Value string
			Set         bool
		}
	}
	if err := json.Unmarshal([]byte(s.cli(t, "", "cluster", "describe", "--json")), &described); err != nil {
		t.Fatal(err)
	}
	if len(described.Nodes) != 1 || described.Nodes[0].Address != s.kafka || described.ID == "" || !strings.Contains(fmt.Sprint(described.Configs), "{num.partitions 4 true}") {
		t.Errorf("described %+v", described)
	}
	for i, flags := range [][]string{nil, {"--partitions", "-1"}, {"--replication-factor", "-1"}} {
		if out := s.cli(t, "", append([]string{"topic", "create", fmt.Sprint("t", i)}, flags...)...); !strings.Contains(out, "4 partitions") {
			t.Errorf("%v: created %q", flags, out)
		}
	}
	s.cli(t, "", "cluster", "alter", "--delete-config", "num.partitions")
	if out := s.cli(t, "", "cluster", "describe"); strings.Contains(out, "num.partitions") || !strings.Contains(out, "\n1     "+s.kafka) {
		t.Errorf("described %q", out)
	}
	_, stderr, code := run(t, "", "cluster", "alter", "-c", "nosuch=1", "--kafka", s.kafka)
	oneClearLine(t, "no such setting", stderr, code, "nosuch")
}

// TestServersOfTheEnvironment: where no flag names a server, and one of several
// that answers is enough.
func TestServersOfTheEnvironment(t *testing.T) {
	s := start(t, t.TempDir())
	t.Setenv("SILTSTONE_KAFKA", "127.0.0.1:1, "+s.kafka)
	for _, args := range []string{"topic create t", "topic list", "group list", "cluster describe"} {
		if _, stderr, code := run(t, "", strings.Fields(args)...); code != 0 {
			t.Errorf("%s: code %d, %s", args, code, stderr)
		}
	}
	_, stderr, code := run(t, "", "topic", "list", "--kafka", "127.0.0.1:1")
	oneClearLine(t, "a flag is before the environment", stderr, code, "no Kafka server answers at 127.0.0.1:1:")
}

// TestSilentServer: one that takes connections and says nothing is no Kafka server.
func TestSilentServer(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, stderr, code := run(t, "", "topic", "list", "--kafka", l.Addr().String())
	oneClearLine(t, "silence", stderr, code, "(silence for 5s: is that the port of Kafka's protocol?)")
}

// TestCompletion: as a shell asks for it, of a cluster that is there and one that is not.
func TestCompletion(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "orders", "audit")
	s.cli(t, "v\n", "produce", "orders")
	s.cli(t, "", "consume", "orders", "--group", "billing", "--exit")
	for _, tt := range []struct {
		kafka, args string
		want, never string
	}{
		{s.kafka, "consume _", "audit\norders\n", ""},
		{s.kafka, "topic describe audit _", "orders\n", "audit"},
		{s.kafka, "consume orders _", "", "audit"},
		{s.kafka, "group describe _", "billing\n", "orders"},
		{s.kafka, "consume orders --group _", "billing\n", "orders"},
		{s.kafka, "topic create t --config reten_", "retention.bytes=\tHow large", "num.partitions"},
		{s.kafka, "cluster alter --delete-config num_", "num.partitions\tHow many", "min.insync.replicas="},
		{s.kafka, "produce orders --compression z_", "zstd\n", "orders"},
		{"", "completion _", "bash\n", ""},
		{"127.0.0.1:1", "consume _", ":4\n", "orders"},
	} {
		words := strings.Fields(strings.TrimSuffix(tt.args, "_"))
		if strings.HasSuffix(tt.args, " _") {
			words = append(words, "")
		}
		args := []string{"__complete", words[0]}
		if tt.kafka != "" {
			args = append(args, "--kafka", tt.kafka)
		}
		args = append(args, words[1:]...)
		var stdout string
		var code int
		eventually(t, tt.args+" completes to "+tt.want, func() bool { // it does not wait long for a cluster
			stdout, _, code = run(t, "", args...)
			return strings.Contains(stdout, tt.want)
		})
		if code != 0 || tt.never != "" && strings.Contains(stdout, tt.never) {
			t.Errorf("%s: code %d, %.2000q, never %q", tt.args, code, stdout, tt.never)
		}
	}
	script, _, _ := run(t, "", "completion", "bash")
	bash := exec.CommandContext(t.Context(), "bash", "-n")
	bash.Stdin = bytes.NewBufferString(script)
	if out, err := bash.CombinedOutput(); err != nil || len(script) == 0 {
		t.Errorf("bash: %v: %s", err, out)
	}
}
