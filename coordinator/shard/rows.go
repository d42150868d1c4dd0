package shard

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/internal/wire"
)

// First bytes of the keys of a checkpoint's rows.
const (
	rowLeadership = 0
	rowPartition  = 1
	rowDropped    = 2
)

// PartitionKey is the key of a partition's row in a checkpoint. That row alone,
// restored onto a new State, gives the partition.
func PartitionKey(tp siltstone.TopicPartition) []byte {
	b := append([]byte{rowPartition}, tp.Topic[:]...)
	return binary.BigEndian.AppendUint32(b, uint32(tp.Partition))
}

// Rows yields the checkpoint's rows, sorted by key.
func (s *State) Rows(yield func(key, value []byte) bool) {
	lead := binary.AppendUvarint(nil, uint64(s.epoch))
	lead = binary.BigEndian.AppendUint64(lead, uint64(s.leader))
	if !yield([]byte{rowLeadership}, appendIncarnations(lead, s.isr)) {
		return
	}
	for p := range s.Partitions() {
		if !yield(PartitionKey(p.TP), p.appendRow(nil)) {
			return
		}
	}
	var ids objects
	dropped := s.droppedObjects()
	row := binary.AppendUvarint(nil, uint64(len(dropped)))
	for _, id := range dropped {
		row = binary.AppendUvarint(ids.append(row, id), uint64(s.dropped[id]))
	}
	yield([]byte{rowDropped}, row)
}

// Restore takes back one row. Errors wrap siltstone.ErrCorrupt, or
// siltstone.ErrNewerFormat for a row of a kind that is not known.
func (s *State) Restore(key, value []byte) error {
	in := wire.NewReader(value)
	switch {
	case len(key) == 1 && key[0] == rowLeadership:
		s.epoch = readEpoch(in)
		s.leader = siltstone.Incarnation(in.Uint64())
		s.isr = readIncarnations(in)
	case len(key) == 1 && key[0] == rowDropped:
		var ids objects
		for range in.Count(minObjectBytes + 1) {
			id := ids.read(in)
			s.dropped[id] = coordinator.Seq(in.Uvarint(math.MaxUint64))
		}
	case len(key) == len(PartitionKey(siltstone.TopicPartition{})) && key[0] == rowPartition:
		tp := siltstone.TopicPartition{Partition: int32(binary.BigEndian.Uint32(key[17:]))}
		copy(tp.Topic[:], key[1:])
		s.restorePartition(tp, in)
	default:
		return fmt.Errorf("row %x: %w", key, siltstone.ErrNewerFormat)
	}
	if err := in.Close(); err != nil {
		return fmt.Errorf("row %x: %w", key, err)
	}
	return nil
}

func (s *State) restorePartition(tp siltstone.TopicPartition, in *wire.Reader) {
	number := uint32(in.Uvarint(math.MaxUint32))
	_, known := s.partitions[partitionKey{number, tp.Partition}]
	if known || tp.Partition < 0 || !s.free(tp.Topic, number) || in.Err() != nil {
		in.Fail("partition %s cannot have number %d", tp, number)
		return
	}
	s.open(tp, number).readRow(in)
}

func (p *Partition) appendRow(b []byte) []byte {
	for _, v := range []uint64{uint64(p.Number), uint64(p.Next), uint64(p.LogStart), uint64(p.Indexed)} {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Epochs)))
	var last EpochStart
	for _, e := range p.Epochs {
		b = binary.AppendUvarint(b, uint64(e.Epoch-last.Epoch))
		b = binary.AppendUvarint(b, uint64(e.Start-last.Start))
		last = e
	}
	b = p.appendSpans(b)
	b = binary.AppendUvarint(b, uint64(len(p.Producers)))
	for _, id := range slices.Sorted(maps.Keys(p.Producers)) {
		b = p.Producers[id].append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Aborted)))
	for _, a := range p.Aborted {
		b = binary.AppendVarint(b, a.ProducerID)
		for _, off := range []siltstone.Offset{a.First, a.Last, a.LastStable} {
			b = binary.AppendUvarint(b, uint64(off))
		}
	}
	return b
}

func (p *Partition) appendSpans(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(p.spans)))
	var ids objects
	next, timestamp := int64(0), int64(0)
	for _, s := range p.spans {
		b = ids.append(b, p.objects.ids[s.object])
		b = binary.AppendUvarint(b, uint64(s.base-next))
		b = binary.AppendUvarint(b, uint64(s.offsets))
		b = binary.AppendUvarint(b, uint64(s.bytes))
		b = binary.AppendVarint(b, s.timestamp-timestamp)
		b = binary.AppendUvarint(b, uint64(s.generation))
		next, timestamp = int64(s.end()), s.timestamp
	}
	return b
}

