package kafka

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// table is every API that is served and its versions, as ApiVersions lists
// them. Floors are Kafka 4's (KIP-896) or lower, ceilings the newest that are
// served fully. The one exception is Produce below v3: it is listed for old
// librdkafka's sake, and refused partition by partition (KAFKA-18659).
func table() []api {
	return []api{
		{key: kmsg.Produce, min: 0, max: 13, weight: 1, start: startProduce},
		{key: kmsg.Fetch, min: 4, max: 18, weight: 128, start: startFetch},
		{key: kmsg.ListOffsets, min: 1, max: 11, weight: 160, start: call((*Server).listOffsets)},
		{key: kmsg.Metadata, min: 0, max: 13, weight: 160, start: largeCall((*Server).metadata)},
		{key: kmsg.OffsetCommit, min: 1, max: 10, weight: 160, start: call((*Server).offsetCommit)},
		{key: kmsg.OffsetFetch, min: 1, max: 10, weight: 320, start: largeCall((*Server).offsetFetch)},
		{key: kmsg.FindCoordinator, min: 0, max: 6, weight: 768, start: call((*Server).findCoordinator)},
		{key: kmsg.JoinGroup, min: 0, max: 9, weight: 128, start: startJoinGroup},
		{key: kmsg.Heartbeat, min: 0, max: 4, weight: 64, start: call((*Server).heartbeat)},
		{key: kmsg.LeaveGroup, min: 0, max: 5, weight: 160, start: call((*Server).leaveGroup)},
		{key: kmsg.SyncGroup, min: 0, max: 5, weight: 128, start: startSyncGroup},
		{key: kmsg.DescribeGroups, min: 0, max: 6, weight: 512, start: largeCall((*Server).describeGroups)},
		{key: kmsg.ListGroups, min: 0, max: 5, weight: 64, start: largeCall((*Server).listGroups)},
		{key: kmsg.ApiVersions, min: 0, max: 5, weight: 64, start: startAPIVersions},
		{key: kmsg.CreateTopics, min: 2, max: 7, weight: 512, start: call((*Server).createTopics)},
		{key: kmsg.DeleteTopics, min: 1, max: 6, weight: 640, start: call((*Server).deleteTopics)},
		{key: kmsg.DeleteRecords, min: 0, max: 2, weight: 192, start: call((*Server).deleteRecords)},
		{key: kmsg.InitProducerID, min: 0, max: 5, weight: 64, start: call((*Server).initProducerID)},
		{key: kmsg.OffsetForLeaderEpoch, min: 2, max: 4, weight: 160, start: call((*Server).offsetForLeaderEpoch)},
		{key: kmsg.DescribeConfigs, min: 1, max: 4, weight: 128, start: largeCall((*Server).describeConfigs)},
		{key: kmsg.AlterConfigs, min: 0, max: 2, weight: 256, start: call((*Server).alterConfigs)},
		{key: kmsg.DescribeLogDirs, min: 1, max: 5, weight: 192, start: largeCall((*Server).describeLogDirs)},
		{key: kmsg.CreatePartitions, min: 0, max: 3, weight: 160, start: call((*Server).createPartitions)},
		{key: kmsg.DeleteGroups, min: 0, max: 3, weight: 320, start: call((*Server).deleteGroups)},
		{key: kmsg.ElectLeaders, min: 0, max: 2, weight: 160, start: largeCall((*Server).electLeaders)},
		{key: kmsg.IncrementalAlterConfigs, min: 0, max: 1, weight: 256, start: call((*Server).incrementalAlterConfigs)},
		{key: kmsg.AlterPartitionAssignments, min: 0, max: 1, weight: 192, start: call((*Server).alterPartitionReassignments)},
		{key: kmsg.ListPartitionReassignments, min: 0, max: 0, weight: 160, start: call((*Server).listPartitionReassignments)},
		{key: kmsg.OffsetDelete, min: 0, max: 0, weight: 96, start: call((*Server).offsetDelete)},
		{key: kmsg.DescribeCluster, min: 0, max: 2, weight: 64, start: call((*Server).describeCluster)},
		{key: kmsg.DescribeProducers, min: 0, max: 0, weight: 192, start: largeCall((*Server).describeProducers)},
		{key: kmsg.DescribeTopicPartitions, min: 0, max: 0, weight: 160, start: call((*Server).describeTopicPartitions)},
	}
}

