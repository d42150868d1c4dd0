package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
)

// table is one of cells: a row for each and system.
type table struct {
	title   string
	columns []column
	has     func(Sample) bool
	aim     func(*Report, Cell) string // what Siltstone misses, or nothing to say
}

// column of a table: a figure of each sample.
type column struct {
	title  string
	figure func(Sample) float64
}

var (
	writeMiB = column{"MiB/s", func(s Sample) float64 { return s.WriteMiBPerSecond }}
	ackP99   = column{"ack p99, ms", func(s Sample) float64 { return s.AckP99Millis }}
	writeCPU = column{"CPU s/GiB", func(s Sample) float64 { return s.WriteCPUPerGiB }}
	tailCPU  = column{"tail CPU s/GiB", func(s Sample) float64 { return s.TailCPUPerGiB }}
)

var tables = []table{
	{
		"Writing", []column{
			writeMiB,
			{"records/s", func(s Sample) float64 { return s.WriteRecordsPerSecond }},
			{"ack p50, ms", func(s Sample) float64 { return s.AckP50Millis }},
			ackP99,
			{"ack max, ms", func(s Sample) float64 { return s.AckMaxMillis }},
			writeCPU,
			{"load's CPU s/GiB", func(s Sample) float64 { return s.LoadCPUPerGiB }},
			{"allocated, B/record", func(s Sample) float64 { return s.AllocatedPerRecord }},
			{"peak RSS, MiB", func(s Sample) float64 { return s.PeakRSSMiB }},
		},
		func(Sample) bool { return true }, (*Report).writingAim,
	},
	{
		"Reading back", []column{
			{"warm MiB/s", func(s Sample) float64 { return s.ReadMiBPerSecond }},
			{"warm CPU s/GiB", func(s Sample) float64 { return s.ReadCPUPerGiB }},
			{"cold MiB/s", func(s Sample) float64 { return s.ColdReadMiBPerSecond }},
			{"cold CPU s/GiB", func(s Sample) float64 { return s.ColdReadCPUPerGiB }},
		},
		func(s Sample) bool { return s.Cell.Rate == 0 }, nil,
	},
	{
		"Reading the tail", []column{
			{"end to end p50, ms", func(s Sample) float64 { return s.TailP50Millis }},
			{"end to end p99, ms", func(s Sample) float64 { return s.TailP99Millis }},
			{"ack p99 meanwhile, ms", func(s Sample) float64 { return s.FollowedAckP99 }},
			tailCPU,
		},
		func(s Sample) bool { return s.Cell.Followers > 0 }, (*Report).tailAim,
	},
}

// recordsMarkdown is what people read of the cells: the median of each figure
// and, of several rounds, the lowest and highest.
func (r *Report) recordsMarkdown() string {
	var b strings.Builder
	b.WriteString(r.origins(func(run int) bool {
		return slices.ContainsFunc(r.Samples, func(s Sample) bool { return s.Run == run })
	}))
	for _, t := range tables {
		t.write(&b, r)
	}
	return b.String()
}

func (t table) write(b *strings.Builder, r *Report) {
	fmt.Fprintf(b, "\n**%s**\n\n| cell | system |", t.title)
	for _, c := range t.columns {
		fmt.Fprintf(b, " %s |", c.title)
	}
	if t.aim != nil {
		b.WriteString(" aim |")
	}
	b.WriteString(" of |\n|---|---|" + strings.Repeat("---:|", len(t.columns)))
	if t.aim != nil {
		b.WriteString("---|")
	}
	b.WriteString("---|\n")
	var rows []Sample
	for _, s := range r.Samples {
		if t.has(s) {
			rows = append(rows, s)
		}
	}
	for _, row := range distinct(rows, Sample.key) {
		samples := slices.DeleteFunc(slices.Clone(rows), func(s Sample) bool { return s.key() != row })
		first := samples[0]
		fmt.Fprintf(b, "| %s | %s |", first.Cell, first.System)
		for _, c := range t.columns {
			fmt.Fprintf(b, " %s |", spread(c.known(samples)))
		}
		switch {
		case t.aim != nil && first.System == siltstoneName:
			fmt.Fprintf(b, " %s |", t.aim(r, first.Cell))
		case t.aim != nil:
			b.WriteString(" |")
		}
		fmt.Fprintf(b, " %s |\n", r.Runs[first.Run].name())
	}
}

// known are the column's figures; 0 is none.
func (c column) known(samples []Sample) (figures []float64) {
	for _, s := range samples {
		if f := c.figure(s); f != 0 {
			figures = append(figures, f)
		}
	}
	return figures
}

// name tells a run from others.
func (r Run) name() string { return r.Commit + ", " + r.Date }

// origins says where figures come from: the runs that are of use.
func (r *Report) origins(of func(run int) bool) string {
	var b strings.Builder
	for i, run := range r.Runs {
		if of(i) {
			fmt.Fprintf(&b, "- %s: `%s`, %s, %s a cell after %s of warming up. %s.\n",
				run.name(), run.Command, plural(run.Rounds, "round"), run.Duration, run.WarmUp, run.Machine)
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
	if len(figures) == 0 {
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
