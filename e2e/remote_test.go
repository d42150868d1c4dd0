package e2e

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// remoteStores are those of one cluster in MinIO and an emulator of DynamoDB:
// what commands are told of them.
type remoteStores []string

// must runs a command on the stores, which must succeed.
func (r remoteStores) must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := run(t, "", append(args, r...)...)
	if code != 0 {
		t.Fatalf("siltstone %s: code %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

func (r remoteStores) agent(t *testing.T, kafka string) *exec.Cmd {
	t.Helper()
	return r.agentIn(t, kafka, "a")
}

func (r remoteStores) agentIn(t *testing.T, kafka, zone string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), program, append([]string{"agent", "--kafka", kafka, "--http", "127.0.0.1:0", "--zone", zone}, r...)...)
}

func (s *server) write(t *testing.T, topic string, from, to int) {
	t.Helper()
	var lines strings.Builder
	for i := from; i < to; i++ {
		lines.WriteString(strconv.Itoa(i) + "\n")
	}
	s.cli(t, lines.String(), "produce", topic)
}

func (s *server) wantNumbers(t *testing.T, topic string, n int) {
	t.Helper()
	got := strings.Fields(s.cli(t, "", "consume", topic, "--exit"))
	if len(got) != n {
		t.Fatalf("%d records, want %d", len(got), n)
	}
	for i, line := range got {
		if line != strconv.Itoa(i) {
			t.Fatalf("record %d is %q", i, line)
		}
	}
}

// TestAgentOnStores: what was acknowledged outlives kills and stops of agents
// that keep nothing.
func TestAgentOnStores(t *testing.T) {
	stores := ownCluster(t)
	first := startCommand(t, "", stores.agent(t, anyPort))
	first.cli(t, "", "cluster", "alter", "--config", "siltstone.lease.ms=4000")
	first.cli(t, "", "topic", "create", "numbers")
	first.write(t, "numbers", 0, 100)
	first.kill()

	second := startCommand(t, "", stores.agent(t, first.kafka))
	second.wantNumbers(t, "numbers", 100)
	second.write(t, "numbers", 100, 150)

	other := startCommand(t, "", stores.agent(t, anyPort))
	other.write(t, "numbers", 150, 200)
	if out := stores.must(t, "cluster", "describe"); !strings.Contains(out, "cluster siltstone, with the id ") || !strings.Contains(out, second.kafka) || !strings.Contains(out, other.kafka) {
		t.Errorf("described: %s", out)
	}
	second.stop(t)
	other.wantNumbers(t, "numbers", 200)
	other.stop(t)
	if out := stores.must(t, "cluster", "describe"); !strings.Contains(out, "no agent has a register") {
		t.Errorf("described: %s", out)
	}

	third := startCommand(t, "", stores.agent(t, first.kafka))
	third.wantNumbers(t, "numbers", 200)
	third.stop(t)
	if out := stores.must(t, "check"); !strings.HasSuffix(strings.TrimSpace(out), "clean: all that belongs here is here, and whole") {
		t.Errorf("check: %s", out)
	}
	// A bucket with records is not given to another table.
	_, stderr, code := run(t, "", "cluster", "init", stores[0], stores[1], stores[2], strings.Replace(stores[3], "//table", "//other", 1))
	if code != 1 || !strings.Contains(stderr, "belongs to something else") {
		t.Errorf("init with another table: code %d: %s", code, stderr)
	}
}

// TestStoresThatDoNotFit are refused with a line that says why.
func TestStoresThatDoNotFit(t *testing.T) {
	stores := ownCluster(t)
	stores.must(t, "cluster", "init") // again, and it changes nothing
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"another cluster": {append([]string{"agent", "--cluster", "other"}, stores...), `they are of the cluster "siltstone"`},
		"another bucket":  {[]string{"agent", stores[0], stores[1] + "/deeper", stores[2], stores[3]}, "the bucket of none"},
		"another table":   {[]string{"agent", stores[0], stores[1], stores[2], strings.Replace(stores[3], "//table", "//other", 1)}, "siltstone cluster init"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.args[0] == "agent" {
				c.args = append(c.args, "--kafka", anyPort, "--http", "127.0.0.1:0")
			}
			_, stderr, code := run(t, "", c.args...)
			if code != 1 || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("code %d: %s", code, stderr)
			}
		})
	}
}
