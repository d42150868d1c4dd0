package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lineRules say how a line becomes a record.
type lineRules struct {
	topic     string
	partition int32
	separator string
	headers   []kgo.RecordHeader
}

func newProduce() *cobra.Command {
	var c client
	rules := lineRules{}
	var headers []string
	var compression, acks string
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Write lines from standard input, a record each",
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
			opts, err := producerOptions(compression, acks)
			if err != nil {
				return err
			}
			if rules.partition >= 0 {
				opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			}
			cl, err := c.open(cmd.Context(), opts...)
			if err != nil {
				return err
			}
			defer cl.Close()
			n, err := produceLines(cmd.Context(), cl, cmd.InOrStdin(), rules)
			if err != nil {
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
	return []kgo.Opt{kgo.ProducerBatchCompression(codec), kgo.RequiredAcks(level), kgo.RecordPartitioner(kgo.UniformBytesPartitioner(64<<10, true, true, nil))}, nil
}

// produceLines returns how many lines were acknowledged, and the first error.
func produceLines(ctx context.Context, cl *kgo.Client, in io.Reader, rules lineRules) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	acked := 0
	lines := bufio.NewReaderSize(in, 64<<10)
	for ctx.Err() == nil {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			cl.Produce(ctx, rules.record(bytes.TrimSuffix(line, []byte("\n"))), func(_ *kgo.Record, err error) {
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				acked++
				mu.Unlock()
			})
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			cancel(fmt.Errorf("reading standard input: %w", err))
		}
	}
	// Flush waits for all promises, and one that failed has cancelled. After an
	// interrupt it does not wait: what is left is not acknowledged.
	_ = cl.Flush(ctx)
	mu.Lock()
	defer mu.Unlock()
	return acked, context.Cause(ctx)
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
