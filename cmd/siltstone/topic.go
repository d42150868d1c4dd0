package main

import "github.com/spf13/cobra"

func newTopic() *cobra.Command {
	c := &client{}
	cmd := group("topic", "Create, list, describe and delete topics",
		newTopicCreate(c), newTopicList(c), newTopicDescribe(c), newTopicDelete(c))
	c.register(cmd)
	return cmd
}
