package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// missing is one line of testdata/kgo-missing.txt.
type missing struct{ test, how, api, issue, complaint string }

func readMissing(t *testing.T) map[string]missing {
	t.Helper()
	text, err := os.ReadFile("testdata/kgo-missing.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]missing{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, " | ")
		if len(f) != 5 || f[1] != "fails" && f[1] != "skips" || all[f[0]].test != "" {
			t.Fatalf("not a line of the list: %q", line)
		}
		all[f[0]] = missing{f[0], f[1], f[2], f[3], f[4]}
	}
	return all
}

// ownTest is how a test of franz-go's went.
type ownTest struct {
	action    string // fail, skip or pass; "" if it did not end
	complaint string // the first line that it logged itself
	output    strings.Builder
}

var logged = regexp.MustCompile(`^ +\w+_test\.go:\d+: (.*)\n`)

// franzOwn runs tests of pkg/kgo against the server, until they end or enough
// says so, and returns how each went.
func (s *server) franzOwn(t *testing.T, enough func(map[string]*ownTest) bool, args ...string) map[string]*ownTest {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-timeout=9m", "github.com/twmb/franz-go/pkg/kgo"}, args...)...)
	cmd.Env = append(os.Environ(), "KGO_SEEDS="+s.kafka, "KGO_TEST_RF=1", "KGO_LOG_LEVEL=none",
		fmt.Sprintf("KGO_TEST_RECORDS=%d", count(50_000, 500_000)))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go test has a child
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]*ownTest{}
	events := json.NewDecoder(bufio.NewReader(stdout))
	for !enough(tests) {
		var e struct{ Action, Test, Output string }
		if err := events.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("go test: %v", err)
		}
		o := tests[e.Test]
		if o == nil {
			o = &ownTest{}
			tests[e.Test] = o
		}
		switch e.Action {
		case "output":
			o.output.WriteString(e.Output)
			if m := logged.FindStringSubmatch(e.Output); m != nil && o.complaint == "" {
				o.complaint = m[1]
			}
		case "pass", "fail", "skip":
			o.action = e.Action
		}
	}
	cancel()
	_ = cmd.Wait()
	return tests
}

// TestFranzOwn: franz-go's own integration tests pass, but for those that
// testdata/kgo-missing.txt lists.
func TestFranzOwn(t *testing.T) {
	list := readMissing(t)
	s := start(t, t.TempDir())
	var failing []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if list[name].how == "fails" {
			failing = append(failing, name)
		}
	}
	tests := s.franzOwn(t, func(map[string]*ownTest) bool { return false }, "-parallel=8", "-skip=^("+strings.Join(failing, "|")+")$")
	const fewest = 200
	if len(tests) < fewest {
		t.Errorf("only %d tests ran: %s", len(tests), tests[""].output.String())
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		o, m := tests[name], list[name]
		switch {
		case name == "": // the package
		case m.how == "skips":
			m.check(t, o)
		case o.action != "pass":
			t.Errorf("%s: %q\n%s", name, o.action, o.output.String())
		}
	}
	for name, m := range list {
		if m.how == "skips" && tests[name] == nil {
			t.Errorf("%s is listed, and there is no such test", name)
		}
	}
	// Those that are known to fail may not even end: the first complaint tells enough.
	for _, name := range failing {
		o := s.franzOwn(t, func(tests map[string]*ownTest) bool {
			return tests[name] != nil && tests[name].complaint != ""
		}, "-run=^"+name+"$")[name]
		if o == nil {
			t.Errorf("%s is listed, and there is no such test", name)
			continue
		}
		list[name].check(t, o)
	}
}

// check holds a test to what the list says of it.
func (m missing) check(t *testing.T, o *ownTest) {
	t.Helper()
	switch {
	case o.action == "pass":
		t.Errorf("%s passes: strike it out of the list of what is missing", m.test)
	case m.how == "skips" && o.action != "skip", !strings.HasPrefix(o.complaint, m.complaint):
		t.Errorf("%s is listed as one that %s for want of %s, with %q; it did %q\n%s", m.test, m.how, m.api, m.complaint, o.action, o.output.String())
	}
}
