package shard

import (
	"fmt"
	"math"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// Producer is what a partition remembers of an idempotent producer (KIP-98).
// It is a value that can be copied.
type Producer struct {
	ID               int64
	LastTimestamp    int64            // when it last wrote, by its leader's clock, ms
	TxnStart         siltstone.Offset // of its open transaction; -1
	CoordinatorEpoch int32            // of its last marker; -1
	Epoch            int16

	// The last batches of this Epoch, oldest first. Their sequence numbers
	// follow each other.
	remembered int8
	batches    [rememberedBatches]ProducerBatch
}

// ProducerBatch is one batch of an idempotent producer.
type ProducerBatch struct {
	Base          siltstone.Offset
	Timestamp     int64 // largest of the batch
	Offsets       int32
	FirstSequence int32
}

// rememberedBatches is how many of a producer's batches a retry may repeat:
// the most that Kafka's clients have in flight.
const rememberedBatches = 5

// NewProducer is one that has written nothing.
func NewProducer(id int64, epoch int16) Producer {
	return Producer{ID: id, Epoch: epoch, CoordinatorEpoch: -1, TxnStart: -1}
}

// Batches are those that a retry may repeat, oldest first. Not to be changed.
func (pr *Producer) Batches() []ProducerBatch { return pr.batches[:pr.remembered] }

// LastSequence is that of the last record of this Epoch; -1 where there is none.
func (pr *Producer) LastSequence() int32 {
	if pr.remembered == 0 {
		return -1
	}
	return pr.batches[pr.remembered-1].lastSequence()
}

// lastSequence is that of the batch's last record. After the largest comes 0.
func (b ProducerBatch) lastSequence() int32 {
	return int32((int64(b.FirstSequence) + int64(b.Offsets) - 1) & math.MaxInt32)
}

// nextSequence is what a batch of this Epoch has to begin with.
func (pr *Producer) nextSequence() int32 {
	return int32((int64(pr.LastSequence()) + 1) & math.MaxInt32)
}

// Check says whether a batch of so many records may follow what is known of
// its producer, or repeats one of the last batches: then it returns that one.
// Errors wrap siltstone.ErrProducerEpoch or siltstone.ErrOutOfOrderSequence.
func (pr *Producer) Check(epoch int16, first, records int32) (original ProducerBatch, repeated bool, err error) {
	if epoch < pr.Epoch {
		return original, false, fmt.Errorf("epoch %d of producer %d, which is at %d: %w", epoch, pr.ID, pr.Epoch, siltstone.ErrProducerEpoch)
	}
	next := int32(0)
	if epoch == pr.Epoch {
		for _, b := range pr.Batches() {
			if b.FirstSequence == first && b.Offsets == records {
				return b, true, nil
			}
		}
		next = pr.nextSequence()
	}
	if first != next {
		return original, false, fmt.Errorf("sequence %d of producer %d, epoch %d: %d is next: %w", first, pr.ID, epoch, next, siltstone.ErrOutOfOrderSequence)
	}
	return original, false, nil
}

// Add takes a batch that the log has taken. One of another epoch, or that does
// not follow the last one, is from a producer whose past was forgotten.
func (pr *Producer) Add(epoch int16, b ProducerBatch) {
	if epoch != pr.Epoch || b.FirstSequence != pr.nextSequence() {
		pr.Epoch, pr.remembered = epoch, 0
	}
	if pr.remembered == rememberedBatches {
		copy(pr.batches[:], pr.batches[1:])
		pr.remembered--
	}
	pr.batches[pr.remembered] = b
	pr.remembered++
}

// Idle says whether a producer has not written for so long, and counts as not
// known. While its transaction is open it is not idle.
func (pr *Producer) Idle(nowMS, limitMS int64) bool {
	return pr.TxnStart < 0 && nowMS-pr.LastTimestamp >= limitMS
}

// ForgetIdle forgets the producers that have not written for so long.
func (s *State) ForgetIdle(nowMS, limitMS int64) {
	for _, p := range s.partitions {
		for id, pr := range p.Producers {
			if pr.Idle(nowMS, limitMS) {
				delete(p.Producers, id)
			}
		}
		if len(p.Producers) == 0 {
			p.Producers = nil
		}
	}
}

// AbortedTxn is one transaction whose records read_committed readers skip.
type AbortedTxn struct {
	ProducerID  int64
	First, Last siltstone.Offset // Last is the marker's
	LastStable  siltstone.Offset // once the marker was in
}

// AddRows takes producers and transactions from the index rows of a range that
// a Segment of the time timeMS has assigned. Rows without a producer may be
// left out. Ranges are given in order of their offsets, and none is left out;
// one below Indexed was given before, and changes nothing.
func (p *Partition) AddRows(a Assigned, timeMS int64, rows []segment.Row) error {
	switch {
	case a.End() <= p.Indexed:
		return nil
	case a.Base < p.Indexed:
		return fmt.Errorf("rows of %s from %d on, which has them through %d: %w", p.TP, a.Base, p.Indexed, siltstone.ErrCorrupt)
	case a.End() > p.Next:
		return fmt.Errorf("rows of %s up to %d, which ends at %d: %w", p.TP, a.End(), p.Next, siltstone.ErrCorrupt)
	}
	for i := range rows {
		r := &rows[i]
		if r.OffsetDelta < 0 || r.Offsets < 1 || r.OffsetDelta > a.Offsets-int64(r.Offsets) {
			return fmt.Errorf("row %d of %s lies outside its range: %w", i, p.TP, siltstone.ErrCorrupt)
		}
		if r.ProducerID >= 0 && (r.ProducerEpoch < 0 || r.BaseSequence < 0 && !r.Attributes.Control()) {
			return fmt.Errorf("row %d of %s: producer %d, epoch %d, sequence %d: %w",
				i, p.TP, r.ProducerID, r.ProducerEpoch, r.BaseSequence, siltstone.ErrCorrupt)
		}
	}
	for i := range rows {
		if r := &rows[i]; r.ProducerID >= 0 {
			p.addRow(a.Base+siltstone.Offset(r.OffsetDelta), timeMS, r)
		}
	}
	p.Indexed = a.End()
	return nil
}

func (p *Partition) addRow(at siltstone.Offset, timeMS int64, r *segment.Row) {
	pr := p.Producers[r.ProducerID]
	if pr == nil {
		one := NewProducer(r.ProducerID, r.ProducerEpoch)
		if pr = &one; p.Producers == nil {
			p.Producers = map[int64]*Producer{}
		}
		p.Producers[r.ProducerID] = pr
	}
	pr.LastTimestamp = timeMS
	if r.Attributes.Control() {
		p.endTxn(pr, at, r)
		return
	}
	if r.Attributes.Transactional() && pr.TxnStart < 0 {
		pr.TxnStart = at
	}
	pr.Add(r.ProducerEpoch, ProducerBatch{Base: at, Offsets: r.Offsets, FirstSequence: r.BaseSequence, Timestamp: r.MaxTimestamp})
}

// endTxn folds a marker.
func (p *Partition) endTxn(pr *Producer, at siltstone.Offset, r *segment.Row) {
	if pr.Epoch != r.ProducerEpoch {
		pr.Epoch, pr.remembered = r.ProducerEpoch, 0
	}
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
