package batch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

var codecs = []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd}

// sixteen is a batch of 16 records of 1 KiB, about half of it repetition.
func sixteen(tb tb, codec batch.Codec) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	b := batch.NewBuilder(codec, 0)
	for i := range 16 {
		value := make([]byte, 1024)
		for at := 0; at < len(value); {
			at += copy(value[at:], fmt.Sprintf(`{"id":%d,"name":"sensor-%d","reading":%d}`, rng.Uint32(), rng.IntN(64), rng.Uint64()))
		}
		b.Append(batch.Record{Timestamp: 1_750_000_000_000 + int64(i), Key: fmt.Appendf(nil, "key-%d", i), Value: value})
	}
	return must(tb)(b.Build())
}

func must(tb tb) func([]byte, error) []byte {
	return func(b []byte, err error) []byte {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return b
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, codec := range codecs {
		one := sixteen(b, codec)
		b.Run(codec.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(16 << 10)
			for b.Loop() {
				if _, err := batch.Validate(one, batch.Rules{Walk: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	small := batch.NewBuilder(batch.None, 0)
	for i := range 160 {
		small.Append(batch.Record{Timestamp: 1_750_000_000_000 + int64(i), Key: fmt.Appendf(nil, "key-%d", i), Value: make([]byte, 100)})
	}
	many := must(b)(small.Build())
	b.Run("none, 160 of 100 bytes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := batch.Validate(many, batch.Rules{Walk: true}); err != nil {
				b.Fatal(err)
			}
		}
	})
	one := sixteen(b, batch.None)
	b.Run("header", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(16 << 10)
		for b.Loop() {
			if _, err := batch.Validate(one, batch.Rules{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRecords(b *testing.B) {
	for _, codec := range codecs {
		one := sixteen(b, codec)
		b.Run(codec.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(16 << 10)
			for b.Loop() {
				for _, err := range batch.Records(one, 0) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, codec := range codecs {
		plain := sixteen(b, batch.None)
		b.Run(codec.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(16 << 10)
			for b.Loop() {
				must(b)(batch.Recompress(plain, codec, 0, 0))
			}
		})
	}
}

func BenchmarkStamp(b *testing.B) {
	one := sixteen(b, batch.None)
	b.Run("offset", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			batch.Stamp(one, 1234, 5)
		}
	})
	b.Run("append time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			batch.StampAppendTime(one, 1_750_000_000_000)
		}
	})
}
