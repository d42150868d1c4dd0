package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
)

// deletedTopic is a topic as --json prints it.
type deletedTopic struct {
	Name string `json:"name"`
}

func newTopicDelete(c *client) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:               "delete TOPIC...",
		Short:             "Delete topics and their records",
		Example:           "  siltstone topic delete orders",
		Args:              takes("TOPIC", true),
		ValidArgsFunction: c.completeTopics(0),
		RunE: func(cmd *cobra.Command, names []string) error {
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			var deleted []deletedTopic
			for _, name := range names {
				gone, err := adm.DeleteTopic(cmd.Context(), name)
				switch {
				case errors.Is(err, kerr.UnknownTopicOrPartition):
					return fmt.Errorf("there is no topic %q: siltstone topic list shows all", name)
				case err != nil:
					return explain(name, err, gone.ErrMessage)
				}
				deleted = append(deleted, deletedTopic{name})
				if !json {
					fmt.Fprintf(cmd.OutOrStdout(), "deleted %s\n", name)
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
