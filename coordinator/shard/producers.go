package shard

import (
	"fmt"
	"math"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// Producer is what a partition remembers of an idempotent producer (KIP-98).
type Producer struct {
	ID               int64
	Epoch            int16
	CoordinatorEpoch int32            // of its last marker; -1
	LastTimestamp    int64            // ms
	TxnStart         siltstone.Offset // of its open transaction; -1
	Batches          []ProducerBatch  // the last five at most, oldest first, of this Epoch
}

// ProducerBatch is one batch of an idempotent producer.
type ProducerBatch struct {
	Base          siltstone.Offset
	Offsets       int32
	FirstSequence int32
	Timestamp     int64 // largest of the batch
}

// AbortedTxn is one transaction whose records read_committed readers skip.
type AbortedTxn struct {
	ProducerID  int64
	First, Last siltstone.Offset // Last is the marker's
	LastStable  siltstone.Offset // once the marker was in
}

// rememberedBatches is how many of a producer's batches a retry may repeat:
// the most that Kafka's clients have in flight.
const rememberedBatches = 5

// AddRows takes producers and transactions from the index rows of a range that
// a Segment has assigned: offsets from base on. Ranges are given in order of
// their offsets, and none is left out; one below Indexed was given before, and
// changes nothing.
func (p *Partition) AddRows(base siltstone.Offset, offsets int64, rows []segment.Row) error {
	end := base + siltstone.Offset(offsets)
	switch {
	case end <= p.Indexed:
		return nil
	case base < p.Indexed:
		return fmt.Errorf("rows of %s from %d on, which has them through %d: %w", p.TP, base, p.Indexed, siltstone.ErrCorrupt)
	case end > p.Next:
		return fmt.Errorf("rows of %s up to %d, which ends at %d: %w", p.TP, end, p.Next, siltstone.ErrCorrupt)
	}
	for i := range rows {
		r := &rows[i]
		if r.OffsetDelta < 0 || r.Offsets < 1 || r.OffsetDelta > offsets-int64(r.Offsets) {
			return fmt.Errorf("row %d of %s lies outside its range: %w", i, p.TP, siltstone.ErrCorrupt)
		}
		if r.ProducerID >= 0 {
			p.addRow(base+siltstone.Offset(r.OffsetDelta), r)
		}
	}
	p.Indexed = end
	return nil
}

func (p *Partition) addRow(at siltstone.Offset, r *segment.Row) {
	pr := p.Producers[r.ProducerID]
	if pr == nil {
		pr = &Producer{ID: r.ProducerID, Epoch: r.ProducerEpoch, CoordinatorEpoch: -1, TxnStart: -1}
		if p.Producers == nil {
			p.Producers = map[int64]*Producer{}
		}
		p.Producers[r.ProducerID] = pr
	}
	if pr.Epoch != r.ProducerEpoch {
		pr.Epoch, pr.Batches = r.ProducerEpoch, nil
	}
	pr.LastTimestamp = r.MaxTimestamp
	if r.Attributes.Control() {
		p.endTxn(pr, at, r)
		return
	}
	if r.Attributes.Transactional() && pr.TxnStart < 0 {
		pr.TxnStart = at
	}
	if len(pr.Batches) == rememberedBatches {
		copy(pr.Batches, pr.Batches[1:])
		pr.Batches = pr.Batches[:rememberedBatches-1]
	}
	pr.Batches = append(pr.Batches, ProducerBatch{at, r.Offsets, r.BaseSequence, r.MaxTimestamp})
}

// endTxn folds a marker.
func (p *Partition) endTxn(pr *Producer, at siltstone.Offset, r *segment.Row) {
	if r.Marker != batch.Abort && r.Marker != batch.Commit {
		return
	}
	pr.CoordinatorEpoch = r.CoordinatorEpoch
	first := pr.TxnStart
	pr.TxnStart = -1
	if first >= 0 && r.Marker == batch.Abort {
		p.Aborted = append(p.Aborted, AbortedTxn{pr.ID, first, at, p.LastStable(at + 1)})
	}
}

// LastStable is the offset of the first record of an open transaction below
// Indexed, or end if there is none.
func (p *Partition) LastStable(end siltstone.Offset) siltstone.Offset {
	first := siltstone.Offset(math.MaxInt64)
	for _, pr := range p.Producers {
		if pr.TxnStart >= 0 {
			first = min(first, pr.TxnStart)
		}
	}
	return min(first, end)
}
