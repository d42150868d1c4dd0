package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	defaultKafka = "127.0.0.1:9092"
	// connectTimeout bounds how long a command looks for each server.
	connectTimeout = 5 * time.Second
)

// client is what the commands that talk to a running cluster share. Any Kafka
// cluster will do.
type client struct {
	servers string
	given   func() bool // whether the flag is
}

func (c *client) register(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVarP(&c.servers, "kafka", "b", defaultKafka, "`servers` of a running cluster, as host or host:port, with commas between; where it is not given, those of $"+serversVariable)
	c.given = func() bool { return flags.Changed("kafka") }
}

// open connects, and fails at once where no server is.
func (c *client) open(ctx context.Context, opts ...kgo.Opt) (*kgo.Client, error) {
	seeds, err := c.seeds()
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.ClientID("siltstone-cli"),
		kgo.DialTimeout(connectTimeout),
		kgo.RetryTimeout(30 * time.Second),
	}, opts...)...)
	if err != nil {
		return nil, err
	}
	ping, cancel := context.WithTimeout(ctx, time.Duration(len(seeds))*connectTimeout)
	defer cancel()
	if err := cl.Ping(ping); err != nil {
		cl.Close()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			err = fmt.Errorf("silence for %s: is that the port of Kafka's protocol?", connectTimeout)
		}
		return nil, fmt.Errorf("no Kafka server answers at %s: start one with siltstone dev, or name another with --kafka (%w)", strings.Join(seeds, " or "), err)
	}
	return cl, nil
}

// admin is open for commands about topics; call the returned func when done.
func (c *client) admin(ctx context.Context) (*kadm.Client, func(), error) {
	cl, err := c.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	return kadm.NewClient(cl), cl.Close, nil
}

// explain says what a server's error about a topic means, and what to do.
func explain(topic string, err error, message string) error {
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("there is no topic %q: siltstone topic list shows all, siltstone topic create %s makes it", topic, topic)
	case errors.Is(err, kerr.TopicAlreadyExists):
		return fmt.Errorf("topic %q exists: siltstone topic describe %s shows it", topic, topic)
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return fmt.Errorf("topic %q: replication factors are 1 to 3, or left out; the cluster's own is used", topic)
	case errors.Is(err, kerr.MessageTooLarge):
		return fmt.Errorf("topic %q: a record is longer than its max.message.bytes allows: siltstone topic describe %s --all shows it", topic, topic)
	case message != "":
		return fmt.Errorf("topic %q: %s", topic, message)
	}
	return fmt.Errorf("topic %q: %w", topic, err)
}
