package main

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var isolations = []string{"read_committed", "read_uncommitted"}

// consumer is a run of consume.
type consumer struct {
	topic       string
	partitions  []int32 // nil: all
	from, until position
	count       int
	key         []byte // nil: any
	group       string // empty: none
	committed   bool   // read_committed
	out         printer
	stall       *stall // of a run outside of a group
}

// consumeFlags are as they are given.
type consumeFlags struct {
	partitions, from, until, key, group, isolation string

	count int
	toEnd bool
	print printerFlags
}

func newConsume() *cobra.Command {
	var c client
	var given consumeFlags
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Print the records of a topic, and go on as they come",
		Long: `Print the records of a topic, and go on as they come, until Ctrl-C.

--from says where to begin, --until where to stop: beginning (or earliest), end
(or latest), an offset, or a time: 2026-01-31T08:00:00Z, 2026-01-31T08:00 or
2026-01-31 (as clocks are here), 90m or 7d ago, or @ and milliseconds since 1970.
Times are those of the records. Where these are not in order, --from passes over
older records, and --until stops at the first that is not older. With --until a
partition that ends before is read to its end as it is now.

A record is its value and a newline, byte for byte, or what these say:

  --keys     key, tab, value
  --details  time, partition, offset, key, headers, value, with tabs between
  --json     an object a line, which siltstone produce --json takes back as it
             is. Bytes that are not UTF-8 stand in fields that end in _base64
  --format   %k key, %v value, %h{%k=%v } headers, %d time in milliseconds,
             %d{go#RFC3339#} as text, %t topic, %p partition, %o offset, %K and
             %V lengths, %k{hex} and %v{base64}, %% percent, \n \t \xNN

With --group it reads as a member of that group: the partitions that it is
assigned, from where the group has committed. What is printed is committed, so
that a crash prints again what was not, and skips nothing. --from is then
beginning or end, for where nothing is committed, and --exit stops once the
group has read to the end as it is now.`,
		Example: "  siltstone consume orders\n" +
			"  siltstone consume orders --exit --json | jq .value\n" +
			"  siltstone consume orders --partition 0,4-7 --from 1200 --count 10\n" +
			"  siltstone consume orders --from 1h --key customer-7 --details\n" +
			"  siltstone consume orders --from 2026-01-31T08:00 --until 2026-01-31T09:00\n" +
			"  siltstone consume orders --format '%o %k %v\\n' --exit\n" +
			"  siltstone consume orders --group billing",
		Args:              takes("TOPIC", false),
		ValidArgsFunction: c.completeTopics(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := notEmpty(cmd, "group", "partition", "until", "format"); err != nil {
				return err
			}
			read, err := given.consumer(args[0], cmd.Flags().Changed("key"), time.Now())
			if err != nil {
				return err
			}
			ctx, stop := whileRead(cmd.Context(), cmd.OutOrStdout())
			defer stop()
			return read.run(ctx, &c, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.register(cmd)
	given.register(cmd)
	completeFlag(cmd, "group", c.completeGroups(0))
	return cmd
}

func (f *consumeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.partitions, "partition", "p", "", "only these `partitions`, like 3 or 0,4-7")
	flags.StringVarP(&f.from, "from", "o", "beginning", "where to begin: a `position`, see above")
	flags.StringVar(&f.until, "until", "", "where to stop: a `position`, see above")
	flags.IntVarP(&f.count, "count", "n", 0, "stop after so many `records`; 0 is never")
	flags.BoolVarP(&f.toEnd, "exit", "e", false, "stop at the end, as it is now")
	flags.StringVar(&f.key, "key", "", "only records with this `key`")
	flags.StringVarP(&f.group, "group", "g", "", "read as a member of this `group`, and commit")
	flags.StringVar(&f.isolation, "isolation", "read_committed", "the isolation `level`, read_committed or read_uncommitted: whether open and aborted transactions are left out")
	f.print.register(cmd)
	completeValues(cmd, "isolation", isolations)
}

// consumer refuses wrong flags.
func (f *consumeFlags) consumer(topic string, keyed bool, now time.Time) (c consumer, err error) {
	c = consumer{topic: topic, count: f.count, group: f.group, committed: f.isolation == isolations[0]}
	if keyed {
		c.key = []byte(f.key)
	}
	if f.partitions != "" {
		if c.partitions, err = parsePartitions(f.partitions); err != nil {
			return c, usagef("--partition is like 3 or 0,4-7, not %q", f.partitions)
		}
	}
	if c.from, err = parsePosition("from", f.from, now); err != nil {
		return c, err
	}
	switch {
	case f.toEnd && f.until != "":
		return c, usagef("give --exit or --until, not both")
	case f.toEnd:
		c.until.at = atEnd
	case f.until != "":
		if c.until, err = parsePosition("until", f.until, now); err != nil {
			return c, err
		}
	}
	switch {
	case c.until.at == atBeginning:
		return c, usagef("--until beginning leaves nothing to read")
	case f.count < 0:
		return c, usagef("--count %d is below 0", f.count)
	case f.group != "" && (f.partitions != "" || f.until != ""):
		return c, usagef("--group reads what the group is assigned, from where it has committed: --partition and --until are not for it")
	case f.group != "" && c.from.at != atBeginning && c.from.at != atEnd:
		return c, usagef("with --group, --from is beginning or end: siltstone group reset sets where a group goes on")
	}
	if err := oneOf("isolation", f.isolation, isolations); err != nil {
		return c, err
	}
	c.out, err = f.print.printer()
	return c, err
}

func (c *consumer) run(ctx context.Context, to *client, w, progress io.Writer) error {
	opts := []kgo.Opt{kgo.KeepControlRecords(), kgo.KeepRetryableFetchErrors()} // see wants, readFailure
	if c.committed {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if c.group != "" {
		return c.runInGroup(ctx, to, w, opts)
	}
	c.stall = &stall{say: sayOn(progress, "records", "none comes, and the log is to have more")}
	cl, err := to.open(ctx, append(opts, kgo.WithLogger(&c.stall.heard))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	spans, err := c.plan(ctx, kadm.NewClient(cl))
	if err != nil {
		return err
	}
	return c.read(ctx, cl, spans, w, progress)
}

// wants says whether a record is to be printed. Control records come too, for
// the end of a partition may be one, and are never printed.
func (c *consumer) wants(r *kgo.Record) bool {
	switch {
	case r.Attrs.IsControl(),
		c.from.at == atOffset && r.Offset < c.from.n,
		c.from.at == atTime && r.Timestamp.UnixMilli() < c.from.n,
		c.key != nil && (r.Key == nil || !bytes.Equal(r.Key, c.key)):
		return false
	}
	return true
}
