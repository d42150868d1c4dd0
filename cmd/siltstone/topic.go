package main

import "github.com/spf13/cobra"

func newTopic() *cobra.Command {
	c := &client{}
	cmd := parent("topic", "Create, list, describe, alter and delete topics",
		"  siltstone topic create orders --partitions 3\n  siltstone topic describe orders",
		newTopicCreate(c), newTopicList(c), newTopicDescribe(c), newTopicAlter(c), newTopicDelete(c), newTopicDeleteRecords(c))
	c.register(cmd)
	return cmd
}
