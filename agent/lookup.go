package agent

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/shard"
	"github.com/siltstone-io/siltstone/kafka/batch"
	"github.com/siltstone-io/siltstone/tiered"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// maxRecordBytes bounds what is decompressed to find a record by its time.
const maxRecordBytes = 256 << 20

// OffsetForTime finds the first visible record at or after a time in ms, or
// what one of siltstone's special times asks for. current is the leader epoch
// that the caller believes in, -1 for none.
func (a *Agent) OffsetForTime(ctx context.Context, tp siltstone.TopicPartition, ms int64, current siltstone.Epoch, _ siltstone.Isolation) (siltstone.TimedOffset, error) {
	from := siltstone.Offset(0)
	for try := 0; ; {
		op := &timeOp{tp: tp, ms: ms, current: current, from: from, done: make(chan struct{})}
		if err := a.do(ctx, op, op.done); err != nil {
			return siltstone.TimedOffset{}, err
		}
		if op.err != nil || op.batch == nil && op.cold == nil {
			return op.found, op.err
		}
		search := a.searchTime
		if op.largest {
			search = a.searchLargest
		}
		found, err := search(ctx, op)
		switch {
		case errors.Is(err, bucket.ErrNotFound) && try < 3:
			try++
			continue
		case errors.Is(err, bucket.ErrNotFound):
			return found, fmt.Errorf("%w: %w", siltstone.ErrCorrupt, err)
		case err != nil || found.Offset >= 0:
			return found, err
		}
		from = op.until // no record of the range is visible, at or after the time: those that follow
	}
}

// do hands an operation to the loop and waits for it.
func (a *Agent) do(ctx context.Context, e event, done <-chan struct{}) error {
	if err := a.post(ctx, e); err != nil {
		return err
	}
	return a.wait(ctx, done)
}

// searchTime looks through one range, or one batch of the tail.
func (a *Agent) searchTime(ctx context.Context, op *timeOp) (siltstone.TimedOffset, error) {
	none := siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}
	for b := op.batch; ; {
		if op.cold != nil {
			var err error
			b, err = a.reader.FirstAtOrAfter(ctx, tiered.Request{Partition: op.tp, Range: *op.cold, From: op.from}, op.target)
			if err != nil || b == nil {
				return none, err
			}
		}
		h, err := batch.ParseHeader(b)
		if err != nil {
			return none, err
		}
		found, err := a.find(ctx, b, h, op)
		if err != nil || found.Offset >= 0 || op.cold == nil {
			return found, err
		}
		op.from = h.BaseOffset + siltstone.Offset(h.LastOffsetDelta) + 1
	}
}

// searchLargest looks through what is left of one range for the first of its
// records with the largest time, if that is the target at least.
func (a *Agent) searchLargest(ctx context.Context, op *timeOp) (siltstone.TimedOffset, error) {
	best := siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}
	for {
		b, err := a.reader.FirstAtOrAfter(ctx, tiered.Request{Partition: op.tp, Range: *op.cold, From: op.from}, op.target)
		if err != nil || b == nil {
			return best, err
		}
		h, err := batch.ParseHeader(b)
		if err != nil {
			return best, err
		}
		found, err := a.find(ctx, b, h, op)
		for ; err == nil && found.Offset >= 0; found, err = a.find(ctx, b, h, op) {
			best, op.target = found, found.Timestamp+1
		}
		if err != nil {
			return best, err
		}
		op.from = h.BaseOffset + siltstone.Offset(h.LastOffsetDelta) + 1
	}
}

// find is findInBatch, for as many at once as there are CPUs: each may hold a
// batch as it is when decompressed.
func (a *Agent) find(ctx context.Context, b []byte, h batch.Header, op *timeOp) (siltstone.TimedOffset, error) {
	if err := a.finding.Acquire(ctx, 1); err != nil {
		return siltstone.TimedOffset{}, context.Cause(ctx)
	}
	defer a.finding.Release(1)
	return findInBatch(b, h, op)
}

// findInBatch is the first visible record at or after the time.
func findInBatch(b []byte, h batch.Header, op *timeOp) (siltstone.TimedOffset, error) {
	if h.BaseOffset >= op.start {
		return batch.Find(b, op.target, maxRecordBytes)
	}
	for r, err := range batch.Records(b, maxRecordBytes) { // its first records are trimmed
		if err != nil {
			return siltstone.TimedOffset{}, err
		}
		if r.Timestamp >= op.target && r.Offset >= op.start {
			return siltstone.TimedOffset{Offset: r.Offset, Timestamp: r.Timestamp, Epoch: h.Epoch}, nil
		}
	}
	return siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}, nil
}

// A timeOp asks the loop where the record may be.
type timeOp struct {
	tp      siltstone.TopicPartition
	ms      int64
	current siltstone.Epoch
	from    siltstone.Offset // looked through below
	done    chan struct{}

	// Outcome: found, an error, or one place to look.
	found   siltstone.TimedOffset
	err     error
	target  int64
	start   siltstone.Offset // visible from here
	batch   []byte           // in memory
	cold    *shard.Range
	until   siltstone.Offset // the end of the place
	largest bool             // of cold the largest time counts, not the first
}

func (op *timeOp) handle(c *core) {
	defer close(op.done)
	op.found = siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}
	p, err := c.readable(&siltstone.FetchPart{Partition: op.tp, Epoch: op.current, Offset: -1})
	if p == nil || err != nil && !errors.Is(err, siltstone.ErrOffsetOutOfRange) {
		op.err = err
		return
	}
	op.start, op.target = p.start, op.ms
	switch op.ms {
	case siltstone.TimeLatest:
		op.found = siltstone.TimedOffset{Offset: p.high(), Timestamp: -1, Epoch: p.shard.epoch}
	case siltstone.TimeEarliest:
		op.found = siltstone.TimedOffset{Offset: p.start, Timestamp: -1, Epoch: p.epochAt(p.start)}
	case siltstone.TimeMaxTimestamp:
		op.placeLargest(p)
	default:
		op.place(p)
	}
}

