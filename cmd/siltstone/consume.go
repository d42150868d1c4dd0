package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type consumer struct {
	topic     string
	partition int32
	from      string
	first     int64 // the offset that from is; -1: none
	count     int
	toEnd     bool
	keys      bool
	json      bool
}

func newConsume() *cobra.Command {
	var c client
	var read consumer
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Print the records of a topic, and go on as they come",
		Example: "  siltstone consume orders\n" +
			"  siltstone consume orders --exit --json | jq .value\n" +
			"  siltstone consume orders --partition 0 --from 1200 --count 10",
		Args: takes("TOPIC", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			read.topic = args[0]
			return read.run(cmd.Context(), &c, cmd.OutOrStdout())
		},
	}
	c.register(cmd)
	f := cmd.Flags()
	f.Int32VarP(&read.partition, "partition", "p", -1, "partition; -1 is all")
	f.StringVarP(&read.from, "from", "o", "beginning", "beginning, end, or an offset")
	f.IntVarP(&read.count, "count", "n", 0, "stop after so many records; 0 is never")
	f.BoolVarP(&read.toEnd, "exit", "e", false, "stop at the end, as it is now")
	f.BoolVarP(&read.keys, "keys", "k", false, "print key, tab, value")
	f.BoolVar(&read.json, "json", false, "print an object a line: offset, time, key, value, headers")
	return cmd
}

func (c *consumer) run(ctx context.Context, to *client, w io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	cl, err := to.open(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	ends, err := adm.ListEndOffsets(ctx, c.topic)
	if err != nil {
		return err
	}
	if err := ends.Error(); err != nil {
		return explain(c.topic, err, "")
	}
	starts, err := adm.ListStartOffsets(ctx, c.topic)
	if err != nil {
		return err
	}
	wanted, left, err := c.plan(starts, ends)
	if err != nil {
		return err
	}
	if c.toEnd && len(left) == 0 {
		return nil
	}
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{c.topic: wanted})
	return c.poll(ctx, cl, w, left)
}

// check refuses wrong flags, and finds out what from is.
func (c *consumer) check() error {
	c.first = -1
	n, err := strconv.ParseInt(c.from, 10, 64)
	switch {
	case err == nil && n >= 0:
		c.first = n
	case c.from != "beginning" && c.from != "end":
		return fmt.Errorf("--from is beginning, end or an offset, not %q", c.from)
	case c.count < 0:
		return fmt.Errorf("--count %d is below 0", c.count)
	}
	return checkPartition(c.partition)
}

// checkPartition refuses what is neither a partition nor -1.
func checkPartition(n int32) error {
	if n < -1 {
		return fmt.Errorf("--partition is 0 or above, or -1, not %d", n)
	}
	return nil
}

// plan says where to begin in each partition, and which have records until
// their end as it is now: that end.
func (c *consumer) plan(starts, ends kadm.ListedOffsets) (wanted map[int32]kgo.Offset, left map[int32]int64, err error) {
	wanted, left = map[int32]kgo.Offset{}, map[int32]int64{}
	last := int64(-1)
	ends.Each(func(end kadm.ListedOffset) {
		if c.partition >= 0 && end.Partition != c.partition {
			return
		}
		first, _ := starts.Lookup(c.topic, end.Partition)
		begin := max(first.Offset, c.first)
		if c.from == "end" {
			begin = end.Offset
		}
		// Where a partition ends before --from, poll passes over what comes until then.
		wanted[end.Partition] = kgo.NewOffset().At(min(begin, end.Offset))
		if begin < end.Offset {
			left[end.Partition] = end.Offset
		}
		last = max(last, end.Offset)
	})
	switch {
	case len(wanted) == 0:
		return nil, nil, fmt.Errorf("topic %q has no partition %d", c.topic, c.partition)
	case c.first > last && c.partition >= 0:
		return nil, nil, fmt.Errorf("partition %d of topic %q ends at offset %d, before --from %d", c.partition, c.topic, last, c.first)
	case c.first > last:
		return nil, nil, fmt.Errorf("no partition of topic %q reaches --from %d: the longest ends at offset %d", c.topic, c.first, last)
	}
	return wanted, left, nil
}

// poll prints until the context, the count or the end says stop.
func (c *consumer) poll(ctx context.Context, cl *kgo.Client, w io.Writer, left map[int32]int64) error {
	out := bufio.NewWriter(w)
	for printed, done := 0, false; !done; {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an interrupt is how it ends
		}
		if errs := fetches.Errors(); len(errs) > 0 {
			return explain(c.topic, errs[0].Err, "")
		}
		for records := fetches.RecordIter(); !records.Done() && !done; {
			r := records.Next()
			if r.Offset < c.first {
				continue
			}
			if err := c.print(out, r); err != nil {
				return err
			}
			printed++
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
			done = printed == c.count || c.toEnd && len(left) == 0
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (c *consumer) print(w io.Writer, r *kgo.Record) error {
	if c.json {
		line, err := json.Marshal(printable(r))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", line)
		return err
	}
	if c.keys {
		if _, err := fmt.Fprintf(w, "%s\t", r.Key); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s\n", r.Value)
	return err
}

// printedRecord is a record for --json. Bytes that are not UTF-8 stand in the
// fields that end in _base64; null stays null.
type printedRecord struct {
	Partition   int32           `json:"partition"`
	Offset      int64           `json:"offset"`
	Time        time.Time       `json:"time"`
	Key         *string         `json:"key"`
	KeyBase64   string          `json:"key_base64,omitempty"`
	Value       *string         `json:"value"`
	ValueBase64 string          `json:"value_base64,omitempty"`
	Headers     []printedHeader `json:"headers,omitempty"`
}

type printedHeader struct {
	Name        string  `json:"name"`
	Value       *string `json:"value"`
	ValueBase64 string  `json:"value_base64,omitempty"`
}

func printable(r *kgo.Record) printedRecord {
	p := printedRecord{Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp.UTC()}
	p.Key, p.KeyBase64 = text(r.Key)
	p.Value, p.ValueBase64 = text(r.Value)
	for _, h := range r.Headers {
		ph := printedHeader{Name: h.Key}
		ph.Value, ph.ValueBase64 = text(h.Value)
		p.Headers = append(p.Headers, ph)
	}
	return p
}

func text(b []byte) (*string, string) {
	switch {
	case b == nil:
		return nil, ""
	case utf8.Valid(b):
		s := string(b)
		return &s, ""
	}
	return nil, base64.StdEncoding.EncodeToString(b)
}
