package main

import (
	"fmt"
	"slices"
	"strings"
)

// Figures that something is aimed at end with these.
const (
	toAllAssigned  = "to all assigned"
	rollingRestart = "rolling restart"
	heapPerGroup   = "heap per group"
	commitP99      = "p99"
	appendsOfShard = "appends, busiest shard"
	appendP99      = "append, p99"

	writable       = "writable"
	idleRSS        = "RSS when idle"
	idleCPU        = "CPU when idle"
	toolThroughput = "throughput"
	toolAckP99     = "ack p99"
)

// What groups may cost.
const (
	maxHeapPerGroupKiB = 64
	maxShardAppends    = 200 // a second: one each 5 ms
	maxOverAppendMS    = 20  // that a commit takes longer than an append
)

// What a server may take to start, and when it has nothing to do.
const (
	maxWritableMS = 1000
	maxIdleRSSMiB = 100
	maxIdleCPU    = 1 // percent of a core
)

// figuresMarkdown is what people read of a part that has figures: a row for
// each, a column for each system, and what is aimed at.
func (r *Report) figuresMarkdown(part string) string {
	var figures []Figure
	for _, f := range r.Figures {
		if f.Part == part {
			figures = append(figures, f)
		}
	}
	systems := distinct(figures, func(f Figure) string { return f.System })
	slices.SortStableFunc(systems, siltstoneFirst)
	var b strings.Builder
	b.WriteString(r.origins(func(run int) bool {
		return slices.ContainsFunc(figures, func(f Figure) bool { return f.Run == run })
	}))
	b.WriteString("\n| figure | unit |")
	for _, s := range systems {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString(" aim | of |\n|---|---|" + strings.Repeat("---:|", len(systems)) + "---|---|\n")
	for _, name := range distinct(figures, func(f Figure) string { return f.Name }) {
		of := slices.DeleteFunc(slices.Clone(figures), func(f Figure) bool { return f.Name != name })
		fmt.Fprintf(&b, "| %s | %s |", name, of[0].Unit)
		for _, s := range systems {
			fmt.Fprintf(&b, " %s |", spread(values(of, s)))
		}
		runs := distinct(of, func(f Figure) string { return r.Runs[f.Run].name() })
		fmt.Fprintf(&b, " %s | %s |\n", aim(figures, name, systems), strings.Join(runs, "; "))
	}
	return b.String()
}

func siltstoneFirst(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == siltstoneName:
		return -1
	case b == siltstoneName:
		return 1
	}
	return 0
}

// values are a system's, of all rounds, sorted.
func values(figures []Figure, system string) (all []float64) {
	for _, f := range figures {
		if f.System == system {
			all = append(all, f.Value)
		}
	}
	slices.Sort(all)
	return all
}

// named are the figures of a name.
func named(figures []Figure, name string) (some []Figure) {
	for _, f := range figures {
		if f.Name == name {
			some = append(some, f)
		}
	}
	return some
}

// aim says what Siltstone's figure should be, and whether it is.
func aim(figures []Figure, name string, systems []string) string {
	got := values(named(figures, name), siltstoneName)
	if len(got) == 0 {
		return ""
	}
	var peer []float64
	var peers string
	if i := slices.IndexFunc(systems, func(s string) bool { return s != siltstoneName }); i >= 0 {
		peer, peers = values(named(figures, name), systems[i]), systems[i]+"'s"
	}
	atMost := func(limit float64, what string) string {
		if middle(got) > limit {
			return "**missed**: at most " + what
		}
		return "at most " + what
	}
	switch {
	case strings.HasSuffix(name, toAllAssigned), strings.HasSuffix(name, rollingRestart):
		if len(peer) > 0 { // rounds differ, so what one of the peer's takes is no slower
			return atMost(slices.Max(peer), peers)
		}
	case strings.HasSuffix(name, toolAckP99):
		if len(peer) > 0 {
			return atMost(middle(peer), peers)
		}
	case strings.HasSuffix(name, toolThroughput):
		if len(peer) > 0 && middle(got) < middle(peer) {
			return "**missed**: at least " + peers
		} else if len(peer) > 0 {
			return "at least " + peers
		}
	case strings.HasPrefix(name, writable):
		return atMost(maxWritableMS, digits(maxWritableMS))
	case strings.HasPrefix(name, idleRSS):
		return atMost(maxIdleRSSMiB, digits(maxIdleRSSMiB))
	case strings.HasPrefix(name, idleCPU):
		return atMost(maxIdleCPU, digits(maxIdleCPU))
	case strings.HasSuffix(name, heapPerGroup):
		return atMost(maxHeapPerGroupKiB, digits(maxHeapPerGroupKiB))
	case strings.HasSuffix(name, appendsOfShard):
		return atMost(maxShardAppends, "one each 5 ms, "+digits(maxShardAppends))
	case strings.HasSuffix(name, ": "+commitP99):
		if appends := values(named(figures, strings.TrimSuffix(name, commitP99)+appendP99), siltstoneName); len(appends) > 0 {
			limit := middle(appends) + maxOverAppendMS
			return atMost(limit, fmt.Sprintf("an append + %d, %s", maxOverAppendMS, digits(limit)))
		}
	}
	return ""
}
