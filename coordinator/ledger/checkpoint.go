package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Checkpoint is a stored fold. docs/formats/checkpoint.md has the bytes.
type Checkpoint struct {
	Ledger string
	At     Position // of the last entry folded into it
	Key    string   // of the object
	index  place
}

// place is where the index of a checkpoint lies in its object, so that one
// read gets it.
type place struct {
	position, lengthBytes uint64
	crc                   uint32
}

// Row is one row of a fold.
type Row struct{ Key, Value []byte }

// EncodedCheckpoint is a checkpoint that is not stored yet. It shares nothing
// with the fold.
type EncodedCheckpoint struct {
	Checkpoint
	body bucket.Body
}

const (
	checkpointVersion = 1
	checkpointMagic   = "SILTCKPT"
	trailerBytes      = 8 + 8 + 4 + 8 + 2 + len(checkpointMagic) + 4
	// blockBytes is where a block of rows ends: at the first row that reaches
	// it. A lookup reads one or two blocks.
	blockBytes = 32 << 10
)

// EncodeCheckpoint encodes the rows of a fold, which come sorted by key. It
// panics where they do not: what it made could not be read.
func EncodeCheckpoint(ledger string, at Position, rows iter.Seq2[[]byte, []byte]) EncodedCheckpoint {
	header := appendHeader(nil, ledger, at)
	e := EncodedCheckpoint{Checkpoint: Checkpoint{Ledger: ledger, At: at}, body: bucket.Body{header}}
	var (
		index       []byte // of the blocks, without their count
		blocks      uint64
		count       uint64 // of rows
		block, last []byte
	)
	end := func() {
		index = binary.AppendUvarint(index, uint64(len(block)))
		index = binary.BigEndian.AppendUint32(index, crc32.Checksum(block, castagnoli))
		e.body, block = append(e.body, block), nil
		blocks++
	}
	for key, value := range rows {
		if count > 0 && bytes.Compare(last, key) >= 0 {
			panic(fmt.Sprintf("ledger: rows of %s: key %x comes after %x", ledger, key, last))
		}
		last = append(last[:0], key...)
		if block == nil {
			block = make([]byte, 0, blockBytes+blockBytes/8)
			index = appendBytes(index, key)
		}
		block = appendBytes(appendBytes(block, key), value)
		count++
		if len(block) >= blockBytes {
			end()
		}
	}
	if block != nil {
		end()
	}
	index = append(binary.AppendUvarint(nil, blocks), index...)
	e.index = place{
		position:    uint64(e.body.Len()),
		lengthBytes: uint64(len(index)),
		crc:         crc32.Checksum(index, castagnoli),
	}
	e.body = append(e.body, index, e.index.appendTrailer(nil, count))
	return e
}

// Checkpoint encodes the state as it is, for Client.SaveCheckpoint to store
// while the Log goes on.
func (l *Log[F, C]) Checkpoint() EncodedCheckpoint {
	return EncodeCheckpoint(l.name, l.at, l.fold.Rows)
}

// DecodeCheckpoint checks every part of a checkpoint object and hands on its
// rows, in order; they point into it. Damage is siltstone.ErrCorrupt and names
// the part; an error of restore is returned as it is.
func DecodeCheckpoint(object []byte, restore func(key, value []byte) error) (Checkpoint, error) {
	index, count, err := parseTrailer(object)
	if err != nil {
		return Checkpoint{}, err
	}
	cp, start, err := parseHeader(object)
	if err != nil {
		return Checkpoint{}, err
	}
	cp.index = index
	blocks, err := parseIndex(object[index.position:][:index.lengthBytes], index)
	if err != nil {
		return Checkpoint{}, err
	}
	var last []byte
	for _, b := range blocks {
		if b.position != start {
			return Checkpoint{}, fmt.Errorf("block at %d, expected at %d: %w", b.position, start, siltstone.ErrCorrupt)
		}
		start += b.lengthBytes
		for row, err := range b.rows(object[b.position:][:b.lengthBytes]) {
			if err != nil {
				return Checkpoint{}, err
			}
			if last != nil && bytes.Compare(last, row.Key) >= 0 {
				return Checkpoint{}, fmt.Errorf("block at %d: key %x comes after %x: %w", b.position, row.Key, last, siltstone.ErrCorrupt)
			}
			last = row.Key
			count--
			if err := restore(row.Key, row.Value); err != nil {
				return Checkpoint{}, err
			}
		}
	}
	if count != 0 {
		return Checkpoint{}, fmt.Errorf("%d rows fewer than the trailer counts: %w", int64(count), siltstone.ErrCorrupt)
	}
	if start != index.position {
		return Checkpoint{}, fmt.Errorf("blocks end at %d, the index is at %d: %w", start, index.position, siltstone.ErrCorrupt)
	}
	return cp, nil
}

