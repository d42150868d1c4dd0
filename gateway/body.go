package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// zstdWindow is how far back a zstd body may refer: RFC 9659 has it for HTTP.
const zstdWindow = 8 << 20

// body reads the body of a request, decompressed, and counts it. It holds
// memory as the bytes come, not as a header promises them.
func (h *handler) body(r *http.Request, hold *holding, limit int) ([]byte, error) {
	if r.ContentLength > int64(limit) {
		return nil, fmt.Errorf("%w: %d bytes, and %d are taken", errBodyTooLarge, r.ContentLength, limit)
	}
	open, err := decompressor(r.Header.Values("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	factor := bodyFactor
	if open != nil {
		factor = 1
	}
	sent, err := readAll(r.Body, limit, func(bytes int) error { return hold.grow(factor * bytes) })
	h.metrics.received.Add(float64(len(sent)))
	if err != nil {
		return nil, bodyError(err)
	}
	if open == nil {
		return sent, nil
	}
	// A place among few: what decompresses holds more than its output.
	if err := h.turn(r.Context()); err != nil {
		return nil, err
	}
	defer h.turnOver()
	plain, done, err := open(bytes.NewReader(sent))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	defer done()
	whole, err := readAll(plain, limit, func(bytes int) error { return hold.grow(bodyFactor * bytes) })
	if err != nil && !errors.Is(err, errBodyTooLarge) && !errors.Is(err, errBusy) {
		return nil, fmt.Errorf("%w: it cannot be decompressed: %w", errMalformed, err)
	}
	return whole, err
}

// bodyError is why a body could not be read.
func bodyError(err error) error {
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
		return errBodySlow
	}
	if errors.Is(err, errBodyTooLarge) || errors.Is(err, errBusy) {
		return err
	}
	return fmt.Errorf("%w: %w", errMalformed, err)
}

// opener opens a compressed body; done gives back what it took.
type opener func(io.Reader) (plain io.Reader, done func(), err error)

// decompressor is the one for a content encoding; nil where there is none.
func decompressor(encodings []string) (opener, error) {
	if len(encodings) == 0 || len(encodings) == 1 && encodings[0] == "identity" {
		return nil, nil //nolint:nilnil // nothing is to be done
	}
	if len(encodings) == 1 {
		switch encodings[0] {
		case "gzip":
			return func(r io.Reader) (io.Reader, func(), error) {
				plain, err := gzip.NewReader(r)
				return plain, func() {}, err
			}, nil
		case "zstd":
			return func(r io.Reader) (io.Reader, func(), error) {
				plain, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
				if err != nil {
					return nil, nil, err
				}
				return plain, plain.Close, nil
			}, nil
		}
	}
	return nil, fmt.Errorf("%w: the content encodings are gzip and zstd, one at a time, not %q", errMediaType, encodings)
}

// readAll reads to the end, limit bytes at most. It asks before it takes memory.
func readAll(r io.Reader, limit int, grow func(bytes int) error) ([]byte, error) {
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			size := min(max(4<<10, 2*cap(buf)), limit+1)
			if err := grow(size - cap(buf)); err != nil {
				return nil, err
			}
			larger := make([]byte, len(buf), size)
			copy(larger, buf)
			buf = larger
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return nil, fmt.Errorf("%w: more than %d bytes", errBodyTooLarge, limit)
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}

// bodyRead says that the whole body is there: the time that a client has for
// it is no time for what follows.
func bodyRead(w http.ResponseWriter) {
	// A server that has no such times has no use for it.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}
