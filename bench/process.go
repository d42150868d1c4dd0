package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
	// readyInterval is how often a server is asked whether it answers.
	readyInterval = 5 * time.Millisecond
)

// server is a system that runs.
type server struct {
	addr    string   // of its Kafka protocol
	dir     string   // of its data and its output
	argv    []string // none: somebody else started it and will stop it
	env     []string // NAME=value, beside this process's own
	pid     int      // 0: not known, so nothing is known of what it uses
	profile string   // address that serves Go's profiles, if it does
	metrics string   // address that serves Siltstone's metrics, if it does

	others    []*server                   // of the same system, that start and stop with it
	configure func(context.Context) error // what is left to say once it answers; nil: nothing

	heap     func(context.Context) (int64, error) // bytes that are reachable; nil: not known
	database string                               // of Siltstone's coordinator, to be read once it has stopped

	closers []func() error // end what it needs, the last first

	cmd    *exec.Cmd
	began  time.Time     // when it was last launched
	exited chan struct{} // closed once it has, with err
	err    error
}

// all servers of the system.
func (s *server) all() []*server { return append([]*server{s}, s.others...) }

// launch runs the server's command, and those of the others, until each answers:
// for the first time, or again on the same folder.
func (s *server) launch(ctx context.Context) error {
	var err error
	for _, one := range s.all() { // they may need one another to answer
		err = errors.Join(err, one.begin(ctx))
	}
	for _, one := range s.all() {
		if err == nil {
			err = one.ready(ctx)
		}
	}
	if err == nil && s.configure != nil {
		err = s.configure(ctx)
	}
	if err != nil {
		return errors.Join(err, s.stop())
	}
	return nil
}

func (s *server) begin(ctx context.Context) error {
	log, err := os.OpenFile(s.output(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, s.environment()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	s.began = time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.pid, s.cmd, s.exited = cmd.Process.Pid, cmd, exited
	go func() {
		s.err = cmd.Wait()
		close(exited)
	}()
	return nil
}

func (s *server) environment() []string { return append(os.Environ(), s.env...) }

// closeAfter ends what the server needs, and returns an error with those of that.
func (s *server) closeAfter(err error) error {
	for _, end := range slices.Backward(s.closers) {
		err = errors.Join(err, end())
	}
	s.closers = nil
	return err
}

func (s *server) output() string { return filepath.Join(s.dir, "output") }

// ready waits until the server answers a client.
func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.DialTimeout(time.Second))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		err := client.Ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("%s ended before it answered (%w): %s", s.cmd.Path, s.err, s.lastLines())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer at %s (%w): %s", s.cmd.Path, s.addr, err, s.lastLines())
		case <-time.After(readyInterval):
		}
	}
}

// untilExit is a context that ends, with the reason, when one of the servers does.
func (s *server) untilExit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	for _, one := range s.all() {
		exited := one.exited
		go func() {
			select {
			case <-exited:
				cancel(fmt.Errorf("%s ended (%w): %s", one.cmd.Path, one.err, one.lastLines()))
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

func (s *server) lastLines() string {
	const keep = 2 << 10
	b, err := os.ReadFile(s.output())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-keep):])
}

// kill is kill -9, of all servers.
func (s *server) kill() (err error) {
	for _, one := range s.all() {
		if one.cmd == nil {
			continue
		}
		if killing := one.cmd.Process.Kill(); !errors.Is(killing, os.ErrProcessDone) {
			err = errors.Join(err, killing)
		}
		<-one.exited
	}
	return err
}

// stop ends what launch started, if it still runs, all at once: a node may need
// others to end as well. How it ends is no error.
func (s *server) stop() error {
	for _, one := range s.all() {
		if one.cmd != nil {
			_ = one.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	limit := time.After(stopTimeout)
	for _, one := range s.all() {
		if one.cmd == nil {
			continue
		}
		select {
		case <-one.exited:
		case <-limit:
			return errors.Join(fmt.Errorf("%s did not stop when asked", one.cmd.Path), s.kill())
		}
	}
	return nil
}

// usage is what a process, and its children that have ended, used so far.
type usage struct {
	cpu          time.Duration
	peakRSSBytes int64 // since resetPeak
}

// readUsage asks the kernel about a process; pid 0 is nobody, who uses nothing.
func readUsage(pid int) (u usage, err error) {
	if pid == 0 {
		return u, nil
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	if u.cpu, err = parseCPU(stat); err != nil {
		return u, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	u.peakRSSBytes, err = parseStatus(status, "VmHWM:")
	return u, err
}

// usage of all servers together.
func (s *server) usage() (sum usage, err error) {
	for _, one := range s.all() {
		u, err := readUsage(one.pid)
		if err != nil {
			return sum, err
		}
		sum.cpu += u.cpu
		sum.peakRSSBytes += u.peakRSSBytes
	}
	return sum, nil
}

// use is what a server, and the program that measures it, have used so far.
type use struct {
	usage
	loadCPU        time.Duration
	allocatedBytes int64
}

func (s *server) used(ctx context.Context) (u use, err error) {
	if u.usage, err = s.usage(); err != nil {
		return u, err
	}
	own, err := readUsage(os.Getpid())
	if err != nil {
		return u, err
	}
	u.loadCPU = own.cpu
	for _, one := range s.all() {
		allocated, err := one.allocated(ctx)
		if err != nil {
			return u, err
		}
		u.allocatedBytes += allocated
	}
	return u, nil
}

// parseCPU adds utime, stime, cutime and cstime (fields 14 to 17) of
// /proc/pid/stat, in ticks of 10 ms. The name in field 2 may hold anything.
func parseCPU(stat []byte) (time.Duration, error) {
	const tick = 10 * time.Millisecond
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const utime = 14 - 3 // the first field here is number 3
	if len(fields) < utime+4 {
		return 0, fmt.Errorf("a /proc stat of %d fields", len(fields))
	}
	var ticks int64
	for _, f := range fields[utime : utime+4] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// parseStatus finds a size in /proc/pid/status.
func parseStatus(status []byte, name string) (int64, error) {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc status", name)
}

// resetPeak makes the kernel measure peak memory anew.
func (s *server) resetPeak() (err error) {
	for _, one := range s.all() {
		if one.pid != 0 {
			err = errors.Join(err, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", one.pid), []byte("5"), 0))
		}
	}
	return err
}

// freeAddrs returns loopback addresses that nobody listens on.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it waits for nothing
		if err != nil {
			return nil, err
		}
		defer l.Close() // not before the last one is found, so that all differ
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
