package remote

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Payload is the body of a request, and what its headers say of it.
type Payload struct {
	*Reader
	Length int64
	CRC32C string // base64, as in x-amz-checksum-crc32c
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newPayload(body bucket.Body) Payload {
	var sum uint32
	for _, p := range body {
		sum = crc32.Update(sum, castagnoli, p)
	}
	size := body.Len()
	return Payload{
		Reader: &Reader{body: body, sizeBytes: size},
		Length: size, CRC32C: base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum)),
	}
}

// Reader reads a body where it lies. HTTP clients may go on reading when a
// request is over, which the port forbids: after detach it reads nothing.
type Reader struct {
	mu        sync.Mutex
	body      bucket.Body
	sizeBytes int64
	at        int64
	part      int // where at is
	inPart    int
	detached  bool
}

var errDetached = errors.New("the request is over")

// detach ends all reading, also that which is under way.
func (r *Reader) detach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detached, r.body = true, nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.detached {
		return 0, errDetached
	}
	for n < len(p) && r.part < len(r.body) {
		c := copy(p[n:], r.body[r.part][r.inPart:])
		n += c
		if r.inPart += c; r.inPart == len(r.body[r.part]) {
			r.part, r.inPart = r.part+1, 0
		}
	}
	r.at += int64(n)
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Seek implements io.Seeker.
func (r *Reader) Seek(off int64, whence int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		off += r.at
	case io.SeekEnd:
		off += r.sizeBytes
	}
	if off < 0 || off > r.sizeBytes {
		return r.at, errors.New("seek outside the body")
	}
	r.at, r.part, r.inPart = off, 0, 0
	for rest := off; r.part < len(r.body); r.part++ {
		if size := int64(len(r.body[r.part])); rest >= size {
			rest -= size
			continue
		}
		r.inPart = int(rest)
		break
	}
	return off, nil
}

// section is the bytes [from, to) of a body, which are not copied.
func section(body bucket.Body, from, to int64) bucket.Body {
	var cut bucket.Body
	for _, p := range body {
		size := int64(len(p))
		if start, end := max(from, 0), min(to, size); start < end {
			cut = append(cut, p[start:end])
		}
		from, to = from-size, to-size
	}
	return cut
}
