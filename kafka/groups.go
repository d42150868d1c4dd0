package kafka

// What the APIs of groups share.

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/siltstone-io/siltstone/coordinator/group"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// coordinatorTime is how long a coordinator has for what waits for no other
// member of the group (as offsets.commit.timeout.ms). What it does later is
// for nobody: the client has looked for the coordinator anew.
const coordinatorTime = 5 * time.Second

// handedOver is how many requests go to coordinators at a time: enough to share
// appends, and too few to keep them from others for long.
const handedOver = 1000

// coordinate is await for what waits for no other member.
func (s *Server) coordinate(ctx context.Context, requests ...group.Request) error {
	ctx, cancel := context.WithTimeout(ctx, coordinatorTime)
	defer cancel()
	for some := range slices.Chunk(requests, handedOver) {
		if err := s.await(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// await hands requests to the coordinators of their groups. After nil their
// outcomes are there; after an error there are none, and the requests may not
// be read: the coordinators still have them. So nothing in them is the frame's.
func (s *Server) await(ctx context.Context, requests ...group.Request) error {
	return coordinatorError(s.groups.Group(ctx, requests...), kerr.NotCoordinator)
}

// coordinatorError says lost, on which a client looks for the coordinator anew
// and asks again, where a store cannot be reached or time is up. Many know no
// error for that, and give up at one that they do not know.
func coordinatorError(err error, lost *kerr.Error) error {
	switch kafkaError(err) {
	case kerr.KafkaStorageError, kerr.RequestTimedOut:
		return fmt.Errorf("%w: %w", lost, err)
	}
	return err
}

// maxString is the longest string of a request that a coordinator keeps: older
// versions can say no longer one (Kafka takes none in newer versions either),
// and a member's id is longer than its client's.
const maxString = math.MaxInt16 - len("-00000000-0000-0000-0000-000000000000")

func tooLong(s string) bool { return len(s) > maxString }

// namedTopic is a topic that a request names, or why there is none.
type namedTopic struct {
	topic   *topic.Topic
	unknown error
}

// nameTopic finds a topic by what a version of a request names it by.
func nameTopic(v *topic.View, byID bool, name string, id [16]byte) namedTopic {
	if byID {
		if t, ok := v.TopicByID(id); ok {
			return namedTopic{topic: t}
		}
		return namedTopic{unknown: kerr.UnknownTopicID}
	}
	if t, ok := v.Topic(name); ok {
		return namedTopic{topic: t}
	}
	return namedTopic{unknown: kerr.UnknownTopicOrPartition}
}

// partition is one of its partitions, as groups name it.
func (n namedTopic) partition(partition int32) (group.TopicPartition, error) {
	switch {
	case n.unknown != nil:
		return group.TopicPartition{}, n.unknown
	case partition < 0 || partition >= n.topic.Partitions:
		return group.TopicPartition{}, kerr.UnknownTopicOrPartition
	}
	return group.TopicPartition{Topic: n.topic.Number, Partition: partition}, nil
}

// clientHost is where a connection comes from, as Java writes an address
// without a name.
func (c *conn) clientHost() string {
	address := c.net.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return "/" + address
}
