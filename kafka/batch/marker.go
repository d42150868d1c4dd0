package batch

import (
	"encoding/binary"
	"fmt"
)

// Marker is the one record of a control batch: how a transaction ended (KIP-98).
type Marker struct {
	Type             MarkerType
	CoordinatorEpoch int32
}

// MarkerType is how it ended.
type MarkerType int8

// Types of markers.
const (
	Abort  MarkerType = 0
	Commit MarkerType = 1
)

const (
	markerKeyBytes   = 4 // version, type
	markerValueBytes = 6 // version, coordinator epoch
	maxMarkerBytes   = 1 << 10
)

// ParseMarker reads the marker of a whole control batch. Versions above 0 may
// have more in them than it knows, as Kafka has it.
func ParseMarker(b []byte) (Marker, error) {
	var m Marker
	markers := 0
	for rec, err := range Records(b, maxMarkerBytes) {
		if err != nil {
			return Marker{}, err
		}
		if len(rec.Key) < markerKeyBytes || len(rec.Value) < markerValueBytes {
			return Marker{}, fmt.Errorf("%w: a marker of %d and %d bytes", ErrInvalid, len(rec.Key), len(rec.Value))
		}
		version, kind := int16At(rec.Key, 0), int16At(rec.Key, 2)
		if version < 0 || int16At(rec.Value, 0) < 0 || kind != int16(Abort) && kind != int16(Commit) {
			return Marker{}, fmt.Errorf("%w: a marker of version %d, type %d", ErrInvalid, version, kind)
		}
		m = Marker{Type: MarkerType(kind), CoordinatorEpoch: int32At(rec.Value, 2)}
		markers++
	}
	if markers != 1 {
		return Marker{}, fmt.Errorf("%w: %d markers", ErrInvalid, markers)
	}
	return m, nil
}

// Record is the marker as a record, for a batch with ControlBit and TransactionalBit.
func (m Marker) Record(ms int64) Record {
	key := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(m.Type))
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(m.CoordinatorEpoch))
	return Record{Timestamp: ms, Key: key, Value: value}
}