// place finds the first range or batch that may hold the record.
func (op *timeOp) place(p *partition) {
	known, _ := p.shard.fold().Partition(p.tp)
	from := max(op.from, op.start)
	op.from = from
	for i := known.Find(from); i < known.Len(); i++ {
		r := known.Range(i)
		if p.tail.covers(r.Base) {
			break
		}
		if r.MaxTimestamp >= op.target {
			op.cold, op.until = &r, r.End()
			return
		}
	}
	for i := p.tail.from(from); i < p.tail.len(); i++ {
		b := p.tail.at(i)
		if b.end() > p.high() {
			return
		}
		if b.maxTimestamp >= op.target {
			op.batch, op.until = b.bytes(), b.end()
			return
		}
	}
}

// placeLargest finds the first range or batch that may hold the record with the
// largest time. What a range that the log start cuts says of its largest may be
// of a record that is gone: what is left of it is looked through first, for
// anything that is not before all that follows.
func (op *timeOp) placeLargest(p *partition) {
	known, _ := p.shard.fold().Partition(p.tp)
	op.from, op.target = max(op.from, op.start), -1
	whole := op.from
	var cut shard.Range
	if i := known.Find(op.from); i < known.Len() && known.Range(i).Base < op.start {
		cut = known.Range(i)
		whole = cut.End()
	}
	for r := range known.Ranges(whole) {
		op.target = max(op.target, r.MaxTimestamp)
	}
	switch {
	case cut.Offsets > 0 && cut.MaxTimestamp >= max(op.target, 0):
		op.target = max(op.target, 0)
		op.cold, op.until, op.largest = &cut, whole, true
	case op.target >= 0:
		op.place(p)
	}
}

// Bounds of the plan for one fetch, and for one of its partitions. Ranges may
// be tiny, and the client of one that reads thousands of objects gives up and
// asks for them again, for ever.
const (
	maxPlanRanges = 512
	maxPartRanges = 128
)

// coldRanges are the flushed ranges from off on, as far as limit goes and
// some more to read ahead, at most so many, and how many bytes there are, up
// to the limit.
func (c *core) coldRanges(p *partition, off siltstone.Offset, limit, most int) (ranges []shard.Range, size int) {
	known, _ := p.shard.fold().Partition(p.tp)
	ahead := 0
	for i := known.Find(off); i < known.Len() && ahead < readAhead && len(ranges) < most; i++ {
		if size >= limit {
			ahead++
		}
		r := known.Range(i)
		ranges = append(ranges, r)
		size += int(r.LengthBytes)
	}
	return ranges, min(size, max(limit, 1))
}

// readAhead is how many ranges past those asked for are loaded too.
const readAhead = 4

// EpochEnd says where a leader epoch ends (KIP-101).
func (a *Agent) EpochEnd(ctx context.Context, tp siltstone.TopicPartition, epoch, current siltstone.Epoch) (siltstone.EpochEnd, error) {
	op := &epochOp{tp: tp, epoch: epoch, current: current, done: make(chan struct{})}
	if err := a.do(ctx, op, op.done); err != nil {
		return siltstone.EpochEnd{Epoch: -1, End: -1}, err
	}
	return op.end, op.err
}

type epochOp struct {
	tp             siltstone.TopicPartition
	epoch, current siltstone.Epoch
	done           chan struct{}
	end            siltstone.EpochEnd
	err            error
}

func (op *epochOp) handle(c *core) {
	defer close(op.done)
	op.end = siltstone.EpochEnd{Epoch: -1, End: -1}
	p, err := c.readable(&siltstone.FetchPart{Partition: op.tp, Epoch: op.current, Offset: -1})
	if p == nil || err != nil && !errors.Is(err, siltstone.ErrOffsetOutOfRange) {
		op.err = err
		return
	}
	op.end = p.endOfEpoch(op.epoch)
}

// epochs are the starts of the partition's leader epochs, the one in office included.
func (p *partition) epochs() []shard.EpochStart {
	known, _ := p.shard.fold().Partition(p.tp)
	all := known.Epochs
	if n := len(all); n == 0 || all[n-1].Epoch < p.shard.epoch {
		all = append(all[:n:n], shard.EpochStart{Epoch: p.shard.epoch, Start: p.began})
	}
	return all
}

// endOfEpoch is where the largest epoch up to e ends, as Kafka's leader epoch
// cache answers: the one in office at the log's end, one that is not known yet nowhere.
func (p *partition) endOfEpoch(e siltstone.Epoch) siltstone.EpochEnd {
	all := p.epochs()
	next := sort.Search(len(all), func(i int) bool { return all[i].Epoch > e })
	switch {
	case e < 0 || next == len(all) && e > all[next-1].Epoch:
		return siltstone.EpochEnd{Epoch: -1, End: -1}
	case next == len(all):
		return siltstone.EpochEnd{Epoch: e, End: p.next}
	case next == 0:
		return siltstone.EpochEnd{Epoch: e, End: all[0].Start}
	}
	return siltstone.EpochEnd{Epoch: all[next-1].Epoch, End: all[next].Start}
}

// epochAt is the leader epoch at an offset.
func (p *partition) epochAt(off siltstone.Offset) siltstone.Epoch {
	all := p.epochs()
	next := sort.Search(len(all), func(i int) bool { return all[i].Start > off })
	if next == 0 {
		return -1
	}
	return all[next-1].Epoch
}
