package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
)

// deletedGroup is a group as --json prints it.
type deletedGroup struct {
	Group string `json:"group"`
}

func newGroupDelete(c *client) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:               "delete GROUP...",
		Short:             "Delete groups without members, and the offsets that they have committed",
		Example:           "  siltstone group delete billing",
		Args:              takes("GROUP", true),
		ValidArgsFunction: c.completeGroups(0),
		RunE: func(cmd *cobra.Command, ids []string) error {
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			var deleted []deletedGroup
			for _, id := range ids {
				gone, err := adm.DeleteGroup(cmd.Context(), id)
				if errors.Is(err, kerr.NonEmptyGroup) {
					// Who they are, as long as they are there; what is refused stays refused.
					if g, found, err := describeGroup(cmd.Context(), adm, id); err == nil && found && len(g.Members) > 0 {
						return fmt.Errorf("group %q has %s: stop them first", id, namedMembers(membersOf(g.Members)))
					}
				}
				if err != nil {
					return explainGroup(id, err, gone.ErrMessage)
				}
				deleted = append(deleted, deletedGroup{id})
				if !json {
					fmt.Fprintf(cmd.OutOrStdout(), "deleted %s\n", id)
				}
			}
			if json {
				return printJSON(cmd.OutOrStdout(), deleted)
			}
			return nil
		},
	}
	asJSON(cmd, &json)
	return cmd
}
