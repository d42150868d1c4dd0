package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// Hash names an entry and, through the hash in it, all that came before: the
// first 16 bytes of the SHA-256 of its whole frame. The zero Hash stands before
// the first entry.
type Hash [16]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// HashFrame is the hash of an entry's whole data.
func HashFrame(data []byte) Hash {
	sum := sha256.Sum256(data)
	return Hash(sum[:])
}

// Frame is an entry's data, decoded. docs/formats/ledger.md has the bytes.
type Frame struct {
	Kind byte // the fold's own
	// TimeMS is the writer's clock. It counts only for how long an entry is
	// kept; nothing is decided by it.
	TimeMS int64
	Prev   Hash // of the entry one slot below
	Body   []byte
}

const (
	frameVersion     = 1
	frameHeaderBytes = 1 + 1 + 8 + len(Hash{})
	frameBytes       = frameHeaderBytes + 4
	// MaxBodyBytes is the longest body that fits an entry.
	MaxBodyBytes = coordinator.MaxEntryBytes - frameBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode is the frame as it stands in the coordinator.
func (f Frame) Encode() []byte {
	b := make([]byte, 0, frameBytes+len(f.Body))
	b = append(b, frameVersion, f.Kind)
	b = binary.BigEndian.AppendUint64(b, uint64(f.TimeMS))
	b = append(b, f.Prev[:]...)
	b = append(b, f.Body...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// DecodeFrame checks and takes apart an entry's data. Body points into it.
// Errors wrap siltstone.ErrCorrupt or siltstone.ErrNewerFormat.
func DecodeFrame(data []byte) (Frame, error) {
	if len(data) < frameBytes {
		return Frame{}, fmt.Errorf("entry of %d bytes: %w", len(data), siltstone.ErrCorrupt)
	}
	// The CRC of every version stands at the end, so that a newer version is
	// told from damage.
	body := data[:len(data)-4]
	if binary.BigEndian.Uint32(data[len(body):]) != crc32.Checksum(body, castagnoli) {
		return Frame{}, fmt.Errorf("CRC of entry: %w", siltstone.ErrCorrupt)
	}
	switch v := data[0]; {
	case v > frameVersion:
		return Frame{}, fmt.Errorf("entry of format %d, this release knows %d: %w", v, frameVersion, siltstone.ErrNewerFormat)
	case v != frameVersion:
		return Frame{}, fmt.Errorf("entry of format %d: %w", v, siltstone.ErrCorrupt)
	}
	return Frame{
		Kind:   data[1],
		TimeMS: int64(binary.BigEndian.Uint64(data[2:])),
		Prev:   Hash(data[10:frameHeaderBytes]),
		Body:   body[frameHeaderBytes:],
	}, nil
}
