package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
)

func newTopicDelete(c *client) *cobra.Command {
	return &cobra.Command{
		Use:     "delete TOPIC...",
		Short:   "Delete topics and their records",
		Example: "  siltstone topic delete orders",
		Args:    takes("TOPIC", true),
		RunE: func(cmd *cobra.Command, names []string) error {
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			for _, name := range names {
				gone, err := adm.DeleteTopic(cmd.Context(), name)
				switch {
				case errors.Is(err, kerr.UnknownTopicOrPartition):
					return fmt.Errorf("there is no topic %q: siltstone topic list shows all", name)
				case err != nil:
					return explain(name, err, gone.ErrMessage)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "deleted %s\n", name)
			}
			return nil
		},
	}
}
