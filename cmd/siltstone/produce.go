package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	defaultBatchBytes = 1_000_012   // the client's own
	maxBatchBytes     = 100_000_000 // so that a request with it is not over 100 MiB
	// bufferBytes bounds what is read and not acknowledged.
	bufferBytes = 256 << 20
)

var (
	codecs     = []string{"none", "gzip", "snappy", "lz4", "zstd"}
	acksLevels = []string{"all", "leader", "none"}
	// acksNumbers are Kafka's own for them.
	acksNumbers = map[string]string{"-1": "all", "1": "leader", "0": "none"}
)

// producer is a run of produce.
type producer struct {
	topic             string
	rules             recordRules
	compression, acks string
	limitBytes        atomic.Int32 // of a batch: the client asks when it is first given a record
	sent, acked       atomic.Int64 // records
	stall             stall
}

func newProduce() *cobra.Command {
	var c client
	var p producer
	var headers, files []string
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Write lines from standard input, or whole files, a record each",
		Long: `Write lines from standard input, or whole files, a record each.

The topic must be there: siltstone topic create makes it. A line may be as long
as the topic's max.message.bytes allows, less what a batch needs besides.

With --key-separator a line is a key, the separator and a value; the first
separator counts, and a line without one is an error. In it \t, \n, \xNN and \\
are as in Go. Otherwise records have no key, or that of --key.

With --json a line is an object as siltstone consume --json prints it:

  {"key": "k", "value": "v", "headers": [["h", "1"]]}

Only value is needed. Bytes that are not UTF-8 stand in key_base64 and
value_base64. A timestamp, in milliseconds since 1970, is kept; the
partition is kept with --keep-partitions; the offset is passed over.

Where a line is wrong, the error names it, and those before it are written. After
any other error what was not acknowledged may be written or not. As long as the
server takes no records, produce waits: after some seconds it says for what.`,
		Example: "  echo hello | siltstone produce greetings\n" +
			"  siltstone produce orders --key-separator : --compression zstd < orders.txt\n" +
			"  siltstone consume orders --exit --json | siltstone produce copy --json --keep-partitions\n" +
			"  siltstone produce photos --key cat --header type=image/png --file cat.png\n" +
			"  siltstone produce documents --file *.xml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(files) > 0 && len(args) > 1 {
				return nil // as the shell makes them of --file *.xml
			}
			return takes("TOPIC", false)(cmd, args)
		},
		ValidArgsFunction: c.completeTopics(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.topic = args[0]
			files = append(files, args[1:]...)
			if err := p.rules.check(headers, len(files) > 0, cmd.Flags().Changed("key")); err != nil {
				return err
			}
			return p.run(cmd, &c, files)
		},
	}
	c.register(cmd)
	f := cmd.Flags()
	f.Int32VarP(&p.rules.partition, "partition", "p", -1, "`number` of the partition; -1 is by key, or any")
	f.StringVarP(&p.rules.separator, "key-separator", "K", "", "the `text` between key and value in a line, such as : or \\t, see above")
	f.StringVar(&p.rules.keyText, "key", "", "the `key` of every record")
	f.StringArrayVarP(&headers, "header", "H", nil, "a header of every record as `name=value`; may be repeated")
	f.StringArrayVar(&files, "file", nil, "a `file` that is a record, whole; may be repeated, and more may follow")
	f.BoolVar(&p.rules.json, "json", false, "read an object a line, see above")
	f.BoolVar(&p.rules.keepPartitions, "keep-partitions", false, "with --json: write each record to the partition that it names")
	f.StringVarP(&p.compression, "compression", "z", "none", "`codec` of batches: "+strings.Join(codecs, ", "))
	f.StringVar(&p.acks, "acks", "all", "`who` has a record before it counts as written: all (or -1), leader (1) or none (0)")
	completeValues(cmd, "compression", codecs)
	completeValues(cmd, "acks", acksLevels)
	return cmd
}

