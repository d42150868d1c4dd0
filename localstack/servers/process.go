package servers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	stopTimeout  = 20 * time.Second // for a SIGTERM; then it is SIGKILL
	stopInterval = 10 * time.Millisecond
)

// Process is a process of this machine, now and after its end: its id is given
// to others again, so the time of its start is part of its identity.
type Process struct {
	ID      int
	Started string // in ticks since the machine started, as the kernel prints it
}

// newProcess is one that was just started. Its end is collected.
func newProcess(cmd *exec.Cmd) (*Process, error) {
	// Until Wait has collected it the id is its own, even if it has ended.
	p := &Process{ID: cmd.Process.Pid}
	_, started, err := stat(p.ID)
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	p.Started = started
	go func() { _ = cmd.Wait() }()
	return p, nil
}

// ReadProcess is what a file NAME.pid says, or nil if there is no such file.
func ReadProcess(file string) (*Process, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p Process
	if _, err := fmt.Sscanf(string(b), "%d %s\n", &p.ID, &p.Started); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &p, nil
}

func (p *Process) write(file string) error {
	return os.WriteFile(file, fmt.Appendf(nil, "%d %s\n", p.ID, p.Started), 0o600)
}

// Running says whether it has not ended.
func (p *Process) Running() bool {
	ended, started, err := stat(p.ID)
	return err == nil && started == p.Started && !ended
}

// Stop asks it to end, waits until it has, and ends it by force if it does not.
func (p *Process) Stop() error {
	process, err := os.FindProcess(p.ID)
	if err != nil {
		return err
	}
	defer func() { _ = process.Release() }()
	// What process holds is fixed now; it is the one that is meant if that
	// still runs after.
	if !p.Running() {
		return nil
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); time.Sleep(stopInterval) {
			if !p.Running() {
				return nil
			}
		}
	}
	return fmt.Errorf("process %d does not end", p.ID)
}

// stat reads whether a process has ended, and the time of its start: fields 3
// (state), 20 (threads) and 22 of /proc/PID/stat (proc_pid_stat(5)). Field 2, the
// program's name, is in parentheses and may hold anything. A zombie has ended,
// and nobody has asked how; but while it has other threads its ports are taken.
func stat(pid int) (ended bool, started string, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false, "", err
	}
	line := string(b)
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return false, "", fmt.Errorf("/proc/%d/stat is %q", pid, line)
	}
	return fields[0] == "Z" && fields[17] <= "1", fields[19], nil
}
