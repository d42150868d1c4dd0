package dynamo

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone/coordinator"
)

// instant is a store that takes no time, and none of the processor's: what is
// measured is the adapter, and the SDK under it, without the network.
type instant struct{}

func (instant) RoundTrip(r *http.Request) (*http.Response, error) {
	connected(r)
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(done)), ContentLength: int64(len(done)), Request: r,
	}, nil
}

// BenchmarkAppendAndFloor is what a flush takes of each shard.
func BenchmarkAppendAndFloor(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"400B", 400}, {"4KiB", 4 << 10}, {"384KiB", 384 << 10}} {
		b.Run(size.name, func(b *testing.B) {
			c := over(b, instant{}, Options{})
			data := make([]byte, size.bytes)
			b.ReportAllocs()
			for seq := coordinator.Seq(1); b.Loop(); seq++ {
				if err := c.Append(b.Context(), "shard-00", coordinator.Entry{Seq: seq, Data: data}); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Floor(b.Context(), "shard-00"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
