package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tourStep is a command of a page, and what the page says that it prints.
type tourStep struct{ command, prints string }

// readSteps finds the steps of a page: indented lines, the commands after a
// dollar sign. What stands between fences is no step.
func readSteps(t *testing.T, name string) (steps []tourStep) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	fenced := false
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		code, ok := strings.CutPrefix(line, "    ")
		if !ok || fenced {
			continue
		}
		command, begins := strings.CutPrefix(code, "$ ")
		switch last := len(steps) - 1; {
		case begins:
			steps = append(steps, tourStep{command: strings.TrimSuffix(command, "\n")})
		case steps[last].prints == "" && goesOn(steps[last].command):
			steps[last].command += "\n" + strings.TrimSuffix(code, "\n")
		default:
			steps[last].prints += code
		}
	}
	return steps
}

// goesOn says whether a command has more lines.
func goesOn(command string) bool {
	return strings.HasSuffix(command, `\`) || strings.HasSuffix(command, "|") || strings.Count(command, "'")%2 == 1
}

// matches says whether an output is what the page says: … is anything within a
// line, and on a line of its own any lines, or none.
func (s tourStep) matches(output string) bool {
	var b strings.Builder
	for line := range strings.Lines(s.prints) {
		if line == "…\n" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*"))
	}
	return regexp.MustCompile(`\A` + b.String() + `\z`).MatchString(output)
}

// tourShell is a shell with a network of its own, where the page's ports are free.
type tourShell struct {
	stdin io.Writer
	lines chan string
}

const tourMark = "--- step done ---"

func startTourShell(t *testing.T) *tourShell {
	t.Helper()
	flags := "-n"
	if os.Geteuid() != 0 {
		flags = "-rn"
	}
	cmd := exec.Command("unshare", flags, "bash", "-c", "ip link set lo up && exec bash")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it starts ends with it
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	s := &tourShell{stdin, make(chan string)}
	ended := make(chan struct{})
	go func() {
		defer close(s.lines)
		for r := bufio.NewReader(output); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			select {
			case s.lines <- line:
			case <-ended:
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		close(ended)
		output.Close()
	})
	return s
}

// run runs a step and returns its output. A step that goes on in the background
// is over once it has printed what the page says.
func (s *tourShell) run(t *testing.T, step tourStep) string {
	t.Helper()
	if _, err := fmt.Fprintf(s.stdin, "%s\nprintf '\\n%s\\n'\n", step.command, tourMark); err != nil {
		t.Fatal(err)
	}
	var output string
	background, done := strings.HasSuffix(step.command, "&"), false
	for late := time.After(patience); !done || background && !step.matches(output); {
		select {
		case line, ok := <-s.lines:
			switch {
			case !ok:
				t.Fatalf("the shell is gone, after %s", output)
			case line == tourMark+"\n":
				output = strings.TrimSuffix(output, "\n") // the mark's own
				done = true
			default:
				output += strings.ReplaceAll(line, "\r\n", "\n") // as it looks
			}
		case <-late:
			t.Fatalf("%s: not done after %s", output, patience)
		}
	}
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n" // a terminal's next line begins there too
	}
	return output
}

// TestTour takes the tour of docs/tour.md.
func TestTour(t *testing.T) {
	folderless(t)
	steps := readSteps(t, "tour.md")
	if len(steps) < 20 {
		t.Fatalf("only %d steps found", len(steps))
	}
	startTourShell(t).take(t, steps...)
}

// take takes steps, and wants each to print what the page says.
func (s *tourShell) take(t *testing.T, steps ...tourStep) {
	t.Helper()
	for _, step := range steps {
		if got := s.run(t, step); !step.matches(got) {
			t.Fatalf("$ %s\n%swant\n%s", step.command, got, step.prints)
		}
	}
}

// TestTourMatches: what a page may leave open, and what not.
func TestTourMatches(t *testing.T) {
	for _, tt := range []struct {
		prints, output string
		want           bool
	}{
		{"", "", true},
		{"", "x\n", false},
		{"a … c\n", "a b c\n", true},
		{"a … c\n", "a b\nc\n", false},
		{"…\n", "", true},
		{"…\nz\n", "x\ny\nz\n", true},
		{"…\nz\n", "x\ny\n", false},
		{"1.5\n", "1x5\n", false},
	} {
		if got := (tourStep{prints: tt.prints}).matches(tt.output); got != tt.want {
			t.Errorf("%q is %q: %v", tt.output, tt.prints, got)
		}
	}
}
