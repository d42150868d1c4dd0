package gateway

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// coding is a way to compress replies. Compressors are large: they are used
// again, and only by who has a place among those who (de)compress.
type coding struct {
	name string
	free sync.Pool
}

type compressor interface {
	io.WriteCloser
	Reset(to io.Writer)
}

// replyWindow bounds the memory of who reads a reply in zstd, and of us.
const replyWindow = 1 << 20

// codings are in order of preference.
var codings = []*coding{
	{name: "zstd", free: sync.Pool{New: func() any {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(replyWindow))
		if err != nil {
			panic(err) // of the options, which are constants
		}
		return z
	}}},
	{name: "gzip", free: sync.Pool{New: func() any { return gzip.NewWriter(nil) }}},
}

// codingFor is the coding that a request wants most; nil: none.
func codingFor(r *http.Request) (best *coding) {
	all, most := acceptedOf(r.Header.Values("Accept-Encoding")), 0.0
	for _, c := range codings {
		if q := qualityOf(all, c.name); q > most {
			best, most = c, q
		}
	}
	return best
}

// compress compresses a body into one that is no larger; ok is false where
// there is none.
func (c *coding) compress(body [][]byte, sizeBytes int) (out []byte, ok bool) {
	z := c.free.Get().(compressor)
	to := &filling{make([]byte, 0, sizeBytes)}
	z.Reset(to)
	for _, piece := range body {
		if _, err := z.Write(piece); err != nil {
			return nil, false
		}
	}
	if z.Close() != nil {
		return nil, false
	}
	z.Reset(nil)
	c.free.Put(z)
	return to.buf, true
}

// filling writes into a buffer up to its capacity.
type filling struct{ buf []byte }

func (f *filling) Write(b []byte) (int, error) {
	if len(b) > cap(f.buf)-len(f.buf) {
		return 0, io.ErrShortBuffer
	}
	f.buf = append(f.buf, b...)
	return len(b), nil
}

// plainBytes is up to which size a reply is not worth compressing.
const plainBytes = 1 << 10

// writeBody writes a reply, compressed where that is asked for and there is
// memory. It is compressed before any of it goes out: a client that reads
// slowly holds what it has asked for, and no compressor.
func (h *handler) writeBody(w http.ResponseWriter, r *http.Request, hold *holding, body ...[]byte) {
	sizeBytes := 0
	for _, piece := range body {
		sizeBytes += len(piece)
	}
	c := codingFor(r)
	if c != nil && sizeBytes > plainBytes && hold.grow(sizeBytes) == nil {
		if small, ok := h.compressInTurn(r.Context(), c, body, sizeBytes); ok {
			w.Header().Set("Content-Encoding", c.name)
			body, sizeBytes = [][]byte{small}, len(small)
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(sizeBytes))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	for _, piece := range body {
		if _, err := w.Write(piece); err != nil {
			return // the client has gone
		}
	}
}

func (h *handler) compressInTurn(ctx context.Context, c *coding, body [][]byte, sizeBytes int) ([]byte, bool) {
	if h.turn(ctx) != nil {
		return nil, false // nobody waits for it
	}
	defer h.turnOver()
	return c.compress(body, sizeBytes)
}
