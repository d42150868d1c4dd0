package shard

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/internal/wire"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// The fewest bytes that the items of lists take.
const (
	minObjectBytes = 2
	minRefBytes    = 2
)

// refs writes or reads partitions, each as its distance from the one before it.
type refs struct {
	number    int64
	partition int64
}

func newRefs() refs { return refs{partition: -1} }

func (r *refs) append(b []byte, number uint32, partition int32) []byte {
	b = binary.AppendVarint(b, int64(number)-r.number)
	from := int64(-1)
	if int64(number) == r.number {
		from = r.partition
	}
	r.number, r.partition = int64(number), int64(partition)
	return binary.AppendVarint(b, r.partition-from-1)
}

func (r *refs) read(in *wire.Reader) (number uint32, partition int32) {
	step := in.Varint()
	if step < -math.MaxUint32 || step > math.MaxUint32 || r.number+step < 0 || r.number+step > math.MaxUint32 {
		in.Fail("topic number %d%+d", r.number, step)
		return 0, 0
	}
	from := int64(-1)
	if step == 0 {
		from = r.partition
	}
	p := in.Varint()
	if p < -math.MaxInt32-1 || p > math.MaxInt32 || p+from+1 < 0 || p+from+1 > math.MaxInt32 {
		in.Fail("partition %d%+d", from+1, p)
		return 0, 0
	}
	r.number, r.partition = r.number+step, p+from+1
	return uint32(r.number), int32(r.partition)
}

// objects writes or reads ids of objects, each as its distance from the one
// before it; an incarnation stands there once, as long as it is the same.
type objects struct{ prev segment.ObjectID }

func (o *objects) append(b []byte, id segment.ObjectID) []byte {
	hours := zigzag(int64(id.Hour) - int64(o.prev.Hour))
	if id.Incarnation == o.prev.Incarnation {
		b = binary.AppendUvarint(b, hours<<1)
	} else {
		b = binary.AppendUvarint(b, hours<<1|1)
		b = binary.BigEndian.AppendUint64(b, uint64(id.Incarnation))
	}
	b = binary.AppendVarint(b, int64(id.Number-o.prev.Number)) // wraps, both ways
	o.prev = id
	return b
}

func (o *objects) read(in *wire.Reader) segment.ObjectID {
	head := in.Uvarint(1 << 36)
	hour := int64(o.prev.Hour) + unzigzag(head>>1)
	if hour < 0 || hour > math.MaxUint32 {
		in.Fail("hour %d", hour)
		return segment.ObjectID{}
	}
	o.prev.Hour = uint32(hour)
	if head&1 == 1 {
		o.prev.Incarnation = siltstone.Incarnation(in.Uint64())
	}
	o.prev.Number += uint64(in.Varint())
	return o.prev
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func appendIncarnations(b []byte, list []siltstone.Incarnation) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, i := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(i))
	}
	return b
}

func readIncarnations(in *wire.Reader) []siltstone.Incarnation {
	n := in.Count(8)
	if n == 0 {
		return nil
	}
	list := make([]siltstone.Incarnation, n)
	for i := range list {
		list[i] = siltstone.Incarnation(in.Uint64())
	}
	return list
}

func readEpoch(in *wire.Reader) siltstone.Epoch { return siltstone.Epoch(in.Uvarint(math.MaxInt32)) }

// readEpochDelta reads an epoch as its distance below another.
func readEpochDelta(in *wire.Reader, from siltstone.Epoch, delta int64) siltstone.Epoch {
	e := int64(from) - delta
	if delta < -math.MaxInt32 || delta > math.MaxInt32 || e < 0 || e > math.MaxInt32 {
		in.Fail("epoch %d less %d", from, delta)
		return 0
	}
	return siltstone.Epoch(e)
}

// extents writes or reads extents; timestamps as distances too.
type extents struct {
	refs
	timestamp int64
}

func newExtents() extents { return extents{refs: newRefs()} }

func (x *extents) append(b []byte, e Extent) []byte {
	b = x.refs.append(b, e.Number, e.Partition)
	b = binary.AppendUvarint(b, uint64(e.Offsets))
	b = binary.AppendUvarint(b, uint64(e.LengthBytes))
	b = binary.AppendVarint(b, int64(uint64(e.MaxTimestamp)-uint64(x.timestamp))) // wraps, both ways
	x.timestamp = e.MaxTimestamp
	return b
}

func (x *extents) read(in *wire.Reader) (e Extent) {
	e.Number, e.Partition = x.refs.read(in)
	e.Offsets = int64(in.Uvarint(math.MaxInt64))
	e.LengthBytes = int64(in.Uvarint(math.MaxInt64))
	x.timestamp = int64(uint64(x.timestamp) + uint64(in.Varint()))
	e.MaxTimestamp = x.timestamp
	return e
}

const minExtentBytes = minRefBytes + 3

// Decode takes an entry's body apart. Errors wrap siltstone.ErrCorrupt, or
// siltstone.ErrNewerFormat for an unknown kind. Nothing points into body.
func Decode(kind byte, body []byte) (Body, error) {
	in := wire.NewReader(body)
	var b Body
	switch kind {
	case KindLead:
		b = readLead(in)
	case KindOpen:
		b = readOpen(in)
	case KindSegment:
		b = readSegment(in)
	case KindReplace:
		b = readReplace(in)
	case KindTrim:
		b = readTrim(in)
	case KindDrop:
		b = readDrop(in)
	default:
		return nil, fmt.Errorf("entry of kind %d: %w", kind, siltstone.ErrNewerFormat)
	}
	if err := in.Close(); err != nil {
		return nil, fmt.Errorf("%T: %w", b, err)
	}
	return b, nil
}
