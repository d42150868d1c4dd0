package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sleeper is a server that does nothing, and answers at once.
func sleeper(t *testing.T) Server {
	return Server{
		Name: "sleeper", Addr: FreeAddr(t), Argv: []string{"sleep", "600"},
		Check: func(context.Context) error { return nil },
	}
}

func isGone(t *testing.T, p *Process) {
	t.Helper()
	if p.Running() {
		t.Errorf("process %d runs", p.ID)
		_ = p.Stop()
	}
}

// fileOf is what the server's file of its process says.
func fileOf(t *testing.T, s Server, dir string) *Process {
	t.Helper()
	p, err := ReadProcess(s.pidFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStart(t *testing.T) {
	p, err := sleeper(t).Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !p.Running() {
		t.Error("it does not run")
	}
	for range 2 { // what has ended may be stopped again
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		isGone(t, p)
	}
}

func TestStartOnce(t *testing.T) {
	s, dir := sleeper(t), t.TempDir()
	t.Cleanup(func() { _, _ = s.Stop(dir) })
	first, started, err := s.StartOnce(t.Context(), dir)
	if err != nil || !started {
		t.Fatalf("started %v, %v", started, err)
	}
	second, started, err := s.StartOnce(t.Context(), dir)
	if err != nil || started || *second != *first {
		t.Fatalf("again: started %v, %v; %v, want %v", started, err, second, first)
	}
	if err := first.Stop(); err != nil { // as if it had crashed
		t.Fatal(err)
	}
	third, started, err := s.StartOnce(t.Context(), dir)
	if err != nil || !started || *third == *first {
		t.Fatalf("after a crash: started %v, %v", started, err)
	}
	for _, want := range []bool{true, false} {
		if stopped, err := s.Stop(dir); err != nil || stopped != want {
			t.Errorf("stopped %v, %v; want %v", stopped, err, want)
		}
		isGone(t, third)
	}
}

// TestAnother: an id that was given to another process is not the server's, and
// that process stays.
func TestAnother(t *testing.T) {
	s, dir := sleeper(t), t.TempDir()
	other, err := sleeper(t).Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Stop() })
	old := Process{ID: other.ID, Started: other.Started + "0"}
	for _, do := range []func() error{
		func() error { _, err := s.Stop(dir); return err },
		func() error { _, _, err := s.StartOnce(t.Context(), dir); return err },
	} {
		if err := old.write(s.pidFile(dir)); err != nil {
			t.Fatal(err)
		}
		if err := do(); err != nil {
			t.Error(err)
		}
		if !other.Running() {
			t.Fatal("it has ended another's process")
		}
	}
	if _, err := s.Stop(dir); err != nil {
		t.Error(err)
	}
}

// TestInUse: where another listens nothing is started, and the error says so.
func TestInUse(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, dir := sleeper(t), t.TempDir()
	s.Addr = l.Addr().String()
	_, _, err = s.StartOnce(t.Context(), dir)
	if !errors.Is(err, ErrAddressInUse) || !strings.Contains(err.Error(), s.Addr) {
		t.Errorf("%v", err)
	}
	if p := fileOf(t, s, dir); p != nil {
		t.Errorf("it has started %v", p)
	}
}

// TestHalfStarted: what does not come to answer is ended, and the error says
// what it printed.
func TestHalfStarted(t *testing.T) {
	dir := t.TempDir()
	s := sleeper(t)
	ctx, giveUp := context.WithCancel(t.Context())
	var p *Process
	s.Argv = []string{"sh", "-c", "echo dusty; exec sleep 600"}
	s.Check = func(context.Context) error {
		log, err := os.ReadFile(s.logFile(dir))
		if p = fileOf(t, s, dir); p != nil && string(log) == "dusty\n" {
			giveUp() // Ctrl-C
		}
		return errors.Join(err, errors.New("it is asleep"))
	}
	_, _, err := s.StartOnce(ctx, dir)
	if err == nil || !strings.Contains(err.Error(), "it is asleep") || !strings.Contains(err.Error(), "dusty") {
		t.Errorf("%v", err)
	}
	isGone(t, p)
	if p := fileOf(t, s, dir); p != nil {
		t.Errorf("it has left %v", p)
	}
}

// TestHalfStartedBefore: what an interrupted start left, and does not answer,
// is ended and another started.
func TestHalfStartedBefore(t *testing.T) {
	s, dir := sleeper(t), t.TempDir()
	old, err := s.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.Stop() })
	if err := old.write(s.pidFile(dir)); err != nil {
		t.Fatal(err)
	}
	s.AnswerTimeout = 1
	s.Check = func(context.Context) error {
		if *fileOf(t, s, dir) == *old {
			return errors.New("asleep")
		}
		return nil
	}
	p, started, err := s.StartOnce(t.Context(), dir)
	if err != nil || !started {
		t.Fatalf("started %v, %v", started, err)
	}
	isGone(t, old)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestEndsAtOnce(t *testing.T) {
	s, dir := sleeper(t), t.TempDir()
	s.Argv = []string{"sh", "-c", "echo no such drive; exit 3"}
	s.Check = func(context.Context) error { return errors.New("nobody is there") }
	if _, err := s.Start(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "ended before it answered: no such drive") {
		t.Errorf("%v", err)
	}
	s.Argv = []string{filepath.Join(dir, "missing")}
	if _, err := s.Start(t.Context(), dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestStat: a program's name may hold anything.
func TestStat(t *testing.T) {
	program := filepath.Join(t.TempDir(), "a) Z 1 (b")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, program); err != nil {
		t.Fatal(err)
	}
	s := sleeper(t)
	s.Argv[0] = program
	p, err := s.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !p.Running() {
		t.Error("it does not run")
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "x", "12"} {
		file := filepath.Join(t.TempDir(), "pid")
		if err := os.WriteFile(file, fmt.Append(nil, text), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := ReadProcess(file); err == nil {
			t.Errorf("%q is %v", text, p)
		}
	}
}
