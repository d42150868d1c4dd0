package gateway

// GET, HEAD /api/v1/topics/{t}/partitions/{p}, and GET .../offset

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/siltstone-io/siltstone"
)

type partitionShown struct {
	ID         string           `json:"topic_id"`
	Partition  int32            `json:"partition"`
	LogStart   siltstone.Offset `json:"log_start_offset"`
	LastStable siltstone.Offset `json:"last_stable_offset"`
	High       siltstone.Offset `json:"high_watermark"`
	Epoch      siltstone.Epoch  `json:"leader_epoch"`
}

// showPartition shows how far a partition reaches. The offsets are looked up
// in the order in which they grow, so that they never contradict each other.
func (h *handler) showPartition(w http.ResponseWriter, r *http.Request) error {
	tp, err := h.partition(r)
	if err != nil {
		return err
	}
	look := func(time int64, isolation siltstone.Isolation) (found siltstone.TimedOffset) {
		if err == nil {
			found, err = h.log.OffsetForTime(r.Context(), tp, time, -1, isolation)
		}
		return found
	}
	start := look(siltstone.TimeEarliest, siltstone.ReadUncommitted)
	stable := look(siltstone.TimeLatest, siltstone.ReadCommitted)
	high := look(siltstone.TimeLatest, siltstone.ReadUncommitted)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+strconv.FormatInt(int64(high.Offset), 10)+`"`)
	writeJSON(w, http.StatusOK, partitionShown{tp.Topic.String(), tp.Partition, start.Offset, stable.Offset, high.Offset, high.Epoch})
	return nil
}

// offsetForTime finds the first record at or after a time; null where there is none.
func (h *handler) offsetForTime(w http.ResponseWriter, r *http.Request) error {
	tp, err := h.partition(r)
	if err != nil {
		return err
	}
	values := r.URL.Query()
	if !values.Has("timestamp") {
		return fmt.Errorf("%w: timestamp=ms is missing", errBadRequest)
	}
	q := readQuery{isolation: siltstone.ReadCommitted}
	for name := range values {
		if err := q.set(name, values.Get(name)); err != nil {
			return err
		}
	}
	found, err := h.log.OffsetForTime(r.Context(), tp, q.time, -1, q.isolation)
	if err != nil {
		return err
	}
	answer := struct {
		Offset    *siltstone.Offset `json:"offset"`
		Timestamp *int64            `json:"timestamp"`
		Epoch     *siltstone.Epoch  `json:"leader_epoch"`
	}{}
	if found.Offset >= 0 {
		answer.Offset, answer.Timestamp, answer.Epoch = &found.Offset, &found.Timestamp, &found.Epoch
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}