func appendHeader(b []byte, ledger string, at Position) []byte {
	b = append(b, checkpointMagic...)
	b = binary.BigEndian.AppendUint16(b, checkpointVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(at.Seq))
	b = append(b, at.Hash[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(ledger)))
	b = append(b, ledger...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseHeader returns also where the header ends. The trailer has told its
// version already.
func parseHeader(b []byte) (cp Checkpoint, end uint64, err error) {
	const fixed = len(checkpointMagic) + 2 + 8 + len(Hash{}) + 2
	bad := func(what string) (Checkpoint, uint64, error) {
		return Checkpoint{}, 0, fmt.Errorf("checkpoint header, %s: %w", what, siltstone.ErrCorrupt)
	}
	if len(b) < fixed || string(b[:len(checkpointMagic)]) != checkpointMagic {
		return bad("magic")
	}
	name := int(binary.BigEndian.Uint16(b[fixed-2:]))
	if len(b) < fixed+name+4 {
		return bad("length of the name")
	}
	if binary.BigEndian.Uint32(b[fixed+name:]) != crc32.Checksum(b[:fixed+name], castagnoli) {
		return bad("CRC")
	}
	if binary.BigEndian.Uint16(b[len(checkpointMagic):]) != checkpointVersion {
		return bad("format")
	}
	cp.Ledger = string(b[fixed : fixed+name])
	cp.At = Position{Seq: coordinator.Seq(binary.BigEndian.Uint64(b[10:])), Hash: Hash(b[18:34])}
	return cp, uint64(fixed + name + 4), nil
}

func (p place) appendTrailer(b []byte, rows uint64) []byte {
	b = binary.BigEndian.AppendUint64(b, p.position)
	b = binary.BigEndian.AppendUint64(b, p.lengthBytes)
	b = binary.BigEndian.AppendUint32(b, p.crc)
	b = binary.BigEndian.AppendUint64(b, rows)
	b = append(b, checkpointMagic...)
	b = binary.BigEndian.AppendUint16(b, checkpointVersion)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseTrailer checks the CRC first: in every version the trailer has this
// size, and magic, version and CRC stand in these places.
func parseTrailer(object []byte) (p place, rows uint64, err error) {
	bad := func(what string) (place, uint64, error) {
		return place{}, 0, fmt.Errorf("checkpoint trailer, %s: %w", what, siltstone.ErrCorrupt)
	}
	if len(object) < trailerBytes {
		return bad("length of the object")
	}
	b := object[len(object)-trailerBytes:]
	if string(b[28:36]) != checkpointMagic {
		return bad("magic")
	}
	if binary.BigEndian.Uint32(b[trailerBytes-4:]) != crc32.Checksum(b[:trailerBytes-4], castagnoli) {
		return bad("CRC")
	}
	switch v := binary.BigEndian.Uint16(b[36:]); {
	case v > checkpointVersion:
		return place{}, 0, fmt.Errorf("checkpoint of format %d, this release knows %d: %w", v, checkpointVersion, siltstone.ErrNewerFormat)
	case v != checkpointVersion:
		return bad("format")
	}
	p = place{
		position:    binary.BigEndian.Uint64(b),
		lengthBytes: binary.BigEndian.Uint64(b[8:]),
		crc:         binary.BigEndian.Uint32(b[16:]),
	}
	if end := uint64(len(object) - trailerBytes); p.position > end || p.lengthBytes != end-p.position {
		return bad("place of the index")
	}
	return p, binary.BigEndian.Uint64(b[20:]), nil
}
