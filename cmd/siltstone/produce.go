package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lineRules say how a line becomes a record.
type lineRules struct {
	topic     string
	partition int32
	separator string
	headers   []kgo.RecordHeader

	limitBytes int // of a batch, and so of a line
}

const (
	defaultBatchBytes = 1_000_012   // the client's own
	maxBatchBytes     = 100_000_000 // so that a request with it is not over 100 MiB
)

// ask finds out what the topic allows.
func (r *lineRules) ask(ctx context.Context, adm *kadm.Client) error {
	details, err := adm.ListTopics(ctx, r.topic)
	if err != nil {
		return err
	}
	d := details[r.topic]
	if d.Err != nil {
		return explain(r.topic, d.Err, "")
	}
	if _, ok := d.Partitions[r.partition]; !ok && r.partition >= 0 {
		return fmt.Errorf("topic %q has no partition %d", r.topic, r.partition)
	}
	r.limitBytes = defaultBatchBytes
	configs, err := describeConfigs(ctx, adm, r.topic)
	if err != nil {
		return nil //nolint:nilerr // some clusters do not tell everybody; then the client's own limit holds
	}
	for _, c := range configs {
		if n, err := strconv.Atoi(c.Value); err == nil && c.Name == "max.message.bytes" {
			r.limitBytes = min(max(n, 512), maxBatchBytes) // 512 is the least that the client takes
		}
	}
	return nil
}

func newProduce() *cobra.Command {
	var c client
	var rules lineRules
	var limitBytes atomic.Int32 // of a batch, for the client, which asks when it is first given a record
	limitBytes.Store(defaultBatchBytes)
	var headers []string
	var compression, acks string
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Write lines from standard input, a record each",
		Long: `Write lines from standard input, a record each.

The topic must be there: siltstone topic create makes it. A line may be as long
as the topic's max.message.bytes allows, less what a batch needs besides.`,
		Example: "  echo hello | siltstone produce greetings\n" +
			"  siltstone produce orders --key-separator : --compression zstd < orders.txt",
		Args: takes("TOPIC", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			rules.topic = args[0]
			for _, h := range headers {
				name, value, ok := strings.Cut(h, "=")
				if !ok {
					return fmt.Errorf("--header %s is not name=value", h)
				}
				rules.headers = append(rules.headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
			}
			if err := checkPartition(rules.partition); err != nil {
				return err
			}
			opts, err := producerOptions(compression, acks)
			if err != nil {
				return err
			}
			opts = append(opts, kgo.ProducerBatchMaxBytesFn(func(string) int32 { return limitBytes.Load() }))
			if rules.partition >= 0 {
				opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			}
			cl, err := c.open(cmd.Context(), opts...)
			if err != nil {
				return err
			}
			defer cl.Close()
			if err := rules.ask(cmd.Context(), kadm.NewClient(cl)); err != nil {
				return err
			}
			limitBytes.Store(int32(rules.limitBytes))
			n, err := produceLines(cmd.Context(), cl, cmd.InOrStdin(), rules)
			switch {
			case cmd.Context().Err() != nil:
				return fmt.Errorf("interrupted after %s", plural(n, "acknowledged record"))
			case errors.Is(err, errInput):
				return fmt.Errorf("after %s: %w", plural(n, "acknowledged record"), err)
			case err != nil:
				return fmt.Errorf("after %s: %w", plural(n, "acknowledged record"), explain(rules.topic, err, ""))
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s written to %s\n", plural(n, "record"), rules.topic)
			return nil
		},
	}
	c.register(cmd)
	f := cmd.Flags()
	f.Int32VarP(&rules.partition, "partition", "p", -1, "partition; -1 is by key, or any")
	f.StringVarP(&rules.separator, "key-separator", "K", "", "what parts key and value in a line; empty is no keys")
	f.StringArrayVarP(&headers, "header", "H", nil, "a header as `name=value`; may be repeated")
	f.StringVarP(&compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	f.StringVar(&acks, "acks", "all", "all, leader or none")
	return cmd
}

func producerOptions(compression, acks string) ([]kgo.Opt, error) {
	codec, ok := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[compression]
	if !ok {
		return nil, fmt.Errorf("--compression is none, gzip, snappy, lz4 or zstd, not %q", compression)
	}
	level, ok := map[string]kgo.Acks{"all": kgo.AllISRAcks(), "leader": kgo.LeaderAck(), "none": kgo.NoAck()}[acks]
	if !ok {
		return nil, fmt.Errorf("--acks is all, leader or none, not %q", acks)
	}
	opts := []kgo.Opt{kgo.ProducerBatchCompression(codec), kgo.RequiredAcks(level), kgo.RecordPartitioner(kgo.UniformBytesPartitioner(64<<10, true, true, nil))}
	if level != kgo.AllISRAcks() {
		opts = append(opts, kgo.DisableIdempotentWrite()) // it needs them all
	}
	return opts, nil
}

// errInput is an error of what is read, and not of the server.
var errInput = errors.New("standard input")

// produceLines returns how many lines were acknowledged, and the first error.
func produceLines(ctx context.Context, cl *kgo.Client, in io.Reader, rules lineRules) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	acked := 0
	lines := make(chan []byte, 64)
	go func() { // by itself, as no interrupt ends a read of a terminal
		defer close(lines)
		if err := readLines(ctx, in, rules.limitBytes, lines); err != nil {
			cancel(fmt.Errorf("%w: %w", errInput, err))
		}
	}()
	for more := true; more; {
		var line []byte
		select {
		case line, more = <-lines:
		case <-ctx.Done():
			more = false
		}
		if !more {
			break
		}
		cl.Produce(ctx, rules.record(line), func(_ *kgo.Record, err error) {
			if err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			acked++
			mu.Unlock()
		})
	}
	// Flush waits for all promises, and one that failed has cancelled. After an
	// interrupt it does not wait: what is left is not acknowledged.
	_ = cl.Flush(ctx)
	mu.Lock()
	defer mu.Unlock()
	return acked, context.Cause(ctx)
}

// readLines hands on one line after the other, without its end.
func readLines(ctx context.Context, in io.Reader, limitBytes int, lines chan<- []byte) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for n := 1; ; n++ {
		var line []byte
		part, err := r.ReadSlice('\n')
		for ; errors.Is(err, bufio.ErrBufferFull) && len(line) <= limitBytes; part, err = r.ReadSlice('\n') {
			line = append(line, part...)
		}
		line = append(line, part...)
		if len(line) > limitBytes+1 {
			return fmt.Errorf("line %d is longer than the %d bytes that the topic's max.message.bytes allows", n, limitBytes)
		}
		if len(line) > 0 {
			select {
			case lines <- bytes.TrimSuffix(line, []byte("\n")):
			case <-ctx.Done():
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (r lineRules) record(line []byte) *kgo.Record {
	rec := &kgo.Record{Topic: r.topic, Value: line, Headers: r.headers}
	if r.partition >= 0 {
		rec.Partition = r.partition
	}
	if r.separator != "" {
		if key, value, ok := bytes.Cut(line, []byte(r.separator)); ok {
			rec.Key, rec.Value = key, value
		}
	}
	return rec
}
