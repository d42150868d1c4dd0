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
)

// What groups may cost.
const (
	maxHeapPerGroupKiB = 64
	maxShardAppends    = 200 // a second: one each 5 ms
	maxOverAppendMS    = 20  // that a commit takes longer than an append
)

// groupsMarkdown is the report of groups as people read it: a row per figure,
// a column per system, and what is aimed at.
func (r Report) groupsMarkdown() string {
	systems := distinct(r.GroupSamples, func(s GroupSample) string { return s.System })
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| figure | unit |", r.origin())
	for _, s := range systems {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString(" aim |\n|---|---|" + strings.Repeat("---:|", len(systems)) + "---|\n")
	for _, figure := range distinct(r.GroupSamples, func(s GroupSample) string { return s.Figure }) {
		i := slices.IndexFunc(r.GroupSamples, func(s GroupSample) bool { return s.Figure == figure })
		fmt.Fprintf(&b, "| %s | %s |", figure, r.GroupSamples[i].Unit)
		for _, s := range systems {
			fmt.Fprintf(&b, " %s |", spread(r.groupValues(figure, s)))
		}
		fmt.Fprintf(&b, " %s |\n", r.aim(figure, systems))
	}
	return b.String()
}

// groupValues are a system's, of all rounds, sorted.
func (r Report) groupValues(figure, system string) (values []float64) {
	for _, s := range r.GroupSamples {
		if s.Figure == figure && s.System == system {
			values = append(values, s.Value)
		}
	}
	slices.Sort(values)
	return values
}

// aim says what Siltstone's figure should be at most, and whether it is.
func (r Report) aim(figure string, systems []string) string {
	got := r.groupValues(figure, siltstoneName)
	if len(got) == 0 {
		return ""
	}
	var limit float64
	var what string
	switch {
	case strings.HasSuffix(figure, toAllAssigned), strings.HasSuffix(figure, rollingRestart):
		peer := slices.IndexFunc(systems, func(s string) bool { return s != siltstoneName })
		if peer < 0 {
			return ""
		}
		// Rounds differ, so what one of the peer's takes is no slower.
		limit, what = slices.Max(r.groupValues(figure, systems[peer])), systems[peer]+"'s"
	case strings.HasSuffix(figure, heapPerGroup):
		limit, what = maxHeapPerGroupKiB, digits(maxHeapPerGroupKiB)
	case strings.HasSuffix(figure, appendsOfShard):
		limit, what = maxShardAppends, "one each 5 ms, "+digits(maxShardAppends)
	case strings.HasSuffix(figure, ": "+commitP99):
		appends := r.groupValues(strings.TrimSuffix(figure, commitP99)+appendP99, siltstoneName)
		if len(appends) == 0 {
			return ""
		}
		limit = middle(appends) + maxOverAppendMS
		what = fmt.Sprintf("an append + %d, %s", maxOverAppendMS, digits(limit))
	default:
		return ""
	}
	if middle(got) > limit {
		return "**missed**: at most " + what
	}
	return "at most " + what
}
