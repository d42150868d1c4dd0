package ledger

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// A pointer is the register that names a ledger's newest checkpoint, and where
// in it the index lies. docs/formats/checkpoint.md has the bytes.
const (
	pointerVersion = 1
	pointerBytes   = 1 + 8 + len(Hash{}) + 8 + 8 + 4 // without key and CRC
)

// checkpointKey is the register of a ledger's pointer, and what the keys of
// its checkpoints begin with.
func checkpointKey(ledger string) string { return "checkpoint/" + ledger }

// objectKey is a checkpoint's object. A key is written once: the nonce tells
// the tries of several writers apart.
func objectKey(ledger string, seq coordinator.Seq, nonce coordinator.Nonce) string {
	return fmt.Sprintf("%s/%020d-%x", checkpointKey(ledger), seq, nonce)
}

func (cp Checkpoint) appendPointer(b []byte) []byte {
	b = append(b, pointerVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(cp.At.Seq))
	b = append(b, cp.At.Hash[:]...)
	b = binary.BigEndian.AppendUint64(b, cp.index.position)
	b = binary.BigEndian.AppendUint64(b, cp.index.lengthBytes)
	b = binary.BigEndian.AppendUint32(b, cp.index.crc)
	b = append(b, cp.Key...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func parsePointer(ledger string, b []byte) (Checkpoint, error) {
	if len(b) < pointerBytes+4 {
		return Checkpoint{}, fmt.Errorf("checkpoint pointer of %s, %d bytes: %w", ledger, len(b), siltstone.ErrCorrupt)
	}
	end := len(b) - 4
	if binary.BigEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
		return Checkpoint{}, fmt.Errorf("checkpoint pointer of %s, CRC: %w", ledger, siltstone.ErrCorrupt)
	}
	switch v := b[0]; {
	case v > pointerVersion:
		return Checkpoint{}, fmt.Errorf("checkpoint pointer of %s, format %d, this release knows %d: %w", ledger, v, pointerVersion, siltstone.ErrNewerFormat)
	case v != pointerVersion:
		return Checkpoint{}, fmt.Errorf("checkpoint pointer of %s, format %d: %w", ledger, v, siltstone.ErrCorrupt)
	}
	return Checkpoint{
		Ledger: ledger,
		At:     Position{Seq: coordinator.Seq(binary.BigEndian.Uint64(b[1:])), Hash: Hash(b[9:25])},
		Key:    string(b[pointerBytes:end]),
		index: place{
			position:    binary.BigEndian.Uint64(b[25:]),
			lengthBytes: binary.BigEndian.Uint64(b[33:]),
			crc:         binary.BigEndian.Uint32(b[41:]),
		},
	}, nil
}
