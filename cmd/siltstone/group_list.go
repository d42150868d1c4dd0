package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// groupStates are the states that --state takes, by Kafka's names.
var groupStates = []string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}

// listedGroup is a group as --json prints it.
type listedGroup struct {
	Group    string `json:"group"`
	State    string `json:"state"`
	Type     string `json:"type"`     // classic
	Protocol string `json:"protocol"` // consumer; empty where only offsets were ever committed
	Members  int    `json:"members"`
}

func newGroupList(c *client) *cobra.Command {
	var json bool
	var states []string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List groups, with their states and how many members they have",
		Example: "  siltstone group list\n  siltstone group list --state Stable,PreparingRebalance",
		Args:    takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, err := parseStates(states)
			if err != nil {
				return err
			}
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			groups, err := listGroups(cmd.Context(), adm, wanted)
			switch {
			case err != nil:
				return err
			case json:
				return printJSON(cmd.OutOrStdout(), groups)
			case len(groups) == 0 && len(wanted) > 0:
				fmt.Fprintf(cmd.OutOrStdout(), "no group is %s\n", strings.Join(wanted, " or "))
				return nil
			case len(groups) == 0:
				fmt.Fprintln(cmd.OutOrStdout(), "no groups yet: a consumer with a group.id makes one, such as siltstone consume TOPIC --group NAME")
				return nil
			}
			var rows [][]string
			for _, g := range groups {
				rows = append(rows, []string{g.Group, g.State, orDash(g.Type), orDash(g.Protocol), strconv.Itoa(g.Members)})
			}
			return table(cmd.OutOrStdout(), []string{"GROUP", "STATE", "TYPE", "PROTOCOL", "MEMBERS"}, rows)
		},
	}
	asJSON(cmd, &json)
	cmd.Flags().StringSliceVar(&states, "state", nil, "only groups in these `states`: "+strings.Join(groupStates, ", "))
	completeValues(cmd, "state", groupStates)
	return cmd
}

// parseStates finds Kafka's names of states, however they are capitalized.
func parseStates(given []string) (states []string, err error) {
	for _, s := range given {
		i := slices.IndexFunc(groupStates, func(known string) bool { return strings.EqualFold(known, s) })
		if i < 0 {
			return nil, usagef("--state is of %s, not %q", strings.Join(groupStates, ", "), s)
		}
		states = append(states, groupStates[i])
	}
	return states, nil
}

// listGroups lists groups by name. How many members one has takes a request
// more, in which a group may be gone, or in another state, already.
func listGroups(ctx context.Context, adm *kadm.Client, states []string) ([]listedGroup, error) {
	listed, err := adm.ListGroups(ctx, states...)
	if err != nil {
		return nil, err
	}
	groups := []listedGroup{}
	for some := range slices.Chunk(listed.Sorted(), groupsAtOnce) {
		ids := make([]string, len(some))
		for i, g := range some {
			ids[i] = g.Group
		}
		described, err := adm.DescribeGroups(ctx, ids...)
		if err != nil {
			return nil, err
		}
		for _, g := range some {
			groups = append(groups, listedGroup{g.Group, g.State, g.GroupType, g.ProtocolType, len(described[g.Group].Members)})
		}
	}
	return groups, nil
}

// groupsAtOnce is how many groups one request asks about: there may be more
// than one may have.
const groupsAtOnce = 1000

// orDash is what a table shows.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
