package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/siltstone-io/siltstone/tiered/check"
)

func newCheck() *cobra.Command {
	var dir string
	var json bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Verify a whole cluster: ledgers, folds, checkpoints, objects, batches",
		Long: `Verify a whole cluster that is not running.

Every ledger's chain of hashes, what it folds to, every checkpoint, every object
that holds records and every batch in it are read and compared, with what is
remembered of groups and idempotent producers. Objects that nothing refers to
(uploads that a crash cut off from their entry, and what is not collected yet)
are counted, and are no error. Nothing is changed.`,
		Example: "  siltstone check\n  siltstone check --data /var/tmp/silt --json | jq .problems",
		Args:    takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return checkFolder(cmd.Context(), dir, json, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&dir, "data", defaultFolder, "data `folder` of a cluster that is stopped")
	asJSON(cmd, &json)
	return cmd
}

func checkFolder(ctx context.Context, dir string, json bool, w io.Writer) (err error) {
	if err := checkFolderName(dir); err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	s, err := openStoresForReading(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	objects, stop, err := watchBucket(ctx, s.bucket, os.Stderr)
	if err != nil {
		return explainFolder(dir, err)
	}
	report, err := check.Run(ctx, check.Options{Coordinator: s.coordinator, Bucket: objects, Now: time.Now()})
	stop()
	if err != nil {
		return explainFolder(dir, err)
	}
	if json {
		err = printJSON(w, report)
	} else {
		err = printReport(w, dir, report)
	}
	if err == nil && len(report.Problems) > 0 {
		err = fmt.Errorf("%s in %s", plural(len(report.Problems), "problem"), dir)
	}
	return err
}

func printReport(w io.Writer, dir string, r *check.Report) error {
	fmt.Fprintf(w, "cluster %s in %s\n", r.Cluster, dir)
	var rows [][]string
	for _, l := range r.Ledgers {
		checkpoint := "-"
		if l.Checkpoint > 0 {
			checkpoint = strconv.FormatUint(uint64(l.Checkpoint), 10)
		}
		rows = append(rows, []string{l.Name, strconv.FormatUint(uint64(l.Last), 10), strconv.FormatUint(uint64(l.Floor), 10), checkpoint})
	}
	if err := table(w, []string{"LEDGER", "LAST", "FLOOR", "CHECKPOINT"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, %s; %s in %s in %s (%s); %s, %s\n", plural(r.Topics, "topic"), plural(r.Partitions, "partition"),
		plural(r.Records, "record"), plural(r.Batches, "batch"), plural(r.Objects, "object"), humanize.IBytes(uint64(r.Bytes)),
		plural(r.Groups, "group"), plural(r.Offsets, "committed offset"))
	if len(r.Orphans) > 0 {
		fmt.Fprintf(w, "%s that nothing refers to, which is no error:\n", plural(len(r.Orphans), "object"))
		for _, o := range r.Orphans {
			fmt.Fprintf(w, "  %s (%s)\n", o.Key, humanize.IBytes(uint64(o.SizeBytes)))
		}
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "PROBLEM %s\n", p)
	}
	for _, u := range r.Unreadable {
		fmt.Fprintf(w, "UNREADABLE %s\n", u)
	}
	if len(r.Problems) == 0 {
		fmt.Fprintln(w, "clean")
	}
	return nil
}
