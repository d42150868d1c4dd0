package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// handler is what the calls share.
type handler struct {
	agent   Agent
	log     Log
	topics  Topics
	random  func() uint64
	logger  *slog.Logger
	limits  Limits
	memory  memory
	turns   chan struct{} // a place for each CPU
	metrics *metrics
}

func newHandler(o Options) *handler {
	h := &handler{
		agent: o.Agent, log: o.Log, topics: o.Topics, random: o.Random, logger: o.Logger, limits: o.Limits,
		turns: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	h.memory.free = semaphore.NewWeighted(int64(o.Limits.MemoryBytes))
	h.metrics = newMetrics(o.Metrics, &h.memory)
	return h
}

// turn waits for a place among those who decompress; the CPU works while it is
// held, and nobody waits for a network.
func (h *handler) turn(ctx context.Context) error {
	select {
	case h.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *handler) turnOver() { <-h.turns }

// beforeEnd is how long before the end of a request's time it is answered.
const beforeEnd = 2 * time.Second

// until is how long something may take that has this long.
func (h *handler) until(ctx context.Context, long time.Duration) time.Time {
	at := time.Now().Add(long)
	if end, ok := ctx.Deadline(); ok && end.Add(-beforeEnd).Before(at) {
		return end.Add(-beforeEnd)
	}
	return at
}

func isStopping(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrStopping) }

// topic is the topic of the URL.
func (h *handler) topic(r *http.Request) (*topic.Topic, error) {
	name := r.PathValue("topic")
	t, ok := h.topics.Topics().Topic(name)
	if !ok {
		return nil, fmt.Errorf("%w: %s", errNoTopic, name)
	}
	return t, nil
}

// partition is the partition of the URL.
func (h *handler) partition(r *http.Request) (siltstone.TopicPartition, error) {
	t, err := h.topic(r)
	if err != nil {
		return siltstone.TopicPartition{}, err
	}
	n, err := partitionIn(t, r)
	return siltstone.TopicPartition{Topic: t.ID, Partition: n}, err
}

func partitionIn(t *topic.Topic, r *http.Request) (int32, error) {
	n, err := strconv.ParseInt(r.PathValue("partition"), 10, 32)
	if err != nil || n < 0 || n >= int64(t.Partitions) {
		return 0, fmt.Errorf("%w: topic %s has partitions 0 to %d, not %s", errNoPartition, t.Name, t.Partitions-1, r.PathValue("partition"))
	}
	return int32(n), nil
}

// refuse is the answer to an error, logged where what is stored is damaged or
// nobody thought of it. What took too long has its reason, if there is one.
func (h *handler) refuse(err error) (int, Error) {
	status, e := classify(err)
	switch status {
	case http.StatusInternalServerError:
		h.logger.Error("request failed", "err", err)
	case http.StatusGatewayTimeout:
		if why := h.agent.Ready(); why != nil {
			e.Message += "; the server is not ready: " + why.Error()
		}
	}
	return status, e
}

// call serves an API call: what it asks for and nobody has is refused first.
func (h *handler) call(c *call) http.HandlerFunc {
	return h.answer(func(h *handler, w http.ResponseWriter, r *http.Request) error {
		if err := c.check(r); err != nil {
			return err
		}
		if why := h.agent.Begun(); why != nil {
			return fmt.Errorf("%w: %w", errNotBegun, why)
		}
		return c.serve(h, w, r)
	})
}

// answer answers with the error of what serves, if there is one.
func (h *handler) answer(serve serveFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := serve(h, w, r)
		switch {
		case err == nil:
			return
		case isStopping(r.Context()):
			if !errors.Is(err, ErrStopping) {
				err = fmt.Errorf("%w: %w", ErrStopping, err)
			}
			w.Header().Set("Connection", "close")
		case r.Context().Err() != nil && errors.Is(err, context.Canceled):
			gone(w)
			return
		}
		status, e := h.refuse(err)
		writeError(w, status, e)
	}
}

// sameOrigin refuses what a browser is made to do by a page from elsewhere:
// some requests that change something it sends without asking first.
var sameOrigin http.CrossOriginProtection

// check refuses what the call does not know.
func (c *call) check(r *http.Request) error {
	if err := sameOrigin.Check(r); err != nil {
		return fmt.Errorf("%w: %w", errCrossOrigin, err)
	}
	for _, name := range notYetHeaders {
		if _, given := r.Header[name]; given {
			return fmt.Errorf("%w: the header %s", errNotImplemented, name)
		}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: the query: %w", errBadRequest, err)
	}
	for name, v := range values {
		switch {
		case slices.Contains(notYetParams, name):
			return fmt.Errorf("%w: the parameter %s", errNotImplemented, name)
		case !slices.Contains(c.params, name):
			return fmt.Errorf("%w: there is no parameter %q here; there is: %s", errBadRequest, name, cmp.Or(strings.Join(c.params, ", "), "none"))
		case len(v) > 1:
			return fmt.Errorf("%w: the parameter %s is given twice", errBadRequest, name)
		}
	}
	if !slices.Contains(c.types, typeLines) {
		_, err = negotiate(r, typeJSON)
	}
	return err
}
