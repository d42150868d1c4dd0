package batch

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// zstdDecoder is shared: DecodeAll keeps nothing between calls, and as many
// run at once as there are CPUs. It is made here, and not when it is first
// needed, because it holds a channel, which would belong to whichever synctest
// bubble came first.
var zstdDecoder = must(zstd.NewReader(nil,
	zstd.WithDecoderConcurrency(0),
	zstd.WithDecodeAllCapLimit(true),
	zstd.WithDecoderMaxWindow(128<<20), // as Kafka's clients have it
))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

const (
	zstdBlockBytes = 128 << 10
	zstdMaxRatio   = zstdBlockBytes / 4 // a block has four bytes at least
	zstdSlackBytes = 64                 // past the output, lets the decoder copy in words
)

// zstd decodes a section, into a buffer that is likely to hold it. The decoder
// does not always tell a lack of room from damage; but where the next block
// would have fit, it was damage, and else it may have been room.
func (d *decompressor) zstd(section []byte, limit int, keep bool) ([]byte, error) {
	var first zstd.Header
	if err := first.Decode(section); err != nil {
		return nil, err
	}
	size := max(zstdBlockBytes, 8*len(section)) + zstdBlockBytes
	if first.HasFCS {
		says := first.FrameContentSize
		if says > uint64(limit) {
			return nil, tooLarge(says)
		}
		if says > uint64(zstdMaxRatio*len(section)) {
			return nil, fmt.Errorf("%d bytes cannot become %d", len(section), says)
		}
		size = int(says) + zstdSlackBytes
	}
	for most := limit + zstdBlockBytes + zstdSlackBytes; ; size *= 4 {
		size = min(max(size, cap(d.buf)), most)
		out, err := zstdDecoder.DecodeAll(section, d.room(size, keep)[:0:size])
		noRoom := errors.Is(err, zstd.ErrDecoderSizeExceeded)
		switch {
		case len(out) > limit || noRoom && size == most:
			return nil, tooLarge(uint64(len(out)))
		case err == nil:
			return out, nil
		case !noRoom && size-len(out) >= zstdBlockBytes+zstdSlackBytes:
			return nil, err
		}
	}
}