// maxOffset bounds what is read back, so that no sum of offsets overflows.
const maxOffset = math.MaxInt64 / 2

func readOffset(in *wire.Reader) siltstone.Offset { return siltstone.Offset(in.Uvarint(maxOffset)) }

func (p *Partition) readRow(in *wire.Reader) {
	p.Next, p.LogStart, p.Indexed = readOffset(in), readOffset(in), readOffset(in)
	if p.LogStart > p.Next || p.Indexed > p.Next {
		in.Fail("start %d and indexed end %d, the end is %d", p.LogStart, p.Indexed, p.Next)
	}
	var last EpochStart
	p.Epochs = wire.List(in, 2, func() EpochStart {
		last.Epoch = readEpochDelta(in, last.Epoch, -int64(in.Uvarint(math.MaxInt32)))
		if last.Start += readOffset(in); last.Start > p.Next {
			in.Fail("epoch %d starts at %d, the end is %d", last.Epoch, last.Start, p.Next)
		}
		return last
	})
	p.readSpans(in)
	for range in.Count(minProducerBytes) {
		pr := readProducer(in)
		if p.Producers == nil {
			p.Producers = map[int64]*Producer{}
		}
		p.Producers[pr.ID] = pr
	}
	p.Aborted = wire.List(in, 4, func() AbortedTxn {
		return AbortedTxn{in.Varint(), readOffset(in), readOffset(in), readOffset(in)}
	})
}

const minSpanBytes = minObjectBytes + 5

func (p *Partition) readSpans(in *wire.Reader) {
	var ids objects
	next, timestamp := int64(0), int64(0)
	n := in.Count(minSpanBytes)
	p.spans = make([]span, 0, n)
	for range n {
		id := ids.read(in)
		s := span{base: next + int64(readOffset(in))}
		s.offsets = uint32(in.Uvarint(math.MaxUint32))
		s.bytes = uint32(in.Uvarint(math.MaxUint32))
		timestamp = int64(uint64(timestamp) + uint64(in.Varint()))
		s.timestamp = timestamp
		s.generation = uint32(in.Uvarint(math.MaxUint32))
		if next = int64(s.end()); next > int64(p.Next) || s.offsets == 0 || s.bytes == 0 || s.timestamp < -1 || in.Err() != nil {
			in.Fail("range %d to %d of %d bytes, time %d", s.base, next, s.bytes, s.timestamp)
			return
		}
		s.object = p.objects.hold(id)
		p.spans = append(p.spans, s)
		p.sizeBytes += int64(s.bytes)
	}
}

func (pr *Producer) append(b []byte) []byte {
	b = binary.AppendVarint(b, pr.ID)
	b = binary.AppendVarint(b, int64(pr.Epoch))
	b = binary.AppendVarint(b, int64(pr.CoordinatorEpoch))
	b = binary.AppendVarint(b, pr.LastTimestamp)
	b = binary.AppendUvarint(b, uint64(pr.TxnStart+1))
	b = binary.AppendUvarint(b, uint64(len(pr.Batches())))
	for _, batch := range pr.Batches() {
		b = binary.AppendUvarint(b, uint64(batch.Base))
		b = binary.AppendUvarint(b, uint64(batch.Offsets))
		b = binary.AppendVarint(b, int64(batch.FirstSequence))
		b = binary.AppendVarint(b, batch.Timestamp)
	}
	return b
}

const minProducerBytes = 6

func readProducer(in *wire.Reader) *Producer {
	pr := &Producer{ID: in.Varint()}
	pr.Epoch = int16(readBetween(in, math.MinInt16, math.MaxInt16))
	pr.CoordinatorEpoch = int32(readBetween(in, math.MinInt32, math.MaxInt32))
	pr.LastTimestamp = in.Varint()
	pr.TxnStart = readOffset(in) - 1
	n := in.Count(4)
	if n > rememberedBatches {
		in.Fail("%d batches of producer %d", n, pr.ID)
		return pr
	}
	for i := range n {
		b := ProducerBatch{Base: readOffset(in), Offsets: int32(in.Uvarint(math.MaxInt32))}
		b.FirstSequence = int32(readBetween(in, 0, math.MaxInt32))
		b.Timestamp = in.Varint()
		if i > 0 && b.FirstSequence != pr.nextSequence() {
			in.Fail("sequence %d of producer %d, where %d is next", b.FirstSequence, pr.ID, pr.nextSequence())
		}
		pr.Add(pr.Epoch, b)
	}
	return pr
}

func readBetween(in *wire.Reader, low, high int64) int64 {
	v := in.Varint()
	if v < low || v > high {
		in.Fail("%d is not between %d and %d", v, low, high)
	}
	return v
}
