package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

// Report is what a run found, and where.
type Report struct {
	Date, Command, Commit, Machine string
	Rounds                         int
	Workload                       string
	Samples                        []Sample      `json:",omitempty"`
	GroupSamples                   []GroupSample `json:",omitempty"`
}

// columns of the table: a figure of each sample.
var columns = []struct {
	title  string
	figure func(Sample) float64
}{
	{"MiB/s", func(s Sample) float64 { return s.WriteMiBPerSecond }},
	{"records/s", func(s Sample) float64 { return s.WriteRecordsPerSecond }},
	{"ack p50, ms", func(s Sample) float64 { return s.AckP50Millis }},
	{"ack p99, ms", func(s Sample) float64 { return s.AckP99Millis }},
	{"ack max, ms", func(s Sample) float64 { return s.AckMaxMillis }},
	{"CPU s/GiB", func(s Sample) float64 { return s.WriteCPUPerGiB }},
	{"read MiB/s", func(s Sample) float64 { return s.ReadMiBPerSecond }},
	{"read CPU s/GiB", func(s Sample) float64 { return s.ReadCPUPerGiB }},
	{"peak RSS, MiB", func(s Sample) float64 { return s.PeakRSSMiB }},
}

// origin says where figures come from.
func (r Report) origin() string {
	return fmt.Sprintf("`%s` on %s, commit %s.\n%s.\nRounds: %d.", r.Command, r.Date, r.Commit, r.Machine, r.Rounds)
}

// markdown is the report of records as people read it: a row per cell and
// system, the median of each figure and, of several rounds, the lowest and highest.
func (r Report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s Records: %s.\n\n", r.origin(), r.Workload)
	b.WriteString("| produced by | system |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	for _, cell := range distinct(r.Samples, func(s Sample) string { return s.Cell }) {
		for _, system := range distinct(r.Samples, func(s Sample) string { return s.System }) {
			fmt.Fprintf(&b, "| %s | %s |", cell, system)
			for _, c := range columns {
				var figures []float64
				for _, s := range r.Samples {
					if s.Cell == cell && s.System == system {
						figures = append(figures, c.figure(s))
					}
				}
				fmt.Fprintf(&b, " %s |", spread(figures))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// distinct values of a field, in the order of their first sample.
func distinct[S any](samples []S, field func(S) string) (all []string) {
	for _, s := range samples {
		if v := field(s); !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// spread is "median (lowest to highest)".
func spread(figures []float64) string {
	if len(figures) == 0 || slices.Max(figures) == 0 {
		return "–"
	}
	slices.Sort(figures)
	if len(figures) == 1 {
		return digits(figures[0])
	}
	return fmt.Sprintf("%s (%s–%s)", digits(middle(figures)), digits(figures[0]), digits(figures[len(figures)-1]))
}

// middle is the median of sorted figures.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// digits rounds to what a measurement like this can tell.
func digits(f float64) string {
	switch {
	case f >= 100:
		return humanize.Comma(int64(f + 0.5))
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

// The page keeps what people wrote around the figures of each part.
func marks(part string) (begin, end string) {
	return fmt.Sprintf("<!-- figures of %s: written by make bench -->\n", part), fmt.Sprintf("<!-- end of figures of %s -->\n", part)
}

// aroundFigures is what stands before and after a part's figures on a page.
func aroundFigures(path, part string) (before, after []byte, err error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	begin, end := marks(part)
	before, rest, found := bytes.Cut(page, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return nil, nil, fmt.Errorf("%s has no place for figures, between %q and %q", path, begin, end)
	}
	return before, after, nil
}

// writeInto puts figures between the marks of a page.
func writeInto(path, part, figures string) error {
	before, after, err := aroundFigures(path, part)
	if err != nil {
		return err
	}
	begin, end := marks(part)
	page := slices.Concat(before, []byte(begin+"\n"+figures+"\n"+end), after)
	return os.WriteFile(path, page, 0o644)
}

// newReport is a report without samples.
func newReport(o options, args []string) Report {
	return Report{
		Date:    time.Now().UTC().Format("2006-01-02"),
		Command: strings.Join(append([]string{"bench/run"}, args...), " "),
		Commit:  output("git", "describe", "--always", "--dirty"),
		Machine: machine(),
		Rounds:  o.rounds,
		Workload: fmt.Sprintf("%s in %d partitions, for %s a cell after %s of warming up",
			humanize.IBytes(uint64(o.recordBytes)), o.partitions, o.duration, o.warmUp),
	}
}

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
