package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func newCluster() *cobra.Command {
	c := &client{}
	cmd := parent("cluster", "Describe a cluster, and alter its settings",
		"  siltstone cluster describe\n  siltstone cluster alter --config num.partitions=3",
		newClusterInit(), newClusterDescribe(c), newClusterAlter(c))
	c.register(cmd)
	return cmd
}

// describedCluster is a cluster as --json prints it.
type describedCluster struct {
	ID         string            `json:"id"`
	Controller int32             `json:"controller"`
	Nodes      []describedNode   `json:"nodes"`
	Configs    []describedConfig `json:"configs"`
}

type describedNode struct {
	Node    int32   `json:"node"`
	Address string  `json:"address"`
	Rack    *string `json:"rack"`
}

func newClusterDescribe(c *client) *cobra.Command {
	var json, all bool
	var r remote
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show the id of a cluster, its nodes and its settings; or what is in its stores",
		Long: `Show the id of a cluster, its nodes and its settings, as an agent says them.

With --bucket and --coordinator no agent is asked, but the stores: which cluster
they hold, that they belong together, and which agents it has, as their registers
say: one that has died is among them until another has seen that it is silent.`,
		Example: "  siltstone cluster describe\n  siltstone cluster describe --all\n" +
			"  siltstone cluster describe --bucket s3://my-bucket --coordinator dynamodb://my-table",
		Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.bucket != "" || r.coordinator != "" {
				return r.describe(cmd.Context(), cmd.OutOrStdout(), json)
			}
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			described, err := describeCluster(cmd.Context(), adm)
			switch {
			case err != nil:
				return err
			case json:
				return printJSON(cmd.OutOrStdout(), described)
			}
			return printCluster(cmd.OutOrStdout(), described, all)
		},
	}
	asJSON(cmd, &json)
	r.registerStores(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "settings that are at their default, too")
	return cmd
}

func describeCluster(ctx context.Context, adm *kadm.Client) (d describedCluster, err error) {
	m, err := adm.BrokerMetadata(ctx)
	if err != nil {
		return d, err
	}
	d = describedCluster{ID: m.Cluster, Controller: m.Controller, Nodes: []describedNode{}}
	for _, b := range m.Brokers {
		d.Nodes = append(d.Nodes, describedNode{b.NodeID, fmt.Sprintf("%s:%d", b.Host, b.Port), b.Rack})
	}
	if len(d.Nodes) == 0 {
		return d, fmt.Errorf("cluster %s has no nodes", d.ID)
	}
	resources, err := adm.DescribeBrokerConfigs(ctx, d.Nodes[0].Node) // they are the same for all
	if err != nil {
		return d, err
	}
	for _, r := range resources {
		if r.Err != nil {
			return d, explainCluster(r.Err, r.ErrMessage)
		}
		d.Configs = describedConfigs(r.Configs, kmsg.ConfigSourceDynamicDefaultBrokerConfig)
	}
	return d, nil
}

func printCluster(w io.Writer, d describedCluster, all bool) error {
	fmt.Fprintf(w, "cluster %s, %s, controller %d\n\n", d.ID, plural(len(d.Nodes), "node"), d.Controller)
	var nodes, settings [][]string
	for _, n := range d.Nodes {
		rack := "-"
		if n.Rack != nil {
			rack = *n.Rack
		}
		nodes = append(nodes, []string{strconv.Itoa(int(n.Node)), n.Address, rack})
	}
	for _, c := range d.Configs {
		from := "default"
		if c.Set {
			from = "set"
		}
		if c.Set || all {
			settings = append(settings, []string{c.Name, from, orDash(c.Value)})
		}
	}
	if err := table(w, []string{"NODE", "ADDRESS", "RACK"}, nodes); err != nil || len(settings) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return table(w, []string{"SETTING", "FROM", "VALUE"}, settings)
}

func newClusterAlter(c *client) *cobra.Command {
	var settings configFlags
	cmd := &cobra.Command{
		Use:   "alter",
		Short: "Change settings of a cluster",
		Long: `Change settings of a cluster. They are the same for all its nodes, and give
topics the defaults of their configs.`,
		Example: "  siltstone cluster alter --config num.partitions=3 --config log.retention.ms=86400000\n" +
			"  siltstone cluster alter --delete-config num.partitions",
		Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changes, err := settings.changes()
			if err != nil {
				return err
			}
			if len(changes) == 0 {
				return usagef("give what to change: --config or --delete-config")
			}
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			altered, err := adm.AlterBrokerConfigs(cmd.Context(), changes)
			if err != nil {
				return err
			}
			for _, a := range altered {
				if a.Err != nil {
					return explainCluster(a.Err, a.ErrMessage)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "altered the cluster (%s)\n", strings.Join(describeChanges(changes), ", "))
			return nil
		},
	}
	settings.register(cmd, clusterSettings())
	settings.registerDelete(cmd, clusterSettings())
	return cmd
}

// explainCluster is a server's error about its settings.
func explainCluster(err error, message string) error {
	if message != "" {
		return fmt.Errorf("settings of the cluster: %s (siltstone cluster describe --all shows them)", message)
	}
	return fmt.Errorf("settings of the cluster: %w", err)
}
