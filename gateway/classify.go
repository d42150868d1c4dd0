package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// ErrStopping is the cause of a request's context when the server stops.
var ErrStopping = errors.New("the server is stopping")

// Outcomes that the gateway itself finds.
var (
	errBadRequest     = errors.New("bad request")
	errMalformed      = errors.New("malformed body")
	errBodyTooLarge   = errors.New("body too large")
	errBodySlow       = errors.New("the body did not come in time")
	errMediaType      = errors.New("unsupported media type")
	errNotAcceptable  = errors.New("not acceptable")
	errInvalidRecord  = errors.New("invalid record")
	errInvalidTopic   = errors.New("invalid topic")
	errCrossOrigin    = errors.New("a page of another site may not do this")
	errNoTopic        = errors.New("no such topic")
	errNoPartition    = errors.New("no such partition")
	errTopicDiffers   = errors.New("the topic exists already, and is another")
	errReplyTooLarge  = errors.New("the record does not fit into a reply")
	errBusy           = errors.New("too much is asked at once")
	errOffsetGone     = errors.New("the offset is before the start of the log")
	errOffsetBeyond   = errors.New("the offset is after the end of the log")
	errNotBegun       = errors.New("the server has not begun to serve")
	errNotImplemented = errors.New("not served yet")
)

// classes says what stands for an error in an answer. The first that matches
// counts.
var classes = []struct {
	err       error
	status    int
	number    int
	code      string
	retriable bool
}{
	{errNotBegun, 503, 50302, "not_ready", true},
	{ErrStopping, 503, 50301, "stopping", true},
	{errBusy, 503, 50305, "busy", true},

	{errBadRequest, 400, 40001, "bad_request", false},
	{errMalformed, 400, 40003, "malformed_body", false},
	{errCrossOrigin, 403, 40303, "cross_origin", false},
	{errNoTopic, 404, 40401, "topic_not_found", false},
	{errNoPartition, 404, 40402, "partition_not_found", false},
	{errNotAcceptable, 406, 40601, "not_acceptable", false},
	{errBodySlow, 408, 40801, "body_too_slow", true},
	{errTopicDiffers, 409, 40904, "topic_exists", false},
	{errOffsetGone, 410, 41001, "offset_deleted", false},
	{errReplyTooLarge, 413, 41301, "reply_too_large", false},
	{errBodyTooLarge, 413, 41302, "body_too_large", false},
	{errMediaType, 415, 41501, "unsupported_media_type", false},
	{errOffsetBeyond, 416, 41601, "offset_beyond_end", false},
	{errInvalidTopic, 422, 42217, "invalid_topic", false}, // before what it is of
	{errInvalidRecord, 422, 42206, "invalid_record", false},
	{errNotImplemented, 501, 50101, "not_implemented", false},

	// Of a decision about topics.
	{topic.ErrInvalidName, 422, 42211, "invalid_topic_name", false},
	{topic.ErrExists, 409, 40904, "topic_exists", false},
	{topic.ErrUnknown, 404, 40401, "topic_not_found", false},
	{topic.ErrInvalidPartitions, 422, 42212, "invalid_partitions", false},
	{topic.ErrInvalidReplication, 422, 42213, "invalid_replication_factor", false},
	{topic.ErrInvalidConfig, 422, 42214, "invalid_config", false},
	{topic.ErrTooMany, 422, 42215, "too_many", false},
	{topic.ErrInvalidRequest, 400, 40001, "bad_request", false},

	// Of the batch that the records of a request make.
	{batch.ErrTimestamp, 422, 42216, "invalid_timestamp", false},
	{batch.ErrTooLarge, 413, 41303, "batch_too_large", false},
	{batch.ErrInvalid, 422, 42206, "invalid_record", false},

	// Of the log. The topic was there a moment ago.
	{siltstone.ErrUnknownPartition, 404, 40402, "partition_not_found", false},
	{siltstone.ErrNotLeader, 503, 50303, "not_leader", true},
	{siltstone.ErrUnknownEpoch, 503, 50303, "not_leader", true},
	{siltstone.ErrFencedEpoch, 503, 50303, "not_leader", true},
	{siltstone.ErrTooLarge, 413, 41303, "batch_too_large", false},
	{siltstone.ErrTimedOut, 504, 50401, "timed_out", true},
	{context.DeadlineExceeded, 504, 50401, "timed_out", true},
	{siltstone.ErrUnavailable, 503, 50302, "unavailable", true},
	{siltstone.ErrNewerFormat, 503, 50302, "unavailable", true},
	{siltstone.ErrCorrupt, 500, 50002, "corrupt", false},
	{batch.ErrCorrupt, 500, 50002, "corrupt", false},
}

// classify is the status of an answer with an error, and its body; 500/50001
// for what nobody thought of.
func classify(err error) (status int, e Error) {
	status, e = http.StatusInternalServerError, Error{Number: 50001, Code: "internal"}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			status, e = c.status, Error{Number: c.number, Code: c.code, Retriable: c.retriable}
			break
		}
	}
	e.Message = err.Error()
	if d, ok := errors.AsType[*detailed](err); ok {
		e.Details = d.details
	}
	return status, e
}

// detailed is an error with details for programs.
type detailed struct {
	err     error
	details map[string]any
}

func (d *detailed) Error() string { return d.err.Error() }
func (d *detailed) Unwrap() error { return d.err }

// wrongRecord names the record of a request that is wrong, counted from 0.
func wrongRecord(index int, err error) error {
	if _, said := errors.AsType[*detailed](err); said {
		return err
	}
	return &detailed{fmt.Errorf("record %d: %w", index, err), map[string]any{"record": index}}
}
