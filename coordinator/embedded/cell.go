package embedded

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal ends a stored value with its CRC.
func seal(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// unseal takes the CRC off again. What is left has at least so many bytes.
func unseal(b []byte, atLeast int) ([]byte, error) {
	end := len(b) - 4
	if end < atLeast {
		return nil, fmt.Errorf("stored value of %d bytes: %w", len(b), siltstone.ErrCorrupt)
	}
	if binary.BigEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
		return nil, fmt.Errorf("CRC of stored value: %w", siltstone.ErrCorrupt)
	}
	return b[:end], nil
}

func seqKey(seq coordinator.Seq) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(seq))
}

const nonceBytes = len(coordinator.Nonce{})

func encodeSlot(e coordinator.Entry) []byte {
	b := make([]byte, 0, nonceBytes+len(e.Data)+4)
	return seal(append(append(b, e.Nonce[:]...), e.Data...))
}

// decodeSlot copies what it returns.
func decodeSlot(key, stored []byte) (coordinator.Entry, error) {
	if len(key) != 8 {
		return coordinator.Entry{}, fmt.Errorf("slot key %x: %w", key, siltstone.ErrCorrupt)
	}
	seq := coordinator.Seq(binary.BigEndian.Uint64(key))
	b, err := unseal(stored, nonceBytes)
	if err != nil {
		return coordinator.Entry{}, fmt.Errorf("slot %d: %w", seq, err)
	}
	return coordinator.Entry{Seq: seq, Nonce: coordinator.Nonce(b), Data: append([]byte{}, b[nonceBytes:]...)}, nil
}

// stored is a register as it lies in the file.
type stored struct {
	deleted bool
	version uint64
	put     time.Time // only for how long a tombstone is kept
	nonce   coordinator.Nonce
	data    []byte
}

const registerHeaderBytes = 1 + 8 + 8 + nonceBytes

func (r stored) encode() []byte {
	b := make([]byte, 1, registerHeaderBytes+len(r.data)+4)
	if r.deleted {
		b[0] = 1
	}
	b = binary.BigEndian.AppendUint64(b, r.version)
	b = binary.BigEndian.AppendUint64(b, uint64(r.put.UnixMilli()))
	b = append(b, r.nonce[:]...)
	return seal(append(b, r.data...))
}

// decodeRegister copies what it returns. nil is a register that was never put.
func decodeRegister(key, value []byte) (stored, error) {
	if value == nil {
		return stored{}, nil
	}
	b, err := unseal(value, registerHeaderBytes)
	if err == nil && b[0] > 1 {
		err = fmt.Errorf("flags %x: %w", b[0], siltstone.ErrCorrupt)
	}
	if err != nil {
		return stored{}, fmt.Errorf("register %.64q: %w", key, err)
	}
	return stored{
		deleted: b[0] == 1,
		version: binary.BigEndian.Uint64(b[1:]),
		put:     time.UnixMilli(int64(binary.BigEndian.Uint64(b[9:]))),
		nonce:   coordinator.Nonce(b[17:]),
		data:    append([]byte{}, b[registerHeaderBytes:]...),
	}, nil
}

// value is the register as callers know it. Version 0 is none.
func (r stored) value() coordinator.Value {
	if r.version == 0 {
		return coordinator.Value{}
	}
	v := coordinator.Value{Version: coordinator.Version(strconv.FormatUint(r.version, 10)), Nonce: r.nonce, Deleted: r.deleted}
	if !r.deleted {
		v.Data = r.data
	}
	return v
}
