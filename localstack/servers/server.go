// Package servers starts the stores that Siltstone is tested with, MinIO and an
// emulator of AWS, without Docker: for tests, and for `make up`. Each is a
// process that listens on the loopback interface, keeps its data in a folder of
// its own, and is ended by its process id, never by its name.
package servers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// What the servers take, and the place that they take themselves to be in.
const (
	AccessKey = "siltstone"
	SecretKey = "siltstone-secret"
	Region    = "us-east-1"
)

const (
	answerTimeout = time.Minute
	checkTimeout  = 5 * time.Second
	checkInterval = 50 * time.Millisecond
)

// ErrAddressInUse is what Start fails with where another program listens.
var ErrAddressInUse = errors.New("in use by another program")

// Server is a program that serves at one address.
type Server struct {
	Name string   // names its files in the folder that it is started in
	Addr string   // host:port
	Argv []string // the command
	Env  []string // NAME=value, beside this process's own
	// Check is nil once the server does what it is for, not just listens.
	Check func(context.Context) error
	// AnswerTimeout is what it may take to come to answer: a minute if zero.
	AnswerTimeout time.Duration
}

// Start runs the server, as a process that outlives this one, until Check says
// that it answers. What it prints is added to dir/NAME.log. A server that does
// not come to answer is ended before Start returns.
func (s Server) Start(ctx context.Context, dir string) (*Process, error) {
	return s.start(ctx, dir, func(*Process) error { return nil })
}

// StartOnce is Start, unless the server that dir/NAME.pid names runs and
// answers: then it is that one, and started is false. One that runs and does
// not come to answer is ended, and another is started.
func (s Server) StartOnce(ctx context.Context, dir string) (p *Process, started bool, err error) {
	file := s.pidFile(dir)
	if p, err = ReadProcess(file); err != nil {
		return nil, false, err
	}
	if p != nil && p.Running() {
		if err = s.await(ctx, p, dir); err == nil {
			return p, false, nil
		}
		if ctx.Err() != nil { // nothing is known against it
			return nil, false, err
		}
		if err = p.Stop(); err != nil {
			return nil, false, err
		}
	}
	// The id is on disk before the server is waited for: whoever is interrupted
	// meanwhile leaves nothing that Stop does not find.
	p, err = s.start(ctx, dir, func(p *Process) error { return p.write(file) })
	if err != nil {
		return nil, false, errors.Join(err, os.RemoveAll(file))
	}
	return p, true, nil
}

// Stop ends the server that dir/NAME.pid names, if it runs, and says whether it did.
func (s Server) Stop(dir string) (stopped bool, err error) {
	file := s.pidFile(dir)
	p, err := ReadProcess(file)
	if err != nil || p == nil {
		return false, err
	}
	stopped = p.Running()
	return stopped, errors.Join(p.Stop(), os.RemoveAll(file))
}

func (s Server) pidFile(dir string) string { return filepath.Join(dir, s.Name+".pid") }

func (s Server) logFile(dir string) string { return filepath.Join(dir, s.Name+".log") }

func (s Server) start(ctx context.Context, dir string, began func(*Process) error) (*Process, error) {
	if err := free(ctx, s.Addr); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	p, err := s.launch(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if err = began(p); err == nil {
		err = s.await(ctx, p, dir)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// free fails where somebody listens. Most programs that find their address
// taken say so in the middle of a stack trace.
func free(ctx context.Context, addr string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is %w", addr, ErrAddressInUse)
	}
	if err != nil {
		return err
	}
	return l.Close()
}

func (s Server) launch(dir string) (*Process, error) {
	log, err := os.OpenFile(s.logFile(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...) //nolint:noctx // it outlives whoever starts it
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C in the terminal is not for it
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return newProcess(cmd)
}

// await waits until the server answers.
func (s Server) await(ctx context.Context, p *Process, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.AnswerTimeout, answerTimeout))
	defer cancel()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		err := s.check(ctx)
		if !p.Running() { // so whatever answered was another
			return fmt.Errorf("%s ended before it answered: %s", s.Name, s.lastLines(dir))
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer at %s (%w): %s", s.Name, s.Addr, err, s.lastLines(dir))
		case <-tick.C:
		}
	}
}

func (s Server) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return s.Check(ctx)
}

// lastLines is the end of what the server printed.
func (s Server) lastLines(dir string) string {
	const keep = 1 << 10
	b, err := os.ReadFile(s.logFile(dir))
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b[max(0, len(b)-keep):]))
}
