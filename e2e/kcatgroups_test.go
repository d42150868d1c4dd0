package e2e

import (
	"bufio"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// kcatMember is a running kcat -G.
type kcatMember struct {
	cmd    *exec.Cmd
	exited chan struct{}

	mu    sync.Mutex
	lines []string
}

// kcatJoin runs kcat as a member of a group that reads one topic.
func (s *server) kcatJoin(t *testing.T, group, topic string, args ...string) *kcatMember {
	t.Helper()
	args = slices.Concat([]string{"-b", s.kafka, "-G", group, "-u", "-q", "-E", "-X", "auto.offset.reset=earliest"}, args, []string{topic})
	m := &kcatMember{cmd: exec.Command("kcat", args...), exited: make(chan struct{})}
	stdout, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.exited)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			m.mu.Lock()
			m.lines = append(m.lines, lines.Text())
			m.mu.Unlock()
		}
		_ = m.cmd.Wait()
	}()
	t.Cleanup(m.kill)
	return m
}

func (m *kcatMember) read() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.lines)
}

// kill is kill -9: it commits nothing, and does not leave its group.
func (m *kcatMember) kill() {
	_ = m.cmd.Process.Kill()
	<-m.exited
}

// leave makes it commit and leave its group.
func (m *kcatMember) leave(t *testing.T) {
	t.Helper()
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.wait(t)
}

// wait waits for it to have read enough and leave.
func (m *kcatMember) wait(t *testing.T) {
	t.Helper()
	select {
	case <-m.exited:
	case <-time.After(patience):
		t.Fatalf("kcat does not end; it has %q", m.read())
	}
	if code := m.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("kcat: code %d", code)
	}
}

// TestKcatGroups: kcat -G reads on from where its group committed, through
// restarts of the server, alone and with another member.
func TestKcatGroups(t *testing.T) {
	s := start(t, t.TempDir())
	s.createTopic(t, "t", 2)
	written := 0
	write := func(n int) {
		for _, p := range []string{"0", "1"} {
			s.kcat(t, []byte(lines(n, "%d")), "-P", "-t", "t", "-p", p)
			written += n
		}
	}
	write(50)
	for _, restart := range restarts {
		m := s.kcatJoin(t, "alone", "t", "-c", "50", "-f", "%p-%o\n")
		m.wait(t)
		if got := m.read(); len(got) != 50 {
			t.Errorf("before %s: %d records", restart.name, len(got))
		}
		restart.end(s, t)
		s = s.again(t)
	}
	if lag := s.lag(t, "alone"); lag != 0 {
		t.Errorf("a lag of %d after all was read", lag)
	}

	one, other := s.kcatJoin(t, "both", "t", "-f", "%p-%o\n"), s.kcatJoin(t, "both", "t", "-f", "%p-%o\n")
	d := s.waitGroup(t, "both", 2)
	for _, restart := range restarts {
		restart.end(s, t)
		s = s.again(t)
		write(50)
		eventually(t, "both have read all", func() bool { return len(one.read())+len(other.read()) >= written })
		after := s.waitGroup(t, "both", 2)
		for i := range d.Members {
			if after.Members[i].MemberID != d.Members[i].MemberID {
				t.Errorf("after %s: members %v, before %v", restart.name, after.Members, d.Members)
			}
		}
	}
	all := append(one.read(), other.read()...)
	slices.Sort(all)
	if once := slices.Compact(slices.Clone(all)); len(once) != written || len(all) != written {
		t.Errorf("%d records, %d of them different, and %d were written: %s", len(all), len(once), written, strings.Join(all, " "))
	}
}

// lag is how much of all topics a group has not committed.
func (s *server) lag(t *testing.T, group string) int64 {
	t.Helper()
	admin := s.admin(t)
	defer admin.Close()
	lags, err := admin.Lag(t.Context(), group)
	of := lags[group]
	if err != nil || of.Error() != nil {
		t.Fatalf("lag of %s: %v %v", group, err, of.Error())
	}
	return of.Lag.Total()
}
