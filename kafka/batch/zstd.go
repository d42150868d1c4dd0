package batch

import (
	"errors"

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
	zstdMaxRatio  = 32 << 10 // four bytes make a block of 128 KiB at most
	zstdSlack     = 64       // room past the output lets the decoder copy in words
	zstdGuess     = 8        // times its input, where a frame does not say
	zstdGuessMore = 4        // times the last guess
)

// zstd decodes a section. A frame that does not say its size is decoded into
// what is likely to hold it, and again into more if it did not.
func (d *decompressor) zstd(section []byte, limit int, keep bool) ([]byte, error) {
	var first zstd.Header
	if err := first.Decode(section); err != nil {
		return nil, err
	}
	size := max(streamBytes, zstdGuess*len(section))
	if first.HasFCS {
		if first.FrameContentSize > uint64(limit) {
			return nil, tooLarge(first.FrameContentSize)
		}
		size = min(int(first.FrameContentSize), zstdMaxRatio*len(section)) + zstdSlack
	}
	for most := limit + zstdSlack; ; size *= zstdGuessMore {
		size = min(max(size, cap(d.buf)), most)
		out, err := zstdDecoder.DecodeAll(section, d.room(size, keep)[:0:size])
		exceeded := errors.Is(err, zstd.ErrDecoderSizeExceeded)
		if exceeded && size < most {
			continue
		}
		if exceeded || len(out) > limit {
			return nil, tooLarge(uint64(len(out)))
		}
		return out, err
	}
}
