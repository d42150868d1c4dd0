package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"
)

// begunCluster is a cluster as --json prints it.
type begunCluster struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

func newClusterInit() *cobra.Command {
	var r remote
	var json bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Begin a cluster: make its bucket and its table, and stamp both",
		Long: `Begin a cluster: make its bucket and its table, where they are missing, and stamp
both with the cluster's new id. Stores of another cluster are refused, and so is
a bucket that does not honour conditional writes. Done again, it changes nothing.

Settings may come from the environment too (SILTSTONE_BUCKET), or from a file.`,
		Example: "  siltstone cluster init --bucket s3://my-bucket --coordinator dynamodb://my-table\n" +
			"  . localstack/run/env && siltstone cluster init",
		Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := readSettings(cmd); err != nil {
				return err
			}
			stores, err := r.open(cmd.Context(), slog.New(slog.DiscardHandler), nil)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stores.Close()) }()
			id, err := stores.init(cmd.Context())
			switch {
			case err != nil:
				return fmt.Errorf("cluster %s: %w", r.cluster, err)
			case json:
				return printJSON(cmd.OutOrStdout(), begunCluster{r.cluster, id.String()})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "cluster %s has the id %s\n", r.cluster, id)
			return nil
		},
	}
	r.register(cmd)
	registerSettings(cmd)
	asJSON(cmd, &json)
	return cmd
}

// describe prints what the stores hold.
func (r *remote) describe(ctx context.Context, w io.Writer, json bool) (err error) {
	r.cluster = defaultCluster // describe finds the name
	stores, err := r.open(ctx, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	d, err := stores.describe(ctx)
	if err != nil {
		return err
	}
	d.Bucket, d.Coordinator = r.bucket, r.coordinator
	if json {
		return printJSON(w, d)
	}
	fmt.Fprintf(w, "cluster %s, with the id %s\n\n", d.Name, d.ID)
	if err := table(w, []string{"PART", "WHERE"}, [][]string{{"bucket", d.Bucket}, {"coordinator", d.Coordinator}}); err != nil {
		return err
	}
	if len(d.Agents) == 0 {
		_, err := fmt.Fprintln(w, "\nno agent has a register")
		return err
	}
	var rows [][]string
	for _, a := range d.Agents {
		rows = append(rows, []string{strconv.Itoa(int(a.Node)), a.Address, orDash(a.Peer), orDash(a.Zone), a.Incarnation})
	}
	fmt.Fprintln(w)
	return table(w, []string{"NODE", "KAFKA", "PEER", "ZONE", "INCARNATION"}, rows)
}
