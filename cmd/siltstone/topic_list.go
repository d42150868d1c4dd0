package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/siltstone-io/siltstone"
)

// listedTopic is a topic as --json prints it.
type listedTopic struct {
	Name       string `json:"name"`
	ID         string `json:"id"`
	Partitions int    `json:"partitions"`
}

func newTopicList(c *client) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List topics",
		Example: "  siltstone topic list\n  siltstone topic list --json | jq -r '.[].name'",
		Args:    takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			adm, done, err := c.admin(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			details, err := adm.ListTopics(cmd.Context())
			if err != nil {
				return err
			}
			topics := []listedTopic{}
			for _, t := range details.Sorted() {
				if t.Err != nil {
					return explain(t.Topic, t.Err, "")
				}
				topics = append(topics, listedTopic{t.Topic, siltstone.TopicID(t.ID).String(), len(t.Partitions)})
			}
			if json {
				return printJSON(cmd.OutOrStdout(), topics)
			}
			if len(topics) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "no topics yet: siltstone topic create NAME makes one")
				return nil
			}
			var rows [][]string
			for _, t := range topics {
				rows = append(rows, []string{t.Name, strconv.Itoa(t.Partitions), t.ID})
			}
			return table(cmd.OutOrStdout(), []string{"TOPIC", "PARTITIONS", "ID"}, rows)
		},
	}
	asJSON(cmd, &json)
	return cmd
}
