package batch

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// encoder is what gzip, lz4 and zstd have in common.
type encoder interface {
	io.WriteCloser
	Reset(io.Writer)
}

// encoders has a pool for each level that a codec tells apart. zstd's stream
// for itself: EncodeAll would make a channel (see zstdDecoder).
var encoders [Zstd + 1][lz4Levels]sync.Pool

const (
	lz4Levels      = 10
	zstdWindow     = 1 << 20
	lz4JavaDefault = 9
)

// appendCompressed appends records to dst, compressed. The level is as in
// Kafka's configs: gzip 1 to 9, lz4 1 to 17, zstd -131072 to 22, and 0 (or -1
// for gzip) the default. One that the encoder does not have is the nearest.
func appendCompressed(dst []byte, codec Codec, level int, records []byte) ([]byte, error) {
	var slot int
	switch codec {
	case None:
		return append(dst, records...), nil
	case Snappy:
		return appendSnappy(dst, records), nil
	case Gzip:
		slot = min(max(level, 0), gzip.BestCompression)
	case LZ4:
		// Java's default level, 9, is its fast compressor.
		slot = min(max(level, 0), lz4Levels-1)
		if level == lz4JavaDefault {
			slot = 0
		}
	case Zstd:
		slot = int(zstd.EncoderLevelFromZstd(level))
		if level == 0 {
			slot = int(zstd.SpeedDefault)
		}
	default:
		return nil, fmt.Errorf("%w: %d", ErrCodec, codec)
	}
	pool := &encoders[codec][slot]
	e, ok := pool.Get().(encoder)
	if !ok {
		e = newEncoder(codec, slot)
	}
	defer pool.Put(e)
	out := bytes.NewBuffer(dst)
	if z, ok := e.(*zstd.Encoder); ok {
		z.ResetContentSize(out, int64(len(records))) // so that readers know it
	} else {
		e.Reset(out)
	}
	if _, err := e.Write(records); err != nil {
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	e.Reset(nil)
	return out.Bytes(), nil
}

// newEncoder makes one for a slot that appendCompressed has chosen.
func newEncoder(codec Codec, slot int) encoder {
	switch codec {
	case Gzip:
		level := slot
		if level == 0 {
			level = gzip.DefaultCompression
		}
		return must(gzip.NewWriterLevel(nil, level))
	case LZ4:
		level := lz4.Fast
		if slot > 0 {
			level = lz4.Level1 << (slot - 1)
		}
		w := lz4.NewWriter(nil)
		// Java's block size; the batch's CRC makes the frame's superfluous.
		err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.CompressionLevelOption(level))
		return must(w, err)
	default:
		return must(zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstd.EncoderLevel(slot)),
			zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(zstdWindow),
			zstd.WithEncoderCRC(false),
		))
	}
}
