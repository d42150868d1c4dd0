package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/check"
)

func newCheck() *cobra.Command {
	var dir string
	var r remote
	var json bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Verify a whole cluster: ledgers, folds, checkpoints, objects, batches",
		Long: `Verify a whole cluster that is not running: that in the folder --data, or that in
the bucket and the table that flags, the environment or a file name.

Every ledger's chain of hashes, what it folds to, every checkpoint, every object
that holds records and every batch in it are read and compared, with what is
remembered of groups and idempotent producers. Objects that nothing refers to
(uploads that a crash cut off from their entry, and what is not collected yet)
are counted, and are no error. Nothing is changed. The last line of the output
says whether all is well.`,
		Example: "  siltstone check\n" +
			"  siltstone check --data /var/tmp/silt --json | jq .problems\n" +
			"  siltstone check --bucket s3://my-bucket --coordinator dynamodb://my-table",
		Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inFolder := cmd.Flags().Changed("data")
			if inFolder && (cmd.Flags().Changed("bucket") || cmd.Flags().Changed("coordinator")) {
				return usagef("a cluster is in a folder (--data), or in a bucket and a table")
			}
			if err := readSettings(cmd); err != nil {
				return err
			}
			if inFolder || r.bucket == "" && r.coordinator == "" {
				return checkFolder(cmd.Context(), dir, json, cmd.OutOrStdout())
			}
			return r.checkStores(cmd.Context(), json, cmd.OutOrStdout())
		},
	}
	r.register(cmd)
	registerSettings(cmd)
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
	report, err := verify(ctx, s.coordinator, s.bucket)
	if err != nil {
		return explainFolder(dir, err)
	}
	return tell(w, "data folder "+dir, report, json)
}

// checkStores is for a cluster in a bucket and a table.
func (r *remote) checkStores(ctx context.Context, json bool, w io.Writer) (err error) {
	s, err := r.open(ctx, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := s.find(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", r.cluster, err)
	}
	report, err := verify(ctx, s.coordinator, s.bucket)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", r.cluster, err)
	}
	return tell(w, r.bucket, report, json)
}

func verify(ctx context.Context, c coordinator.Coordinator, b bucket.Bucket) (*check.Report, error) {
	objects, stop, err := watchBucket(ctx, b, os.Stderr)
	if err != nil {
		return nil, err
	}
	defer stop()
	return check.Run(ctx, check.Options{Coordinator: c, Bucket: objects, Now: time.Now()})
}

// tell prints a report; that it found something is an error.
func tell(w io.Writer, where string, report *check.Report, json bool) (err error) {
	if json {
		err = printJSON(w, report)
	} else {
		printReport(w, where, report)
	}
	if err == nil && len(report.Problems) > 0 {
		err = fmt.Errorf("%s is %s (docs/troubleshooting.md says what to do)", where, verdict(report))
	}
	return err
}

// printedOrphans are named at most: a bucket may have very many.
const printedOrphans = 10

// printReport says what there is, then what is wrong, and in its last line
// whether anything is.
func printReport(w io.Writer, where string, r *check.Report) {
	entries, checkpoints := uint64(0), 0
	for _, l := range r.Ledgers {
		entries += uint64(l.Last)
		if l.Checkpoint > 0 {
			checkpoints++
		}
	}
	fmt.Fprintf(w, "cluster %s in %s\n", r.Cluster, strings.TrimPrefix(where, "data folder "))
	fmt.Fprintf(w, "%s: %d entries, %s\n", plural(len(r.Ledgers), "ledger"), entries, plural(checkpoints, "checkpoint"))
	fmt.Fprintf(w, "%s: %s\n", plural(r.Topics, "topic"), plural(r.Partitions, "partition"))
	fmt.Fprintf(w, "%s: %s in %s (%s)\n", plural(r.Records, "record"), plural(r.Batches, "batch"), plural(r.Objects, "object"), humanize.IBytes(uint64(r.Bytes)))
	fmt.Fprintf(w, "%s: %s\n", plural(r.Groups, "group"), plural(r.Offsets, "committed offset"))
	if n := len(r.Orphans); n > 0 {
		fmt.Fprintf(w, "%s that nothing refers to, which is no error:\n", plural(n, "object"))
		for _, o := range r.Orphans[:min(n, printedOrphans)] {
			fmt.Fprintf(w, "  %s (%s)\n", o.Key, humanize.IBytes(uint64(o.SizeBytes)))
		}
		if n > printedOrphans {
			fmt.Fprintf(w, "  and %d more: --json has all\n", n-printedOrphans)
		}
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "PROBLEM %s\n", p)
	}
	for _, u := range r.Unreadable {
		fmt.Fprintf(w, "UNREADABLE %s\n", u)
	}
	fmt.Fprintln(w, verdict(r))
}

// verdict is the report in a few words.
func verdict(r *check.Report) string {
	if len(r.Problems) == 0 {
		return "clean: all that belongs here is here, and whole"
	}
	text := "damaged: " + plural(len(r.Problems), "problem")
	lost := siltstone.Offset(0)
	for _, u := range r.Unreadable {
		lost += u.Last - u.First + 1
	}
	if lost > 0 {
		text += fmt.Sprintf(", and %s cannot be read", plural(lost, "offset"))
	}
	return text
}
