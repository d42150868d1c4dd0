package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// dumpedSegment is what --json prints.
type dumpedSegment struct {
	Key     string      `json:"key"`
	Cluster string      `json:"cluster"`
	Created time.Time   `json:"created"`
	Bytes   int         `json:"bytes"`
	Runs    []dumpedRun `json:"runs"`
}

type dumpedRun struct {
	Shard     uint16        `json:"shard"`
	Topic     string        `json:"topic_id"`
	Partition int32         `json:"partition"`
	Offsets   int64         `json:"offsets"`
	Position  int64         `json:"position"`
	Bytes     int64         `json:"bytes"`
	Batches   []dumpedBatch `json:"batches"`
}

type dumpedBatch struct {
	BaseOffset   int64     `json:"base_offset"` // as stamped
	Offsets      int32     `json:"offsets"`
	Epoch        int32     `json:"leader_epoch"`
	MaxTimestamp time.Time `json:"max_timestamp"`
	Codec        string    `json:"codec"`
	ProducerID   int64     `json:"producer_id"`
	BaseSequence int32     `json:"base_sequence"`
	Position     int64     `json:"position"`
	Bytes        int32     `json:"bytes"`
}

func newSegmentDump() *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:     "dump FILE...",
		Short:   "Show the partitions and batches of segments",
		Example: "  siltstone segment dump siltstone-data/objects/*/*/*/*",
		Args:    takes("FILE", true),
		RunE: func(cmd *cobra.Command, files []string) error {
			var all []dumpedSegment
			for _, file := range files {
				b, err := readObject(file)
				if err != nil {
					return err
				}
				d, err := dump(b)
				if err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				all = append(all, d)
			}
			if json {
				return printJSON(cmd.OutOrStdout(), all)
			}
			for _, d := range all {
				if err := printSegment(cmd.OutOrStdout(), d); err != nil {
					return err
				}
			}
			return nil
		},
	}
	asJSON(cmd, &json)
	return cmd
}

func dump(b []byte) (dumpedSegment, error) {
	o, err := segment.Parse(b)
	if err != nil {
		return dumpedSegment{}, err
	}
	d := dumpedSegment{
		Key: o.Header.ID.Key(), Cluster: o.Header.Cluster.String(),
		Created: time.UnixMilli(o.Header.CreatedMS).UTC(), Bytes: len(b),
	}
	for i := range o.Index.Runs {
		r := &o.Index.Runs[i]
		run := dumpedRun{
			Shard: r.Shard, Topic: r.Partition.Topic.String(), Partition: r.Partition.Partition,
			Offsets: r.Offsets, Position: r.Position, Bytes: r.LengthBytes,
		}
		for _, row := range r.Rows {
			h, err := batch.ParseHeader(b[row.Position:][:row.LengthBytes])
			if err != nil {
				return d, fmt.Errorf("batch at %d: %w (siltstone segment verify checks all)", row.Position, err)
			}
			run.Batches = append(run.Batches, dumpedBatch{
				BaseOffset: int64(h.BaseOffset), Offsets: row.Offsets, Epoch: int32(row.Epoch),
				MaxTimestamp: time.UnixMilli(row.MaxTimestamp).UTC(), Codec: h.Attributes.Codec().String(),
				ProducerID: row.ProducerID, BaseSequence: row.BaseSequence,
				Position: row.Position, Bytes: row.LengthBytes,
			})
		}
		d.Runs = append(d.Runs, run)
	}
	return d, nil
}

func printSegment(w io.Writer, d dumpedSegment) error {
	fmt.Fprintf(w, "%s  %d bytes, made %s, cluster %s\n", d.Key, d.Bytes, d.Created.Format(time.RFC3339Nano), d.Cluster)
	for _, r := range d.Runs {
		fmt.Fprintf(w, "topic id %s, partition %d (shard %d): %s in %d bytes at %d\n",
			r.Topic, r.Partition, r.Shard, plural(r.Offsets, "offset"), r.Bytes, r.Position)
		var rows [][]string
		for _, b := range r.Batches {
			rows = append(rows, []string{
				"  " + strconv.FormatInt(b.BaseOffset, 10), strconv.Itoa(int(b.Offsets)), strconv.Itoa(int(b.Epoch)),
				b.MaxTimestamp.Format(time.RFC3339Nano), b.Codec, strconv.FormatInt(b.Position, 10), strconv.Itoa(int(b.Bytes)),
			})
		}
		if err := table(w, []string{"  BASE", "OFFSETS", "EPOCH", "MAX TIME", "CODEC", "POSITION", "BYTES"}, rows); err != nil {
			return err
		}
	}
	return nil
}
