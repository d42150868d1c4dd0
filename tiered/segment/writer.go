package segment

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// Writer puts an object together: Run and its Batches, for each partition in
// order of (shard, partition), then Finish. Batches are not copied: the
// object's parts are the caller's own buffers, which must not change until the
// object is stored. After an error the Writer is of no more use. It is one
// goroutine's.
type Writer struct {
	header  Header
	parts   [][]byte // parts[0] is the header's place
	runs    []Run
	rows    []Row            // of all runs
	starts  []int            // where each run's rows start
	base    siltstone.Offset // of the run under way
	offsets int64            // that it covers so far
}

// NewWriter starts an object. The header's shards are those of the runs to come.
func NewWriter(h Header) *Writer {
	h.Shards = nil
	return &Writer{header: h, parts: make([][]byte, 1)}
}

// Run starts the run of a partition. Base is the offset where the range starts
// that the run will be, by the batches' own count.
func (w *Writer) Run(shard uint16, tp siltstone.TopicPartition, base siltstone.Offset) error {
	run := Run{Shard: shard, Partition: tp}
	if tp.Partition < 0 {
		return fmt.Errorf("no run can be of %s", tp)
	}
	if n := len(w.runs); n > 0 && !before(&w.runs[n-1], &run) {
		return fmt.Errorf("run of %s in shard %d is out of order", tp, shard)
	}
	if n := len(w.header.Shards); n == 0 || w.header.Shards[n-1] != shard {
		if n == maxShards {
			return fmt.Errorf("more than %d shards in one object", maxShards)
		}
		w.header.Shards = append(w.header.Shards, shard)
	}
	w.closeRun()
	w.runs = append(w.runs, run)
	w.starts = append(w.starts, len(w.rows))
	w.base, w.offsets = base, 0
	return nil
}

// Batch adds one whole batch to the run, stamped with its base offset and epoch.
func (w *Writer) Batch(b []byte) error {
	if len(w.runs) == 0 {
		return errors.New("a batch before the first run")
	}
	run := &w.runs[len(w.runs)-1]
	h, err := batch.ParseHeader(b)
	if err != nil {
		return fmt.Errorf("batch of %s: %w", run.Partition, err)
	}
	delta := int64(h.BaseOffset - w.base)
	if h.SizeBytes() != len(b) || h.LastOffsetDelta < 0 || h.LastOffsetDelta == math.MaxInt32 ||
		h.BaseOffset < w.base || delta < w.offsets || delta > maxSpan-math.MaxInt32 {
		return fmt.Errorf("batch of %s at %d with %d bytes does not fit behind %d", run.Partition, h.BaseOffset, len(b), w.base+siltstone.Offset(w.offsets))
	}
	row := RowOf(h)
	row.OffsetDelta = delta
	if h.Attributes.Control() {
		m, err := batch.ParseMarker(b)
		if err != nil {
			return fmt.Errorf("batch of %s: %w", run.Partition, err)
		}
		row.Marker, row.CoordinatorEpoch = m.Type, m.CoordinatorEpoch
	}
	w.rows = append(w.rows, row)
	w.parts = append(w.parts, b)
	w.offsets = row.EndDelta()
	run.LengthBytes += int64(len(b))
	run.CRC = crc32.Update(run.CRC, castagnoli, b)
	return nil
}

// CoverTo lets the run cover the offsets up to end, where batches at its end
// are gone.
func (w *Writer) CoverTo(end siltstone.Offset) error {
	if len(w.runs) == 0 || int64(end-w.base) < w.offsets || int64(end-w.base) > maxSpan {
		return fmt.Errorf("a run does not end at %d", end)
	}
	w.offsets = int64(end - w.base)
	return nil
}

func (w *Writer) closeRun() {
	if n := len(w.runs); n > 0 {
		w.runs[n-1].Offsets = w.offsets
	}
}

// Finish returns the object's bytes in parts, and its index.
func (w *Writer) Finish() ([][]byte, *Index, error) {
	w.closeRun()
	header := w.header.encode()
	w.parts[0] = header
	t := Trailer{ID: w.header.ID, DataPosition: int64(len(header)), IndexPosition: int64(len(header))}
	for i := range w.runs {
		r := &w.runs[i]
		end := len(w.rows)
		if i+1 < len(w.runs) {
			end = w.starts[i+1]
		}
		if r.Position = t.IndexPosition; w.starts[i] < end {
			r.Rows = w.rows[w.starts[i]:end:end]
		}
		for j := range r.Rows {
			r.Rows[j].Position = t.IndexPosition
			t.IndexPosition += int64(r.Rows[j].LengthBytes)
		}
	}
	x, err := newIndex(w.runs)
	if err != nil {
		return nil, nil, err
	}
	index := encodeIndex(w.runs)
	if len(index) > math.MaxUint32 {
		return nil, nil, fmt.Errorf("an index of %d bytes is too large", len(index))
	}
	t.IndexBytes, t.IndexCRC = int64(len(index)), crc32.Checksum(index, castagnoli)
	t.ObjectBytes = t.IndexPosition + t.IndexBytes + TrailerBytes
	return append(w.parts, index, t.encode()), x, nil
}