func (p *producer) run(cmd *cobra.Command, to *client, files []string) error {
	p.limitBytes.Store(defaultBatchBytes)
	opts, err := p.options()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	cl, err := to.open(ctx, opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	limitBytes, err := p.ask(ctx, kadm.NewClient(cl))
	if err != nil {
		return err
	}
	p.limitBytes.Store(int32(limitBytes))
	in := input{rules: p.rules, limitBytes: limitBytes, stdin: cmd.InOrStdin(), files: files}
	if len(files) == 0 && isTerminal(in.stdin) {
		fmt.Fprintln(cmd.ErrOrStderr(), "siltstone: a line is a record, and Ctrl-D ends")
	}
	stop := showProgress(cmd.ErrOrStderr(), progressBytes, in.size(), in.done.Load)
	p.stall.say = sayOn(cmd.ErrOrStderr(), "the server to take records", "it has not answered yet")
	err = p.send(ctx, cl, &in)
	stop()
	n := p.acked.Load()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted after %s", plural(n, "acknowledged record"))
	case errors.Is(err, errInput):
		return fmt.Errorf("after %s: %w", plural(n, "acknowledged record"), err)
	case err != nil:
		return fmt.Errorf("after %s: %w", plural(n, "acknowledged record"), p.explain(err))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s written to %s\n", plural(n, "record"), p.topic)
	return nil
}

// options are the client's.
func (p *producer) options() ([]kgo.Opt, error) {
	if level, ok := acksNumbers[p.acks]; ok {
		p.acks = level
	}
	if err := errors.Join(oneOf("compression", p.compression, codecs), oneOf("acks", p.acks, acksLevels)); err != nil {
		return nil, err
	}
	codec := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[p.compression]
	acks := map[string]kgo.Acks{"all": kgo.AllISRAcks(), "leader": kgo.LeaderAck(), "none": kgo.NoAck()}[p.acks]
	partitioner := kgo.UniformBytesPartitioner(64<<10, true, true, nil)
	if p.rules.partition >= 0 || p.rules.keepPartitions {
		partitioner = kgo.ManualPartitioner()
	}
	opts := []kgo.Opt{
		kgo.ProducerBatchCompression(codec), kgo.RequiredAcks(acks), kgo.RecordPartitioner(partitioner),
		kgo.WithLogger(&p.stall.heard), kgo.MaxBufferedBytes(bufferBytes), kgo.ProducerBatchMaxBytesFn(func(string) int32 { return p.limitBytes.Load() }),
	}
	if p.acks != "all" {
		opts = append(opts, kgo.DisableIdempotentWrite()) // it needs them all
	}
	return opts, nil
}

// ask finds out how long a batch of the topic may be.
func (p *producer) ask(ctx context.Context, adm *kadm.Client) (limitBytes int, err error) {
	details, err := adm.ListTopics(ctx, p.topic)
	if err != nil {
		return 0, err
	}
	d := details[p.topic]
	if d.Err != nil {
		return 0, explain(p.topic, d.Err, "")
	}
	if _, ok := d.Partitions[p.rules.partition]; !ok && p.rules.partition >= 0 {
		return 0, fmt.Errorf("topic %q has no partition %d: it has %s", p.topic, p.rules.partition, plural(len(d.Partitions), "partition"))
	}
	configs, err := describeTopicConfigs(ctx, adm, p.topic)
	if err != nil {
		return defaultBatchBytes, nil //nolint:nilerr // some clusters do not tell everybody; then the client's own limit holds
	}
	for _, c := range configs {
		if n, err := strconv.Atoi(c.Value); err == nil && c.Name == "max.message.bytes" {
			return min(max(n, 512), maxBatchBytes), nil // 512 is the least that the client takes
		}
	}
	return defaultBatchBytes, nil
}

// explain says what an error of the server means for the record that it is about.
func (p *producer) explain(err error) error {
	if at, ok := errors.AsType[*recordError](err); ok {
		return fmt.Errorf("%s: %w", at.where, explain(p.topic, at.err, ""))
	}
	return explain(p.topic, err, "")
}
