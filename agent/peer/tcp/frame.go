package tcp

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

const (
	// headerBytes of a frame: length and CRC of its payload.
	headerBytes = 8
	// firstBytes of a message are allocated before any of them has come.
	firstBytes = 64 << 10
	// alive is what a peer says on a connection that it has accepted.
	alive = 0x01
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func putLength(header []byte, size int) {
	binary.BigEndian.PutUint32(header, uint32(size))
}

// seal puts the CRCs into the headers of frames whose lengths are in place.
func seal(frames net.Buffers) {
	for i := 0; i < len(frames); {
		header, crc := frames[i], uint32(0)
		i++
		for n := binary.BigEndian.Uint32(header); n > 0; i++ {
			crc = crc32.Update(crc, castagnoli, frames[i])
			n -= uint32(len(frames[i]))
		}
		binary.BigEndian.PutUint32(header[4:], crc)
	}
}

// readFrame reads a message; one without bytes keeps the connection alive.
func readFrame(r *bufio.Reader) ([]byte, error) {
	header, err := r.Peek(headerBytes)
	if err != nil {
		return nil, err
	}
	n, crc := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[4:])
	_, _ = r.Discard(headerBytes) // it was there to be seen
	if n > peer.MaxMessageBytes {
		return nil, fmt.Errorf("%w: a message of %d bytes", errMalformed, n)
	}
	message, err := readGrowing(r, int(n))
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(message, castagnoli) != crc {
		return nil, fmt.Errorf("a message of %d bytes: %w", n, siltstone.ErrCorrupt)
	}
	return message, nil
}

// readGrowing reads n bytes. What it allocates grows with what has come, as
// whoever claims a length need not send as much.
func readGrowing(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, min(n, firstBytes))
	for got := 0; ; {
		if _, err := io.ReadFull(r, b[got:]); err != nil {
			return nil, unexpected(err)
		}
		if got = len(b); got == n {
			return b, nil
		}
		more := make([]byte, min(n, 2*got))
		copy(more, b)
		b = more
	}
}

// unexpected is the error of an end in the middle.
func unexpected(err error) error {
	if err == io.EOF { //nolint:errorlint // readers return it bare
		return io.ErrUnexpectedEOF
	}
	return err
}
