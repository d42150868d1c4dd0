package gateway

import (
	"fmt"
	"strconv"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// page is the records of a reply, as they are written.
type page struct {
	encoding    encoding
	lines       bool // one record a line; else they are separated by commas
	most, limit int  // bytes, of which the first record may take more; and records
	hold        *holding

	text  []byte
	first siltstone.Offset
	count int
}

// fill appends the records at or above an offset, as many as there is room
// for, and says which offset comes next: after all of the batches, or that of
// the first record left out.
func (p *page) fill(pieces [][]byte, from siltstone.Offset) (next siltstone.Offset, err error) {
	next = from
	for _, piece := range pieces {
		for b, err := range batch.All(piece) {
			if err != nil {
				return next, damaged(next, err)
			}
			h, err := batch.ParseHeader(b)
			if err != nil {
				return next, damaged(next, err)
			}
			end := h.BaseOffset + siltstone.Offset(h.LastOffsetDelta) + 1
			if end <= from {
				continue
			}
			if !h.Attributes.Control() {
				full, at, err := p.fillFrom(b, from)
				if err != nil {
					return next, err
				}
				if full {
					return at, nil
				}
			}
			next = end
		}
	}
	return next, nil
}

// fillFrom appends the records of one batch; full, there is no room for the
// one at an offset.
func (p *page) fillFrom(b []byte, from siltstone.Offset) (full bool, at siltstone.Offset, err error) {
	at = from
	for r, err := range batch.Records(b, 0) {
		if err != nil {
			return false, at, damaged(at, err)
		}
		if r.Offset < from {
			continue
		}
		at = r.Offset
		if p.count == p.limit {
			return true, at, nil
		}
		fits, err := p.append(&r)
		if err != nil || !fits {
			return true, at, err
		}
	}
	return false, at, nil
}

// damaged is for stored bytes that are no records: in no words that blame the reader.
func damaged(at siltstone.Offset, err error) error {
	return fmt.Errorf("%w: records at offset %d: %v", siltstone.ErrCorrupt, at, err) //nolint:errorlint // as it says
}

// append appends one record, if it fits, or is the first.
func (p *page) append(r *batch.Record) (fits bool, err error) {
	before := p.text
	text := before
	if p.count > 0 && !p.lines {
		text = append(text, ',')
	}
	text = p.encoding.appendRecord(text, r)
	if p.lines {
		text = append(text, '\n')
	}
	if p.count > 0 && len(text) > p.most {
		return false, nil
	}
	if more := cap(text) - cap(before); more > 0 {
		if err := p.hold.grow(more); err != nil {
			if p.count > 0 { // what there is goes out, and makes room
				return false, nil
			}
			return false, err
		}
	}
	if p.count == 0 {
		p.first = r.Offset
	}
	p.text = text
	p.count++
	return true, nil
}

// appendRecord appends a record as an object.
func (e encoding) appendRecord(out []byte, r *batch.Record) []byte {
	out = strconv.AppendInt(append(out, `{"offset":`...), int64(r.Offset), 10)
	out = strconv.AppendInt(append(out, `,"timestamp":`...), r.Timestamp, 10)
	out = e.appendField(append(out, ','), "key", r.Key)
	out = e.appendField(append(out, ','), "value", r.Value)
	out = append(out, `,"headers":[`...)
	for i, h := range r.Headers {
		if i > 0 {
			out = append(out, ',')
		}
		out = e.ofHeaders().appendHeader(out, h)
	}
	return append(out, "]}"...)
}

// appendHeader appends ["name","value"], or an object where one of the two is
// no text.
func (e encoding) appendHeader(out []byte, h batch.RecordHeader) []byte {
	pair, nameOK := asUTF8.append(append(out, '['), h.Key)
	if nameOK {
		if pair, valueOK := e.append(append(pair, ','), h.Value); valueOK {
			return append(pair, ']')
		}
	}
	out = asUTF8.appendField(append(out, '{'), "name", h.Key)
	out = e.appendField(append(out, ','), "value", h.Value)
	return append(out, '}')
}
