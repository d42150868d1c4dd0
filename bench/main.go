// Command bench measures Siltstone beside Apache Kafka on one machine in one
// run: throughput, acknowledgement times, and what the servers' processes use
// for each GiB that is written and read back. It starts the systems in turns,
// never two at once, each on an empty folder, and checks that every record
// that was acknowledged comes back. bench/run installs what it needs.
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
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.StringVar(&o.systems, "systems", "siltstone,kafka", "what to measure")
	f.StringVar(&o.siltstone, "siltstone", "bin/siltstone", "Siltstone's `binary`")
	f.StringVar(&o.kafka, "kafka", "bin/kafka", "`folder` of Kafka's jars")
	f.StringVar(&o.addr, "addr", "", "measure the server that runs at this `address`, and no other")
	f.IntVar(&o.pid, "pid", 0, "the process of -addr, to know what it uses")
	f.IntVar(&o.rounds, "rounds", 3, "how often to measure each system")
	f.DurationVar(&o.warmUp, "warmup", 10*time.Second, "how long to produce before measuring")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "how long to produce in each cell")
	f.Func("cell", "measure this instead of the usual cells, like `producers=16,rate=10000,batch=16384`; may be repeated", func(s string) error {
		c, err := parseCell(s)
		o.cells = append(o.cells, c)
		return err
	})
	f.IntVar(&o.partitions, "partitions", 16, "partitions of each topic")
	f.IntVar(&o.recordBytes, "record-bytes", 1024, "size of a record, key and value")
	f.StringVar(&o.dir, "dir", "", "`folder` for the servers' data, removed afterwards (default: the system's for temporary files)")
	f.StringVar(&o.json, "json", "bin/bench.json", "write all samples to this `file`")
	f.StringVar(&o.doc, "doc", "", "write the table into this `page` too")
	f.StringVar(&o.profileDir, "profile", "", "write a CPU profile of Siltstone for each cell into this `folder`; it costs a little, so not for figures")
	_ = f.Parse(args) // ExitOnError
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is no flag (see -help)", f.Arg(0))
	case o.recordBytes < 2*keyBytes:
		return o, fmt.Errorf("-record-bytes %d: a record's identity alone takes %d", o.recordBytes, keyBytes)
	case o.rounds < 1 || o.partitions < 1 || o.duration <= 0:
		return o, fmt.Errorf("-rounds, -partitions and -duration are at least 1")
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
			all = append(all, siltstone(path, o.profileDir != ""))
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
		if _, _, err := aroundFigures(o.doc); err != nil {
			return err
		}
	}
	report := newReport(o, args)
	for round := range o.rounds {
		// What runs first in one round runs last in the next.
		for _, sys := range systems {
			samples, err := o.turn(ctx, round+1, sys)
			if err != nil {
				return fmt.Errorf("%s: %w", sys.name, err)
			}
			report.Samples = append(report.Samples, samples...)
		}
		slices.Reverse(systems)
	}
	return o.publish(report)
}

// publish prints the table, and writes what was asked for.
func (o options) publish(r Report) error {
	table := r.markdown()
	fmt.Print(table)
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
	return writeInto(o.doc, table)
}
