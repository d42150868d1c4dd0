package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func newGroup() *cobra.Command {
	c := &client{}
	cmd := parent("group", "List, describe, reset and delete consumer groups",
		"  siltstone group list\n  siltstone group describe billing",
		newGroupList(c), newGroupDescribe(c), newGroupReset(c), newGroupDelete(c))
	c.register(cmd)
	return cmd
}

// describedMember is a member of a group as --json prints it.
type describedMember struct {
	ID         string  `json:"id"`
	Instance   *string `json:"instance"` // group.instance.id of a static member
	Client     string  `json:"client"`
	Host       string  `json:"host"`
	Partitions int     `json:"partitions"`
}

func (m describedMember) String() string {
	name := m.ID
	if m.Instance != nil {
		name = *m.Instance
	}
	return fmt.Sprintf("%s at %s", name, strings.TrimPrefix(m.Host, "/"))
}

func membersOf(all []kadm.DescribedGroupMember) []describedMember {
	members := make([]describedMember, 0, len(all))
	for _, m := range all {
		d := describedMember{ID: m.MemberID, Instance: m.InstanceID, Client: m.ClientID, Host: m.ClientHost}
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range assigned.Topics {
				d.Partitions += len(t.Partitions)
			}
		}
		members = append(members, d)
	}
	return members
}

// namedMembers is "2 members (a at 10.0.0.1, b at 10.0.0.2)"; of many, the first.
func namedMembers(members []describedMember) string {
	const few = 5
	var names []string
	for _, m := range members[:min(few, len(members))] {
		names = append(names, m.String())
	}
	if len(members) > few {
		names = append(names, "...")
	}
	return fmt.Sprintf("%s (%s)", plural(len(members), "member"), strings.Join(names, ", "))
}

// describeGroup asks for one group; found is false where there is none.
func describeGroup(ctx context.Context, adm *kadm.Client, id string) (g kadm.DescribedGroup, found bool, err error) {
	described, err := adm.DescribeGroups(ctx, id)
	if err != nil {
		return g, false, explainGroup(id, err, "")
	}
	g = described[id]
	switch {
	// Before v6 of the request a group that is not there is a dead one.
	case errors.Is(g.Err, kerr.GroupIDNotFound), g.Err == nil && g.State == "Dead":
		return g, false, nil
	case g.Err != nil:
		return g, false, explainGroup(id, g.Err, g.ErrMessage)
	}
	return g, true, nil
}

// explainGroup says what a server's error about a group means, and what to do.
func explainGroup(id string, err error, message string) error {
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		return fmt.Errorf("there is no group %q: siltstone group list shows all", id)
	case errors.Is(err, kerr.NonEmptyGroup):
		return fmt.Errorf("group %q has members: stop them first, siltstone group describe %s shows who they are", id, id)
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.RebalanceInProgress):
		return fmt.Errorf("group %q has got members meanwhile, and nothing of it is changed: stop them first, siltstone group describe %s shows who they are", id, id)
	case errors.Is(err, kerr.InvalidGroupID):
		return fmt.Errorf("group %q: that is no name of a group", id)
	case message != "":
		return fmt.Errorf("group %q: %s", id, message)
	}
	return fmt.Errorf("group %q: %w", id, err)
}
