package e2e

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// running is a command of the program that goes on for a while.
type running struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{}

	mu             sync.Mutex
	stdout, stderr strings.Builder
}

// launch starts a command, which is killed when the test ends.
func launch(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{cmd: exec.CommandContext(t.Context(), program, args...), ended: make(chan struct{})}
	stdin, err := r.cmd.StdinPipe()
	r.stdin, r.cmd.Stdout, r.cmd.Stderr = stdin, locked{r, &r.stdout}, locked{r, &r.stderr}
	if err := errors.Join(err, r.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.ended
	})
	return r
}

type locked struct {
	r *running
	b *strings.Builder
}

func (l locked) Write(p []byte) (int, error) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return l.b.Write(p)
}

func (r *running) said() (stdout, stderr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stdout.String(), r.stderr.String()
}

func (r *running) write(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(r.stdin, text); err != nil {
		t.Fatal(err)
	}
}

// complains waits until it has said something on standard error.
func (r *running) complains(t *testing.T, what string) {
	t.Helper()
	eventually(t, "it says "+what, func() bool {
		_, stderr := r.said()
		return strings.Contains(stderr, what)
	})
}

// code waits for the end.
func (r *running) code(t *testing.T) int {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		_, stderr := r.said()
		t.Fatalf("it does not end: %s", stderr)
	}
	return r.cmd.ProcessState.ExitCode()
}

const takesNoRecords = "siltstone: waiting for the server to take records"

// TestProduceWaitsForServer: where the server is away, produce says once what it
// waits for, and goes on when it is back.
func TestProduceWaitsForServer(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	p := launch(t, "produce", "t", "--kafka", s.kafka)
	p.write(t, "one\n")
	s.cli(t, "", "consume", "t", "-n", "1")
	s.kill()
	p.write(t, "two\n")
	p.stdin.Close()
	p.complains(t, takesNoRecords)
	s = s.again(t)
	code := p.code(t)
	_, stderr := p.said()
	if code != 0 || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, "connection refused") || !strings.HasSuffix(stderr, "\n2 records written to t\n") {
		t.Errorf("code %d, %q", code, stderr)
	}
	if out := s.cli(t, "", "consume", "t", "--exit"); out != "one\ntwo\n" {
		t.Errorf("written: %q", out)
	}
}

// TestProduceWaitsForDisk: the same where the server's disk is full.
func TestProduceWaitsForDisk(t *testing.T) {
	d := newDisk(t, "12m")
	s := d.start(t)
	s.cli(t, "", "topic", "create", "t")
	free := d.fill(t)
	p := launch(t, "produce", "t", "--kafka", s.kafka)
	p.write(t, "one\n")
	p.stdin.Close()
	p.complains(t, takesNoRecords)
	free()
	code := p.code(t)
	_, stderr := p.said()
	if code != 0 || strings.Count(stderr, "\n") != 2 || !strings.HasSuffix(stderr, "\n1 record written to t\n") {
		t.Errorf("code %d, %q", code, stderr)
	}
}

// TestProduceInterruptedWhileItWaits: Ctrl-C ends it, and it says how much is written.
func TestProduceInterruptedWhileItWaits(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	p := launch(t, "produce", "t", "--kafka", s.kafka)
	p.write(t, "one\n")
	s.cli(t, "", "consume", "t", "-n", "1")
	s.kill()
	p.write(t, "two\n")
	p.complains(t, takesNoRecords)
	p.signal(t, syscall.SIGINT)
	code := p.code(t)
	if _, stderr := p.said(); code != 1 || !strings.Contains(stderr, "\nsiltstone: interrupted after ") {
		t.Errorf("code %d, %q", code, stderr)
	}
}

func (r *running) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// TestInterruptedTwice: the first signal lets a member leave its group, which
// takes a server that answers; the second ends it at once.
func TestInterruptedTwice(t *testing.T) {
	s := start(t, t.TempDir())
	s.cli(t, "", "topic", "create", "t")
	s.cli(t, "one\n", "produce", "t")
	c := launch(t, "consume", "t", "--group", "g", "--kafka", s.kafka)
	eventually(t, "it has read", func() bool {
		stdout, _ := c.said()
		return stdout == "one\n"
	})
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(100 * time.Millisecond) // signals that come together are one
	defer tick.Stop()
	late := time.After(patience)
	for ended := false; !ended; {
		_ = c.cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-c.ended:
			ended = true
		case <-tick.C:
		case <-late:
			t.Fatal("two signals do not end it")
		}
	}
	if _, stderr := c.said(); c.cmd.ProcessState.ExitCode() != 130 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "interrupted a second time") {
		t.Errorf("code %d, %q", c.cmd.ProcessState.ExitCode(), stderr)
	}
}
