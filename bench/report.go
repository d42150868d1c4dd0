package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Report is what runs found: of each cell and figure what the last run did that
// measured it.
type Report struct {
	Runs    []Run
	Samples []Sample
	Figures []Figure
}

// Run is where figures come from.
type Run struct {
	Date, Commit, Command, Machine string
	Rounds                         int
	Duration, WarmUp               string // of a cell
}

// Figure is a value with a name of its own, of one turn: whatever is not of cells.
type Figure struct {
	Run    int // where and when: of the report's
	Round  int
	System string
	Part   string
	Name   string
	Unit   string
	Value  float64
}

// figureTurn is a system while figures of a part are taken of it.
type figureTurn struct {
	o       options
	s       *server
	round   int
	system  string
	part    string
	figures []Figure
}

func (t *figureTurn) add(name, unit string, value float64) {
	t.figures = append(t.figures, Figure{0, t.round, t.system, t.part, name, unit, value})
}

// newReport is a report of one run, without samples.
func newReport(o options, args []string) Report {
	return Report{Runs: []Run{{
		Date:     time.Now().UTC().Format("2006-01-02"),
		Commit:   output("git", "describe", "--always", "--dirty"),
		Command:  command(args),
		Machine:  machine(),
		Rounds:   o.rounds,
		Duration: o.duration.String(),
		WarmUp:   o.warmUp.String(),
	}}}
}

// command is what a shell would be told.
func command(args []string) string {
	words := []string{"bench/run"}
	for _, arg := range args {
		if strings.ContainsAny(arg, " *?$|()[]") {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

func (s Sample) key() string { return s.Cell.String() + "\x00" + s.System }

func (f Figure) key() string { return f.Part + "\x00" + f.Name + "\x00" + f.System }

// merge replaces what a later run has measured again, and adds what is new.
func (r *Report) merge(later Report) {
	again := map[string]bool{}
	for _, s := range later.Samples {
		again[s.key()] = true
	}
	for _, f := range later.Figures {
		again[f.key()] = true
	}
	first := len(r.Runs)
	r.Runs = append(r.Runs, later.Runs...)
	r.Samples = slices.DeleteFunc(r.Samples, func(s Sample) bool { return again[s.key()] })
	r.Figures = slices.DeleteFunc(r.Figures, func(f Figure) bool { return again[f.key()] })
	for _, s := range later.Samples {
		s.Run += first
		r.Samples = append(r.Samples, s)
	}
	for _, f := range later.Figures {
		f.Run += first
		r.Figures = append(r.Figures, f)
	}
	r.forgetRuns()
	r.sort()
}

// forgetRuns forgets runs of which nothing is left.
func (r *Report) forgetRuns() {
	used := make([]bool, len(r.Runs))
	for _, s := range r.Samples {
		used[s.Run] = true
	}
	for _, f := range r.Figures {
		used[f.Run] = true
	}
	place := make([]int, len(r.Runs))
	var left []Run
	for i, run := range r.Runs {
		place[i] = len(left)
		if used[i] {
			left = append(left, run)
		}
	}
	r.Runs = left
	for i := range r.Samples {
		r.Samples[i].Run = place[r.Samples[i].Run]
	}
	for i := range r.Figures {
		r.Figures[i].Run = place[r.Figures[i].Run]
	}
}

// sort puts cells into the order of the matrix, whenever they were measured,
// and those that are not in it last; Siltstone comes first.
func (r *Report) sort() {
	order := map[string]int{}
	for i, c := range matrix() {
		order[c.String()] = i - len(matrix())
	}
	peer := func(s Sample) int {
		if s.System == siltstoneName {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(r.Samples, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(order[a.Cell.String()], order[b.Cell.String()]), cmp.Compare(a.Cell.String(), b.Cell.String()), cmp.Compare(peer(a), peer(b)))
	})
}

// markdown is what people read of a part; nothing if it was never measured.
func (r *Report) markdown(part string) string {
	switch {
	case part == recordsPart && len(r.Samples) > 0:
		return r.recordsMarkdown()
	case slices.ContainsFunc(r.Figures, func(f Figure) bool { return f.Part == part }):
		return r.figuresMarkdown(part)
	}
	return ""
}

// encode is the report as JSON, a line for each sample, so that people can see
// in what two reports differ.
func (r Report) encode() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{\n")
	err := encodeLines(&b, "Runs", r.Runs)
	b.WriteString(",\n")
	err = errors.Join(err, encodeLines(&b, "Samples", r.Samples))
	b.WriteString(",\n")
	err = errors.Join(err, encodeLines(&b, "Figures", r.Figures))
	b.WriteString("\n}\n")
	return b.Bytes(), err
}

func encodeLines[T any](b *bytes.Buffer, name string, all []T) error {
	fmt.Fprintf(b, "%q: [", name)
	for i, one := range all {
		if i > 0 {
			b.WriteString(",")
		}
		line, err := json.Marshal(one)
		if err != nil {
			return err
		}
		b.WriteString("\n")
		b.Write(line)
	}
	b.WriteString("]")
	return nil
}

// readReport reads what encode wrote; a file that is not there is an empty report.
func readReport(path string) (r Report, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
