package kafka

// InitProducerId (key 22), v0 to v5.
//
// Without a transactional id: an id that no producer ever had, with epoch 0,
// whatever id the request brings (from v3 on it may; an id without an epoch,
// or the reverse, is INVALID_REQUEST, as is an empty transactional id). Where
// none can be taken now it is COORDINATOR_LOAD_IN_PROGRESS, on which clients
// ask again.
//
// With a transactional id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the one
// error that Java, librdkafka and franz-go all take as final and report; there
// are no transactions yet. They hear it in so many words before, from
// FindCoordinator.

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// producerIDTime bounds the wait for an id: the request has no timeout of its own.
const producerIDTime = 10 * time.Second

func (s *Server) initProducerID(ctx context.Context, q *kmsg.InitProducerIDRequest) *kmsg.InitProducerIDResponse {
	resp := kmsg.NewPtrInitProducerIDResponse()
	id, err := s.newProducerID(ctx, q)
	if err != nil {
		resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = s.refuse(err), -1, -1
		return resp
	}
	resp.ProducerID = id
	return resp
}

func (s *Server) newProducerID(ctx context.Context, q *kmsg.InitProducerIDRequest) (int64, error) {
	switch id := q.TransactionalID; {
	case id != nil && *id == "", (q.ProducerID == -1) != (q.ProducerEpoch == -1):
		return -1, kerr.InvalidRequest
	case id != nil:
		return -1, kerr.TransactionalIDAuthorizationFailed
	}
	ctx, cancel := context.WithTimeout(ctx, producerIDTime)
	defer cancel()
	id, err := s.admin.NextProducerID(ctx)
	if ke := kafkaError(err); ke == kerr.KafkaStorageError || ke == kerr.RequestTimedOut {
		err = fmt.Errorf("%w: %w", kerr.CoordinatorLoadInProgress, err)
	}
	return id, err
}
