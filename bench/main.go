// Command bench measures Siltstone beside Apache Kafka on one machine in one
// run. Of records: throughput, acknowledgement times, times from end to end, and
// what the servers' processes use for each GiB that is written and read; every
// record that was acknowledged must come back. The same by Kafka's own tools. Of
// servers: how soon they take a record, and what they use when nobody asks. Of
// consumer groups: how long they take to rebalance and to commit, and what
// groups cost. It starts the systems in turns, never two at once, each on an
// empty folder. bench/run installs what it needs.
//
// With -addr it drives a server that runs already, of any make.
package main

import (
	"context"
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
	parts                 string
	systems               string
	siltstone, kafka      string // the binary; the folder of jars
	addr                  string
	pid                   int
	rounds                int
	warmUp, duration      time.Duration
	cells                 []Cell
	cold                  bool
	toolMiB               int
	dir                   string
	json, doc, profileDir string

	groups, members, groupPartitions int
	realMembers                      bool
}

// Parts of a run.
const (
	recordsPart = "records"
	toolsPart   = "tools"
	startPart   = "start"
	groupsPart  = "groups"
)

var allParts = []string{recordsPart, toolsPart, startPart, groupsPart}

func (o options) has(part string) bool { return slices.Contains(strings.Split(o.parts, ","), part) }

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.StringVar(&o.parts, "parts", strings.Join(allParts, ","), "what to measure")
	f.StringVar(&o.systems, "systems", "siltstone,kafka", "whom to measure, `names` of siltstone (dev), minio (an agent over MinIO), minio-delayed (each PUT 50 ms later), agents-2 and agents-3 (three agents, so many replicas), the same with -delayed (PUT 50, GET 20 ms later), kafka, kafka-synced (which syncs before it acknowledges), and kafka-3 (three brokers)")
	f.StringVar(&o.siltstone, "siltstone", "bin/siltstone", "Siltstone's `binary`")
	f.StringVar(&o.kafka, "kafka", "bin/kafka", "`folder` of Kafka's jars")
	f.StringVar(&o.addr, "addr", "", "measure the server that runs at this `address`, and no other")
	f.IntVar(&o.pid, "pid", 0, "the process of -addr, to know what it uses")
	f.IntVar(&o.rounds, "rounds", 5, "how often to measure each system; 0 writes the tables of what -doc has already")
	f.DurationVar(&o.warmUp, "warmup", 10*time.Second, "how long to produce, or to rebalance, before measuring")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "how long to produce, or to commit, in each cell")
	f.Func("cell", "measure this instead of the usual cells, like `record=100,partitions=16,producers=16,rate=10000,batch=16384,followers=1,cold=1`; may be repeated", func(s string) error {
		c, err := parseCell(s)
		o.cells = append(o.cells, c)
		return err
	})
	match := f.String("match", "", "of the usual cells, measure those whose names match this `expression`, like '1.0 KiB.*flat out'")
	f.BoolVar(&o.cold, "cold", true, "read back from the disk too, where that is usual: as root, who may drop caches")
	f.IntVar(&o.toolMiB, "tool-mib", 1024, "how much Kafka's tools write and read")
	f.IntVar(&o.groups, "groups", 1000, "groups that commit")
	f.IntVar(&o.members, "members", 100, "members of the group that rebalances")
	f.IntVar(&o.groupPartitions, "group-partitions", 1000, "partitions that groups read")
	f.BoolVar(&o.realMembers, "real-members", false, "measure rebalances with franz-go clients too: the figures should be much the same")
	f.StringVar(&o.dir, "dir", "", "`folder` for the servers' data, removed afterwards (default: the system's for temporary files)")
	f.StringVar(&o.json, "json", "bin/bench.json", "write all samples to this `file`, unless there is a -doc")
	f.StringVar(&o.doc, "doc", "", "write the tables into this `page`, and all samples beside it as JSON; what is there of other cells and parts stays")
	f.StringVar(&o.profileDir, "profile", "", "write CPU profiles of Siltstone into this `folder`, one for each cell; it costs a little, so not for figures")
	_ = f.Parse(args) // ExitOnError
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is no flag (see -help)", f.Arg(0))
	case o.rounds < 0 || o.rounds == 0 && o.doc == "" || o.duration <= 0 || o.toolMiB < 1:
		return o, fmt.Errorf("-rounds, -duration and -tool-mib are at least 1")
	case o.addr != "" && (o.has(startPart) || o.cold):
		return o, fmt.Errorf("-addr: a server that runs already is not started again; say -cold=false, and leave the part start out")
	case o.cold && os.Geteuid() != 0:
		return o, fmt.Errorf("cold reads need root, who may drop the kernel's caches; -cold=false leaves them out")
	case o.groups < 1 || o.members < 2 || o.groupPartitions < o.members:
		return o, fmt.Errorf("-groups is at least 1, -members 2, and -group-partitions -members")
	}
	for part := range strings.SplitSeq(o.parts, ",") {
		if !slices.Contains(allParts, part) {
			return o, fmt.Errorf("-parts %s: known are %s", part, strings.Join(allParts, ", "))
		}
	}
	if o.cells == nil {
		o.cells, err = matching(matrix(), *match)
	}
	return o, err
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
		case "kafka-synced":
			path = o.kafka
			all = append(all, synced(path))
		case "minio":
			path = o.siltstone
			all = append(all, onMinIO(minioName, path, delays{}))
		case "minio-delayed":
			path = o.siltstone
			all = append(all, onMinIO(delayedName, path, delayedPut))
		case "agents-2", "agents-3", "agents-2-delayed", "agents-3-delayed":
			path = o.siltstone
			d := delays{}
			if strings.HasSuffix(name, "-delayed") {
				d = farStores
			}
			all = append(all, agents(path, int(name[len("agents-")]-'0'), d))
		case "kafka-3":
			path = o.kafka
			all = append(all, brokers(path))
		default:
			return nil, fmt.Errorf("-systems %s: siltstone, minio, minio-delayed, agents-2, agents-3, agents-2-delayed, agents-3-delayed, kafka, kafka-synced and kafka-3 are known", name)
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
	if o.doc != "" { // known now, not after an hour
		for _, part := range allParts {
			if _, _, err := aroundFigures(o.doc, part); err != nil {
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
		t := turn{o: o}
		if err := sys.with(ctx, o.dir, func(s *server) error { t.s = s; return t.measure(ctx, round, sys.name) }); err != nil {
			return err
		}
		r.Samples = append(r.Samples, t.samples...)
	}
	for _, p := range []struct {
		part    string
		measure func(context.Context, *figureTurn) error
	}{{toolsPart, measureTools}, {startPart, measureStart}, {groupsPart, measureGroups}} {
		if !o.has(p.part) {
			continue
		}
		t := figureTurn{o: o, round: round, system: sys.name, part: p.part}
		if err := sys.with(ctx, o.dir, func(s *server) error { t.s = s; return p.measure(ctx, &t) }); err != nil {
			return fmt.Errorf("%s: %w", p.part, err)
		}
		r.Figures = append(r.Figures, t.figures...)
	}
	return nil
}

// say what is being measured.
func (o options) say(round int, system, what string) {
	fmt.Fprintf(os.Stderr, "round %d, %s: %s\n", round, system, what)
}

// publish prints the tables of what was measured, and writes what was asked for.
func (o options) publish(r Report) error {
	r.sort()
	for _, part := range allParts {
		if o.has(part) && o.rounds > 0 {
			fmt.Print(r.markdown(part))
		}
	}
	path := o.json
	if o.doc != "" {
		path = strings.TrimSuffix(o.doc, ".md") + ".json"
		all, err := readReport(path)
		if err != nil {
			return err
		}
		all.merge(r)
		r = all
	}
	encoded, err := r.encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, encoded, 0o644); err != nil || o.doc == "" {
		return err
	}
	for _, part := range allParts {
		if table := r.markdown(part); table != "" {
			if err := writeInto(o.doc, part, table); err != nil {
				return err
			}
		}
	}
	return nil
}
