package batch

import "fmt"

// Codec is how the records of a batch are compressed.
type Codec int8

// Kafka's codecs.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

var codecNames = [...]string{None: "none", Gzip: "gzip", Snappy: "snappy", LZ4: "lz4", Zstd: "zstd"}

// String is the codec's name in Kafka's configs.
func (c Codec) String() string {
	if !c.known() {
		return fmt.Sprintf("codec %d", int8(c))
	}
	return codecNames[c]
}

// ParseCodec knows the names that String gives.
func ParseCodec(name string) (Codec, error) {
	for c, n := range codecNames {
		if n == name {
			return Codec(c), nil
		}
	}
	return None, fmt.Errorf("%w: %q", ErrCodec, name)
}

func (c Codec) known() bool { return c >= None && c <= Zstd }
