// Package e2e starts the real program, with real clients (kcat, franz-go) before
// it and a real disk behind it. `make prove` runs the same tests with more of
// everything: see counts.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// prove asks for the long counts.
var prove = flag.Bool("prove", false, "the counts that a release must show, not the quick ones")

// count is the quick or the long one.
func count(quick, long int) int {
	if *prove {
		return long
	}
	return quick
}

// patience bounds every wait for something that takes milliseconds when all is well.
const patience = 30 * time.Second

// program is what is under test, built by TestMain.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "siltstone-e2e-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "siltstone")
	build := exec.Command("go", "build", "-o", program, "github.com/siltstone-io/siltstone/cmd/siltstone")
	build.Stderr = os.Stderr
	onlyOwnEnvironment()
	code := 1
	if *apache || build.Run() == nil {
		code = m.Run()
	}
	java.stop()
	endStores()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// server is one run of `siltstone dev`, or of what is tested in its place.
type server struct {
	cmd         *exec.Cmd
	dir         string
	kafka, http string        // addresses
	ready       chan []string // what it greets with: its addresses
	exited      chan struct{}

	mu     sync.Mutex
	stderr bytes.Buffer
}

var greeting = regexp.MustCompile(`serves Kafka on (\S+), HTTP on ([^\s;]+)`)

// start runs a server on a folder and free ports, and waits until it is ready. It
// is killed when the test ends, if it still runs.
func start(t *testing.T, dir string) *server {
	t.Helper()
	return startAt(t, dir, anyPort)
}

// anyPort is not one of 127.0.0.1, where the next connection of any client may
// take the port that a server leaves for a moment, when it is started again.
const anyPort = "127.0.0.2:0"

// startAt is start with an address for Kafka's protocol.
func startAt(t *testing.T, dir, addr string) *server {
	t.Helper()
	if *apache {
		return startApache(t, dir, addr)
	}
	return startCommand(t, dir, serverCommand(t, dir, "--kafka", addr))
}

func devArgs(dir string) []string {
	return []string{"dev", "--data", dir, "--kafka", anyPort, "--http", "127.0.0.1:0"}
}

// onDisk is dev with a file system of its own at its data folder, in a
// namespace of its own: mount flags, as for a tmpfs.
func onDisk(dir, mount string) *exec.Cmd {
	flags := "-m"
	if os.Geteuid() != 0 {
		flags = "-rm"
	}
	script := fmt.Sprintf("mount -t tmpfs %s tmpfs %s && exec %s %s", mount, dir, program, strings.Join(devArgs(dir), " "))
	return exec.Command("unshare", flags, "sh", "-c", script)
}

// startCommand runs a server, and waits until it is ready.
func startCommand(t *testing.T, dir string, cmd *exec.Cmd) *server {
	t.Helper()
	s := startUnready(t, dir, cmd)
	select {
	case m := <-s.ready:
		s.kafka, s.http = m[1], m[2]
	case <-s.exited:
		t.Fatalf("it exited: %s", s.errors())
	case <-time.After(patience):
		t.Fatalf("not ready: %s", s.errors())
	}
	return s
}

// startUnready runs a server.
func startUnready(t *testing.T, dir string, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{cmd: cmd, dir: dir, exited: make(chan struct{}), ready: make(chan []string, 1)}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = s
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.exited)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if m := greeting.FindStringSubmatch(lines.Text()); m != nil {
				s.ready <- m
			}
		}
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("stderr of the server:\n%s", s.errors())
		}
	})
	return s
}

// Write takes the server's standard error.
func (s *server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.Write(p)
}

func (s *server) errors() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.String()
}

// wantAlive wants it not to have ended.
func (s *server) wantAlive(t *testing.T) {
	t.Helper()
	select {
	case <-s.exited:
		t.Fatalf("it exited: %s", s.errors())
	default:
	}
}

// kill is kill -9.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// stop is a SIGTERM, after which it must end well.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if code := s.terminate(t); code != 0 {
		t.Fatalf("stopped with code %d: %s", code, s.errors())
	}
}

// terminate is a SIGTERM, and its outcome.
func (s *server) terminate(t *testing.T) (code int) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(patience):
		t.Fatal("it does not stop")
	}
	return s.cmd.ProcessState.ExitCode()
}

// run runs a command of the program and returns its output.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(count(2, 10))*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// cli runs a client command against the server, which must succeed.
func (s *server) cli(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	stdout, stderr, code := run(t, stdin, append(args, "--kafka", s.kafka)...)
	if code != 0 {
		t.Fatalf("siltstone %s: code %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

func (s *server) get(t *testing.T, path string) (int, string) {
	t.Helper()
	return get(t, "http://"+s.http+path)
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// report is what `siltstone check --json` says, as far as tests ask.
type report struct {
	Problems []json.RawMessage `json:"problems"`
	Orphans  []json.RawMessage `json:"orphans"`
	Objects  int               `json:"objects"`
	Records  int64             `json:"records"`
}

// check verifies a data folder that nobody uses; it must be clean.
func check(t *testing.T, dir string) report {
	t.Helper()
	stdout, stderr, code := run(t, "", append([]string{"check", "--json"}, whereIs(t, dir)...)...)
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("check: code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if code != 0 || len(r.Problems) > 0 {
		t.Fatalf("check: code %d: %s%s", code, stdout, stderr)
	}
	return r
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(10 * time.Millisecond); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func tempFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}