// api is one row of the table.
type api struct {
	key      kmsg.Key
	min, max int16
	// weight is how much memory a request may take until it is answered, in
	// lengths of its frame; small structs with unknown tags, each a map, cost
	// most. So much is taken of Limits.MemoryBytes before the frame is read.
	weight int64
	// start is run by a connection's reader, for one request after the other:
	// it decodes, validates and submits. An error closes the connection.
	start func(*conn, *request) (answer, error)

	// Filled in by newAPIs.
	name     string
	flexible int16 // the first version with tagged fields (KIP-482); above max if none has them
	seconds  prometheus.Observer
}

// serves says whether a version is in the range.
func (a *api) serves(version int16) bool { return a.min <= version && version <= a.max }

// newAPIs is the table, each row at the index of its key; nil where there is none.
func newAPIs(m *metrics) []*api {
	var byKey []*api
	for _, row := range table() {
		row.name = apiName(row.key)
		row.seconds = m.seconds.WithLabelValues(row.name)
		message := row.key.Request()
		for message.SetVersion(0); !message.IsFlexible() && row.flexible <= row.max; row.flexible++ {
			message.SetVersion(row.flexible + 1)
		}
		for len(byKey) <= int(row.key) {
			byKey = append(byKey, nil)
		}
		byKey[row.key] = &row
	}
	return byKey
}

// apiName is Kafka's name of an API, which kmsg writes differently here and there.
func apiName(key kmsg.Key) string {
	switch key {
	case kmsg.InitProducerID:
		return "InitProducerId"
	case kmsg.AlterPartitionAssignments:
		return "AlterPartitionReassignments"
	}
	return key.Name()
}

// answer is what comes of a request.
type answer interface {
	// ready says that respond will not wait.
	ready() bool
	// respond waits for the outcome and writes it into out. It is run by the
	// connection's writer, for one answer after the other. An error closes the
	// connection. It returns promptly once ctx has ended.
	respond(ctx context.Context, out *outbox) error
}

// call makes a start of a function from request to response, which is run when
// its answer is due: so requests of a connection take effect in their order.
func call[Q any, P interface {
	*Q
	kmsg.Request
}, R kmsg.Response](serve func(*Server, context.Context, P) R) func(*conn, *request) (answer, error) {
	return func(_ *conn, r *request) (answer, error) {
		q := P(new(Q))
		if err := decode(q, r); err != nil {
			return nil, err
		}
		return callAnswer(func(ctx context.Context, out *outbox) error {
			out.message(r, serve(r.server, ctx, q))
			return nil
		}), nil
	}
}

// largeCall is call for answers whose size is that of the cluster and not of
// the request. Few are built at a time, and the next only when there is memory
// for those that their clients have not read yet.
func largeCall[Q any, P interface {
	*Q
	kmsg.Request
}, R kmsg.Response](serve func(*Server, context.Context, P) R) func(*conn, *request) (answer, error) {
	start := call(serve)
	return func(c *conn, r *request) (answer, error) {
		a, err := start(c, r)
		if err != nil {
			return nil, err
		}
		return callAnswer(func(ctx context.Context, out *outbox) error {
			s := r.server
			if err := s.building.Acquire(ctx, 1); err != nil {
				return errStopping
			}
			defer s.building.Release(1)
			if err := a.respond(ctx, out); err != nil {
				return err
			}
			return out.charge(ctx)
		}), nil
	}
}

// callAnswer is an answer that is worked out when it is due.
type callAnswer func(ctx context.Context, out *outbox) error

func (callAnswer) ready() bool { return false }

func (f callAnswer) respond(ctx context.Context, out *outbox) error { return f(ctx, out) }

// decode reads a request's body. kmsg holds every count in it against the
// bytes that are left before it allocates.
func decode(message kmsg.Request, r *request) error {
	message.SetVersion(r.version)
	if err := message.ReadFrom(r.body); err != nil {
		return fmt.Errorf("%w: %s v%d: %w", errMalformed, r.api.name, r.version, err)
	}
	return nil
}
