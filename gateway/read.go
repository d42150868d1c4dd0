package gateway

// GET /api/v1/topics/{t}/partitions/{p}/records
//
// Records from an offset on, or from the first at or after a time. A batch may
// begin before the offset, and offsets may have holes; what is no record of
// data, such as the markers of transactions, takes offsets and is not shown:
// next_offset is where to read on.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/siltstone-io/siltstone"
)

// reading is a read under way.
type reading struct {
	query     readQuery
	partition siltstone.TopicPartition
	start     siltstone.Offset // as asked for
	until     time.Time
	page      page
	next      siltstone.Offset // what the page does not have
	high      siltstone.Offset // high watermark
	end       siltstone.Offset // where what this reader may see ends
	logStart  siltstone.Offset
}

func (h *handler) read(w http.ResponseWriter, r *http.Request) error {
	tp, err := h.partition(r)
	if err != nil {
		return err
	}
	kind, err := negotiate(r, recordTypes...)
	if err != nil {
		return err
	}
	q, err := parseReadQuery(r.URL.Query(), h.limits)
	if err != nil {
		return err
	}
	ctx := r.Context()
	hold := holding{of: &h.memory}
	defer hold.release()
	rd := &reading{query: q, partition: tp, until: h.until(ctx, q.wait)}
	rd.page = page{encoding: q.encoding, lines: kind == typeLines, most: q.maxBytes, limit: q.limit, hold: &hold}
	if err := h.place(ctx, rd); err != nil {
		return err
	}
	if err := h.fill(ctx, rd); err != nil {
		return err
	}
	if most := h.limits.MostReplyBytes; most > 0 && len(rd.page.text)+pageBytes > most {
		return &detailed{fmt.Errorf("%w: the record at offset %d takes %d bytes, and %d are the most", errReplyTooLarge, rd.page.first, len(rd.page.text), most),
			map[string]any{"offset": rd.page.first, "next_offset": rd.page.first + 1}}
	}
	h.answerRead(w, r, rd)
	return nil
}

// place finds where to begin.
func (h *handler) place(ctx context.Context, rd *reading) error {
	q := &rd.query
	if q.time == atOffset {
		rd.start, rd.next = q.offset, q.offset
		return nil
	}
	found, err := h.log.OffsetForTime(ctx, rd.partition, q.time, -1, q.isolation)
	if err == nil && found.Offset < 0 { // nothing is so young: what comes next
		found, err = h.log.OffsetForTime(ctx, rd.partition, siltstone.TimeLatest, -1, q.isolation)
	}
	rd.start, rd.next = found.Offset, found.Offset
	return err
}

// fill fetches until there is a record, or the time is over.
func (h *handler) fill(ctx context.Context, rd *reading) error {
	for moved := false; ; {
		result, err := h.log.Fetch(ctx, &siltstone.FetchRequest{
			Deadline: rd.until, MinBytes: 1, MaxBytes: rd.query.maxBytes, Isolation: rd.query.isolation,
			Parts: []siltstone.FetchPart{{Partition: rd.partition, Offset: rd.next, MaxBytes: rd.query.maxBytes, Epoch: -1, LastEpoch: -1}},
		})
		if err != nil {
			return err
		}
		before := rd.next
		err = h.take(ctx, rd, &result.Parts[0])
		if result.Release != nil {
			result.Release()
		}
		switch {
		case errors.Is(err, errOffsetGone) && rd.query.time == siltstone.TimeEarliest && !moved:
			// The log start moved on since place saw it, or since the last fetch.
			rd.start, rd.next, moved = rd.logStart, rd.logStart, true
			continue
		case err != nil:
			return err
		}
		if rd.page.count > 0 || rd.next == before || !time.Now().Before(rd.until) {
			return nil
		}
	}
}

// take takes what a fetch gave into the page.
func (h *handler) take(ctx context.Context, rd *reading, p *siltstone.FetchedPart) error {
	rd.high, rd.logStart, rd.end = p.HighWatermark, p.Start, p.HighWatermark
	if rd.query.isolation == siltstone.ReadCommitted {
		rd.end = p.LastStable
	}
	switch {
	case errors.Is(p.Err, siltstone.ErrOffsetOutOfRange):
		kind := errOffsetBeyond
		if rd.next < p.Start {
			kind = errOffsetGone
		}
		return &detailed{fmt.Errorf("%w: offset %d, of a log from %d to %d", kind, rd.next, p.Start, p.HighWatermark),
			map[string]any{"log_start_offset": p.Start, "high_watermark": p.HighWatermark}}
	case p.Err != nil:
		return p.Err
	case len(p.Records) == 0:
		return nil
	}
	// A place among few: a batch that is decompressed may be large.
	if err := h.turn(ctx); err != nil {
		return err
	}
	defer h.turnOver()
	next, err := rd.page.fill(p.Records, rd.next)
	rd.next = next
	return err
}

// pageBytes is what a reply takes beside its records, at most.
const pageBytes = 256

// answerRead writes the page.
func (h *handler) answerRead(w http.ResponseWriter, r *http.Request, rd *reading) {
	header := w.Header()
	header.Set("Next-Offset", strconv.FormatInt(int64(rd.next), 10))
	header.Set("High-Watermark", strconv.FormatInt(int64(rd.high), 10))
	header.Set("Up-To-Date", strconv.FormatBool(rd.next >= rd.end))
	header.Add("Vary", "Accept, Accept-Encoding")
	if rd.page.lines {
		header.Set("Content-Type", typeLines)
		h.writeBody(w, r, rd.page.hold, rd.page.text)
		return
	}
	header.Set("Content-Type", typeJSON)
	begin := fmt.Appendf(nil, `{"topic_id":%q,"partition":%d,"start_offset":%d,"next_offset":%d,"high_watermark":%d,"log_start_offset":%d,"records":[`,
		rd.partition.Topic, rd.partition.Partition, rd.start, rd.next, rd.high, rd.logStart)
	h.writeBody(w, r, rd.page.hold, begin, rd.page.text, []byte("]}\n"))
}
