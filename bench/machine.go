package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

// machine is on what figures were measured.
func machine() string {
	var info unix.Sysinfo_t
	_ = unix.Sysinfo(&info)
	return fmt.Sprintf("%d cores (%s), %s of memory, Linux %s, %s, Java %s", runtime.NumCPU(), processor(),
		humanize.IBytes(info.Totalram*uint64(info.Unit)), output("uname", "-r"), runtime.Version(), javaVersion())
}

func processor() string {
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(cpus)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// javaVersion is the second word of "openjdk 17.0.1 2021-10-19".
func javaVersion() string {
	words := strings.Fields(output("java", "--version"))
	if len(words) < 2 {
		return "unknown"
	}
	return words[1]
}

// output of a command, or "unknown": a report without it is still one.
func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output() //nolint:noctx // it ends by itself
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
