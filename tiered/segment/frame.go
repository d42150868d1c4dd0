package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/siltstone-io/siltstone"
)

// Constants of the format.
const (
	// Version is the newest format version, and the one that is written.
	Version = 1
	// TrailerBytes is the size of the trailer, in every version.
	TrailerBytes = 60
	// MaxHeaderBytes bounds the header.
	MaxHeaderBytes = minHeaderBytes + 2*maxShards

	headerMagic    = "SILTSEGM"
	trailerMagic   = "SILTSEGT"
	minHeaderBytes = 62
	maxShards      = siltstone.Slots
)

// Places of fields.
const (
	atHeaderVersion = 8
	atHeaderBytes   = 10
	atCluster       = 12
	atHeaderID      = 28
	atCreated       = 48
	atShards        = 56

	atObjectBytes    = 0
	atIndexPosition  = 8
	atIndexBytes     = 16
	atIndexCRC       = 20
	atDataPosition   = 24
	atTrailerID      = 26
	atTrailerVersion = 46
	atTrailerMagic   = 48
	atTrailerCRC     = 56

	idBytes  = 20
	crcBytes = 4
)

var (
	order      = binary.BigEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// damaged names the part of the object that fails its check.
func damaged(part, format string, args ...any) error {
	return fmt.Errorf("segment's %s %s: %w", part, fmt.Sprintf(format, args...), siltstone.ErrCorrupt)
}

func newer(part string, version uint16) error {
	return fmt.Errorf("segment's %s has format version %d, this release reads up to %d: %w", part, version, Version, siltstone.ErrNewerFormat)
}

// Header opens an object.
type Header struct {
	Cluster   siltstone.ClusterID
	ID        ObjectID
	CreatedMS int64
	Shards    []uint16 // of its runs, ascending: each must give the object up before it is deleted
}

func (h *Header) sizeBytes() int { return minHeaderBytes + 2*len(h.Shards) }

func (h *Header) encode() []byte {
	b := make([]byte, h.sizeBytes())
	copy(b, headerMagic)
	order.PutUint16(b[atHeaderVersion:], Version)
	order.PutUint16(b[atHeaderBytes:], uint16(len(b)))
	copy(b[atCluster:], h.Cluster[:])
	putID(b[atHeaderID:], h.ID)
	order.PutUint64(b[atCreated:], uint64(h.CreatedMS))
	order.PutUint16(b[atShards:], uint16(len(h.Shards)))
	for i, s := range h.Shards {
		order.PutUint16(b[atShards+2+2*i:], s)
	}
	seal(b)
	return b
}

// ParseHeader reads the header at the start of b, which may hold more;
// MaxHeaderBytes are always enough.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < minHeaderBytes {
		return Header{}, damaged("header", "is cut at %d bytes", len(b))
	}
	if !bytes.HasPrefix(b, []byte(headerMagic)) {
		return Header{}, damaged("header", "has no magic")
	}
	size := int(order.Uint16(b[atHeaderBytes:]))
	if size < minHeaderBytes || size > len(b) {
		return Header{}, damaged("header", "has %d bytes of %d", len(b), size)
	}
	if b = b[:size]; !sealed(b) {
		return Header{}, damaged("header", "fails its CRC")
	}
	if v := order.Uint16(b[atHeaderVersion:]); v != Version {
		return Header{}, newer("header", v)
	}
	h := Header{
		Cluster:   siltstone.ClusterID(b[atCluster:]),
		ID:        idAt(b[atHeaderID:]),
		CreatedMS: int64(order.Uint64(b[atCreated:])),
	}
	n := int(order.Uint16(b[atShards:]))
	if n > maxShards || size != minHeaderBytes+2*n {
		return Header{}, damaged("header", "of %d bytes names %d shards", size, n)
	}
	for i := range n {
		s := order.Uint16(b[atShards+2+2*i:])
		if i > 0 && s <= h.Shards[i-1] {
			return Header{}, damaged("header", "names shards out of order")
		}
		h.Shards = append(h.Shards, s)
	}
	return h, nil
}

// Trailer closes an object. It says where the index is.
type Trailer struct {
	ID            ObjectID
	ObjectBytes   int64
	DataPosition  int64 // where the header ends and the first run starts
	IndexPosition int64
	IndexBytes    int64
	IndexCRC      uint32
}

func (t *Trailer) encode() []byte {
	b := make([]byte, TrailerBytes)
	order.PutUint64(b[atObjectBytes:], uint64(t.ObjectBytes))
	order.PutUint64(b[atIndexPosition:], uint64(t.IndexPosition))
	order.PutUint32(b[atIndexBytes:], uint32(t.IndexBytes))
	order.PutUint32(b[atIndexCRC:], t.IndexCRC)
	order.PutUint16(b[atDataPosition:], uint16(t.DataPosition))
	putID(b[atTrailerID:], t.ID)
	order.PutUint16(b[atTrailerVersion:], Version)
	copy(b[atTrailerMagic:], trailerMagic)
	seal(b)
	return b
}

// ParseTrailer reads the trailer at the end of b, which may hold more before it.
func ParseTrailer(b []byte) (Trailer, error) {
	if len(b) < TrailerBytes {
		return Trailer{}, damaged("trailer", "is cut at %d bytes", len(b))
	}
	b = b[len(b)-TrailerBytes:]
	if string(b[atTrailerMagic:atTrailerCRC]) != trailerMagic {
		return Trailer{}, damaged("trailer", "has no magic")
	}
	if !sealed(b) {
		return Trailer{}, damaged("trailer", "fails its CRC")
	}
	if v := order.Uint16(b[atTrailerVersion:]); v != Version {
		return Trailer{}, newer("trailer", v)
	}
	t := Trailer{
		ID:            idAt(b[atTrailerID:]),
		ObjectBytes:   int64(order.Uint64(b[atObjectBytes:])),
		DataPosition:  int64(order.Uint16(b[atDataPosition:])),
		IndexPosition: int64(order.Uint64(b[atIndexPosition:])),
		IndexBytes:    int64(order.Uint32(b[atIndexBytes:])),
		IndexCRC:      order.Uint32(b[atIndexCRC:]),
	}
	if t.DataPosition < minHeaderBytes || t.IndexPosition < t.DataPosition ||
		t.ObjectBytes-TrailerBytes-t.IndexBytes != t.IndexPosition {
		return Trailer{}, damaged("trailer", "names places that do not fit together")
	}
	return t, nil
}

func putID(b []byte, id ObjectID) {
	order.PutUint32(b, id.Hour)
	order.PutUint64(b[4:], uint64(id.Incarnation))
	order.PutUint64(b[12:], id.Number)
}

func idAt(b []byte) ObjectID {
	return ObjectID{
		Hour:        order.Uint32(b),
		Incarnation: siltstone.Incarnation(order.Uint64(b[4:])),
		Number:      order.Uint64(b[12:idBytes]),
	}
}

// seal writes the CRC of all before into the last four bytes.
func seal(b []byte) {
	end := len(b) - crcBytes
	order.PutUint32(b[end:], crc32.Checksum(b[:end], castagnoli))
}

func sealed(b []byte) bool {
	end := len(b) - crcBytes
	return order.Uint32(b[end:]) == crc32.Checksum(b[:end], castagnoli)
}
