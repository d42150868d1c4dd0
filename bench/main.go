// Command bench measures Siltstone beside Apache Kafka on one machine in one
// run. Of records: throughput, acknowledgement times, and what the servers'
// processes use for each GiB that is written and read back; every record that
// was acknowledged must come back. Of consumer groups: how long they take to
// rebalance and to commit, and what groups cost. It starts the systems in
// turns, never two at once, each on an empty folder. bench/run installs what it
// needs.
//
// With -addr it drives a server that runs already, of any make.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		stop()
		os.Exit(1)
	}
}

type options struct {
	parts                   string
	systems                 string
	siltstone, kafka        string // the binary; the folder of jars
	addr                    string
	pid                     int
	rounds                  int
	warmUp, duration        time.Duration
	cells                   []Cell
	partitions, recordBytes int
	dir                     string
	json, doc, profileDir   string

	groups, members, groupPartitions int
	realMembers                      bool
}

// Parts of a run.
const (
	recordsPart = "records"
	groupsPart  = "groups"
)

func (o options) has(part string) bool { return slices.Contains(strings.Split(o.parts, ","), part) }

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.StringVar(&o.parts, "parts", recordsPart+","+groupsPart, "what to measure")
	f.StringVar(&o.systems, "systems", "siltstone,kafka", "whom to measure")
	f.StringVar(&o.siltstone, "siltstone", "bin/siltstone", "Siltstone's `binary`")
	f.StringVar(&o.kafka, "kafka", "bin/kafka", "`folder` of Kafka's jars")
	f.StringVar(&o.addr, "addr", "", "measure the server that runs at this `address`, and no other")
	f.IntVar(&o.pid, "pid", 0, "the process of -addr, to know what it uses")
	f.IntVar(&o.rounds, "rounds", 3, "how often to measure each system")
	f.DurationVar(&o.warmUp, "warmup", 10*time.Second, "how long to produce, or to rebalance, before measuring")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "how long to produce, or to commit, in each cell")
	f.Func("cell", "measure this instead of the usual cells, like `producers=16,rate=10000,batch=16384`; may be repeated", func(s string) error {
		c, err := parseCell(s)
		o.cells = append(o.cells, c)
		return err
	})
	f.IntVar(&o.partitions, "partitions", 16, "partitions of each topic")
	f.IntVar(&o.recordBytes, "record-bytes", 1024, "size of a record, key and value")
	f.IntVar(&o.groups, "groups", 1000, "groups that commit")
	f.IntVar(&o.members, "members", 100, "members of the group that rebalances")
	f.IntVar(&o.groupPartitions, "group-partitions", 1000, "partitions that groups read")
	f.BoolVar(&o.realMembers, "real-members", false, "measure rebalances with franz-go clients too: the figures should be much the same")
	f.StringVar(&o.dir, "dir", "", "`folder` for the servers' data, removed afterwards (default: the system's for temporary files)")
	f.StringVar(&o.json, "json", "bin/bench.json", "write all samples to this `file`")
	f.StringVar(&o.doc, "doc", "", "write the tables into this `page` too")
	f.StringVar(&o.profileDir, "profile", "", "write CPU profiles of Siltstone into this `folder`, one for each cell; it costs a little, so not for figures")
	_ = f.Parse(args) // ExitOnError
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is no flag (see -help)", f.Arg(0))
	case o.recordBytes < 2*keyBytes:
		return o, fmt.Errorf("-record-bytes %d: a record's identity alone takes %d", o.recordBytes, keyBytes)
	case o.rounds < 1 || o.partitions < 1 || o.duration <= 0:
		return o, fmt.Errorf("-rounds, -partitions and -duration are at least 1")
	case o.groups < 1 || o.members < 2 || o.groupPartitions < o.members:
		return o, fmt.Errorf("-groups is at least 1, -members 2, and -group-partitions -members")
	}
	for part := range strings.SplitSeq(o.parts, ",") {
		if part != recordsPart && part != groupsPart {
			return o, fmt.Errorf("-parts %s: records and groups are known", part)
		}
	}
	if o.cells == nil {
		o.cells = defaultCells
	}
	return o, nil
}

// chosen systems, which must be there before the first is measured.
func (o options) chosen() ([]system, error) {
	if o.addr != "" {
		return []system{running(o.addr, o.pid)}, nil
	}
	var all []system
	for name := range strings.SplitSeq(o.systems, ",") {
		var path string
		switch name {
		case "siltstone":
			path = o.siltstone
			all = append(all, siltstone(path))
		case "kafka":
			path = o.kafka
			all = append(all, kafka(path))
		default:
			return nil, fmt.Errorf("-systems %s: siltstone and kafka are known", name)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%w: bench/run installs it", err)
		}
	}
	return all, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	systems, err := o.chosen()
	if err != nil {
		return err
	}
	if o.doc != "" { // known now, not after ten minutes
		for _, section := range []string{recordsPart, groupsPart} {
			if _, _, err := aroundFigures(o.doc, section); err != nil {
				return err
			}
		}
	}
	report := newReport(o, args)
	for round := range o.rounds {
		// What runs first in one round runs last in the next.
		for _, sys := range systems {
			if err := o.takeTurns(ctx, round+1, sys, &report); err != nil {
				return fmt.Errorf("%s: %w", sys.name, err)
			}
		}
		slices.Reverse(systems)
	}
	return o.publish(report)
}

// takeTurns is what a system does in a round.
func (o options) takeTurns(ctx context.Context, round int, sys system, r *Report) error {
	if o.has(recordsPart) {
		samples, err := o.turn(ctx, round, sys)
		if err != nil {
			return err
		}
		r.Samples = append(r.Samples, samples...)
	}
	if o.has(groupsPart) {
		samples, err := o.measureGroups(ctx, round, sys)
		if err != nil {
			return err
		}
		r.GroupSamples = append(r.GroupSamples, samples...)
	}
	return nil
}

// say what is being measured.
func (o options) say(round int, system, what string) {
	fmt.Fprintf(os.Stderr, "round %d, %s: %s\n", round, system, what)
}

// publish prints the tables, and writes what was asked for.
func (o options) publish(r Report) error {
	tables := map[string]string{}
	if o.has(recordsPart) {
		tables[recordsPart] = r.markdown()
	}
	if o.has(groupsPart) {
		tables[groupsPart] = r.groupsMarkdown()
	}
	fmt.Print(tables[recordsPart], tables[groupsPart])
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.json, append(encoded, '\n'), 0o644); err != nil {
		return err
	}
	if o.doc == "" {
		return nil
	}
	for section, table := range tables {
		if err := writeInto(o.doc, section, table); err != nil {
			return err
		}
	}
	return nil
}
