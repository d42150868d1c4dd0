package gateway

// POST /api/v1/topics/{t}/records and /api/v1/topics/{t}/partitions/{p}/records
//
// The records of a request are one batch for each of their partitions. A batch
// is appended whole or not at all, and is safe when the answer comes (acks=all).
// What is wrong with any record is found before anything is appended. After
// that partitions fail each by itself: 207 where some did and some did not.

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/siltstone-io/siltstone"
)

const (
	typeJSON    = "application/json"
	typeLines   = "application/x-ndjson"
	typeBatches = "application/vnd.kafka.record-batch"
)

// appended is the answer to an append.
type appended struct {
	Results []appendResult   `json:"results"`
	Errors  []partitionError `json:"errors,omitempty"`
}

type appendResult struct {
	Partition int32            `json:"partition"`
	Base      siltstone.Offset `json:"base_offset"`
	Next      siltstone.Offset `json:"next_offset"`
	Timestamp int64            `json:"timestamp"`
}

type partitionError struct {
	Partition int32 `json:"partition"`
	Error
}

// append appends to the topic, or the partition, of the URL.
func (h *handler) append(w http.ResponseWriter, r *http.Request) error {
	c := &collector{only: -1, most: h.limits.Records, now: time.Now().UnixMilli(), shares: map[int32]*share{}}
	t, err := h.topic(r)
	if err != nil {
		return fmt.Errorf("%w; PUT /api/v1/topics/%s makes it", err, url.PathEscape(r.PathValue("topic")))
	}
	if c.topic = t; r.PathValue("partition") != "" {
		if c.only, err = partitionIn(t, r); err != nil {
			return err
		}
	}
	c.sticky = int32(h.random() % uint64(t.Partitions))
	hold := holding{of: &h.memory}
	defer hold.release()
	if err := h.gather(w, r, c, &hold); err != nil {
		return err
	}
	shares, parts, err := c.parts()
	if err != nil {
		return err
	}
	q := &siltstone.AppendRequest{Acks: -1, Deadline: h.until(r.Context(), h.limits.Change), Parts: parts, Done: make(chan struct{})}
	if err := h.submit(r.Context(), q); err != nil {
		return err
	}
	if c.only >= 0 && q.Parts[0].Err == nil {
		next := q.Parts[0].Base + siltstone.Offset(len(shares[0].places))
		w.Header().Set("ETag", `"`+strconv.FormatInt(int64(next), 10)+`"`)
	}
	return h.answerAppend(w, shares, q.Parts)
}

// gather reads the records of the body, by its type.
func (h *handler) gather(w http.ResponseWriter, r *http.Request, c *collector, hold *holding) error {
	kind, err := bodyType(r)
	if err != nil {
		return err
	}
	if kind != "" {
		if err := noRawHeaders(r.Header, kind); err != nil {
			return err
		}
	}
	d := recordReader{now: c.now, add: c.add}
	given := r.URL.Query().Get("encoding")
	if given != "" {
		if kind == "" {
			return fmt.Errorf("%w: a raw record has no encoding", errBadRequest)
		}
		if d.encoding, err = parseEncoding(given); err != nil {
			return err
		}
	}
	body, err := h.body(r, hold, h.limits.BodyBytes)
	if err != nil {
		return err
	}
	bodyRead(w)
	switch kind {
	case typeJSON:
		return d.readJSON(body, given != "")
	case typeLines:
		return d.readLines(body)
	}
	record, err := rawRecord(r.Header, body, c.now)
	if err != nil {
		return err
	}
	if err := c.add(record); err != nil {
		return wrongRecord(0, err)
	}
	return nil
}

// bodyType is JSON, lines of it, or "" for a raw record. Refused are types that
// a record surely is not meant to have: what curl sends when it is not told,
// and the dialects of other gateways.
func bodyType(r *http.Request) (string, error) {
	sent := r.Header.Get("Content-Type")
	if sent == "" {
		return "", nil
	}
	kind, params, err := mime.ParseMediaType(sent)
	if err != nil {
		return "", fmt.Errorf("%w: Content-Type: %w", errBadRequest, err)
	}
	switch {
	case kind == typeJSON || kind == typeLines:
		if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
			return "", fmt.Errorf("%w: JSON is in UTF-8, not in %s", errMediaType, charset)
		}
		return kind, nil
	case kind == typeBatches:
		return "", fmt.Errorf("%w: %s", errNotImplemented, kind)
	case kind == "application/x-www-form-urlencoded" || kind == "multipart/form-data":
		return "", fmt.Errorf("%w: %s is no type of a record; send Content-Type: %s, %s, or for one raw record its own type, such as application/octet-stream",
			errMediaType, kind, typeJSON, typeLines)
	case strings.HasPrefix(kind, "application/vnd.kafka"):
		return "", fmt.Errorf("%w: %s belongs to another API than /api/v1; send %s", errMediaType, kind, typeJSON)
	}
	return "", nil
}

// submit hands an append to the log and waits for its outcome. Who asked may
// have gone: the log has the request's memory until it is done with it.
func (h *handler) submit(ctx context.Context, q *siltstone.AppendRequest) error {
	admit, cancel := context.WithDeadline(ctx, q.Deadline)
	defer cancel()
	if err := h.log.Append(admit, q); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%w: the log had no memory to spare: %w", errBusy, err)
		}
		return err
	}
	select {
	case <-q.Done:
		return nil
	case <-ctx.Done():
	}
	if !isStopping(ctx) {
		<-q.Done
		return nil
	}
	drain := time.NewTimer(h.limits.Drain)
	defer drain.Stop()
	select {
	case <-q.Done:
		return nil
	case <-drain.C:
		return fmt.Errorf("%w: the records may yet be written", ErrStopping)
	}
}

// answerAppend tells what became of each partition. Where all failed, the
// answer is the error of the first.
func (h *handler) answerAppend(w http.ResponseWriter, shares []*share, parts []siltstone.AppendPart) error {
	a := appended{Results: []appendResult{}}
	var first error
	for i := range parts {
		p, s := &parts[i], shares[i]
		if p.Err == nil {
			next := p.Base + siltstone.Offset(len(s.places))
			a.Results = append(a.Results, appendResult{s.partition, p.Base, next, s.timestamp})
			continue
		}
		_, e := h.refuse(p.Err)
		e.Details = map[string]any{}
		a.Errors = append(a.Errors, partitionError{s.partition, e})
		if first == nil {
			first = p.Err
		}
	}
	switch {
	case len(a.Errors) == 0:
		writeJSON(w, http.StatusOK, a)
	case len(a.Results) > 0:
		writeJSON(w, http.StatusMultiStatus, a)
	case len(parts) == 1:
		return first
	default:
		return &detailed{first, map[string]any{"errors": a.Errors}}
	}
	return nil
}
