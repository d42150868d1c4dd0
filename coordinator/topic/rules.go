package topic

import (
	"math"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// Rules is what the topic asks of a batch that arrives now, in ms.
func (c *Config) Rules(now int64) batch.Rules {
	r := batch.Rules{
		MaxDecompressedBytes: max(batch.DefaultMaxDecompressedBytes, c.MaxMessageBytes),
		Walk:                 c.Validation == WalkRecords,
		KeysRequired:         c.Compact,
		MaxRecordBytes:       c.MaxRecordBytes,
	}
	if !c.AppendTime {
		r.MinTimestamp = now - c.TimestampBeforeMaxMS
		r.MaxTimestamp = now + min(c.TimestampAfterMaxMS, math.MaxInt64-now)
	}
	return r
}

// Level is the level of the topic's own codec.
func (c *Config) Level() int {
	switch c.Codec {
	case batch.Gzip:
		return c.GzipLevel
	case batch.LZ4:
		return c.LZ4Level
	case batch.Zstd:
		return c.ZstdLevel
	}
	return 0
}
