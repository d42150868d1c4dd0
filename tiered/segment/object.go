package segment

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// Object is what a whole object says of itself.
type Object struct {
	Header  Header
	Trailer Trailer
	Index   *Index
}

// Parse reads a whole object and checks the CRC of every part: header, runs,
// index, trailer.
func Parse(b []byte) (*Object, error) {
	if !bytes.HasPrefix(b, []byte(headerMagic)) && !bytes.HasSuffix(b[:max(0, len(b)-crcBytes)], []byte(trailerMagic)) {
		return nil, fmt.Errorf("this is no segment: it neither begins nor ends like one: %w", siltstone.ErrCorrupt)
	}
	t, err := ParseTrailer(b)
	if err != nil {
		return nil, err
	}
	if t.ObjectBytes != int64(len(b)) {
		return nil, damaged("trailer", "is of an object of %d bytes, not %d", t.ObjectBytes, len(b))
	}
	h, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	if h.ID != t.ID || int64(h.sizeBytes()) != t.DataPosition {
		return nil, damaged("header", "is of %s, its trailer of %s", h.ID, t.ID)
	}
	index, _ := t.CutIndex(b)
	x, err := ParseIndex(index, t)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(x.Shards(), h.Shards) {
		return nil, damaged("header", "names shards %v, its runs are of %v", h.Shards, x.Shards())
	}
	for i := range x.Runs {
		r := &x.Runs[i]
		if err := r.Check(b[r.Position:][:r.LengthBytes]); err != nil {
			return nil, err
		}
	}
	return &Object{Header: h, Trailer: t, Index: x}, nil
}

// CutIndex returns the index's bytes out of the last bytes of its object, or
// false where they do not reach back so far.
func (t Trailer) CutIndex(tail []byte) ([]byte, bool) {
	end := int64(len(tail)) - TrailerBytes
	if end < t.IndexBytes {
		return nil, false
	}
	return tail[end-t.IndexBytes : end], true
}

// Verify reads a whole object as Parse does, and each of its batches: its own
// CRC, and that index and batch agree.
func Verify(b []byte) error {
	o, err := Parse(b)
	if err != nil {
		return err
	}
	return o.VerifyBatches(b)
}

// VerifyBatches is what Verify does beyond Parse, for the object that b was parsed to.
func (o *Object) VerifyBatches(b []byte) error {
	for i := range o.Index.Runs {
		r := &o.Index.Runs[i]
		if err := verifyRun(r, b); err != nil {
			return fmt.Errorf("run of %s: %w", r.Partition, err)
		}
	}
	return nil
}

func verifyRun(r *Run, object []byte) error {
	var base siltstone.Offset
	for j := range r.Rows {
		row := &r.Rows[j]
		b := object[row.Position:][:row.LengthBytes]
		if err := row.Check(b); err != nil {
			return err
		}
		h, err := batch.ParseHeader(b)
		if err != nil {
			return err
		}
		if start := h.BaseOffset - siltstone.Offset(row.OffsetDelta); j == 0 {
			base = start
		} else if start != base {
			return damaged("batch", "at %d: its base offset %d does not follow the run's %d", row.Position, h.BaseOffset, base)
		}
		if !row.Attributes.Control() {
			continue
		}
		m, err := batch.ParseMarker(b)
		if err != nil {
			return damaged("batch", "at %d: %v", row.Position, err)
		}
		if m.Type != row.Marker || m.CoordinatorEpoch != row.CoordinatorEpoch {
			return damaged("batch", "at %d: marker %v, its row says %d of epoch %d", row.Position, m, row.Marker, row.CoordinatorEpoch)
		}
	}
	return nil
}
