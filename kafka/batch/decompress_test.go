package batch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

var compressed = codecs[1:]

// one is a batch of one record with a value of n zeros.
func one(tb tb, codec batch.Codec, n int) []byte {
	b := batch.NewBuilder(codec, 0)
	b.Append(batch.Record{Timestamp: 1, Key: []byte("k"), Value: make([]byte, n)})
	return must(tb)(b.Build())
}

// shapes are the ways in which records may be compressed.
var shapes = []struct {
	name   string
	codec  batch.Codec
	encode func(tb tb, records []byte) []byte // nil: as we do
}{
	{name: "gzip", codec: batch.Gzip},
	{name: "snappy", codec: batch.Snappy},
	{name: "raw snappy", codec: batch.Snappy, encode: func(_ tb, b []byte) []byte { return s2.EncodeSnappy(nil, b) }},
	{name: "lz4", codec: batch.LZ4},
	{name: "lz4 of 4 MiB blocks", codec: batch.LZ4, encode: func(tb tb, b []byte) []byte { return framed(tb, b, lz4.BlockSizeOption(lz4.Block4Mb)) }},
	{name: "zstd", codec: batch.Zstd},
	{name: "zstd that does not say its size", codec: batch.Zstd, encode: zstdStream},
}

// TestBound: what is over the bound by one byte is refused, whoever reads it.
func TestBound(t *testing.T) {
	for _, shape := range shapes {
		for _, n := range []int{0, 1000, 40_000, 300_000, 3_000_000} {
			b := one(t, shape.codec, n)
			plain := one(t, batch.None, n)
			size := len(plain) - batch.HeaderBytes
			if shape.encode != nil {
				b = sectionLike(plain, shape.codec, shape.encode(t, plain[batch.HeaderBytes:]))
			}
			if _, err := batch.Validate(b, batch.Rules{Walk: true, MaxDecompressedBytes: size}); err != nil {
				t.Errorf("%s, %d at the bound: %v", shape.name, size, err)
			}
			if got, err := read(b, size); err != nil || len(got) != 1 || len(got[0].Value) != n {
				t.Errorf("%s, %d at the bound: %v", shape.name, size, err)
			}
			if _, err := batch.Recompress(b, batch.None, 0, size); err != nil {
				t.Errorf("%s, %d at the bound: %v", shape.name, size, err)
			}
			_, validated := batch.Validate(b, batch.Rules{Walk: true, MaxDecompressedBytes: size - 1})
			_, iterated := read(b, size-1)
			_, again := batch.Recompress(b, batch.None, 0, size-1)
			for what, err := range map[string]error{"Validate": validated, "Records": iterated, "Recompress": again} {
				if !errors.Is(err, batch.ErrTooLarge) {
					t.Errorf("%s, %s over the bound of %d: %v", shape.name, what, size-1, err)
				}
			}
			if _, err := batch.Find(b, 2, size-1); err != nil {
				t.Errorf("%s: Find looks into a batch that is too old: %v", shape.name, err)
			}
		}
	}
}

// sectionLike is plain with its records in another form.
func sectionLike(plain []byte, codec batch.Codec, records []byte) []byte {
	b := section(1, codec, records...)
	copy(b[27:43], plain[27:43])
	return sealed(b)
}

// TestBombs: a bomb costs memory in proportion to the bound, a lie none.
func TestBombs(t *testing.T) {
	const bound, size = 4 << 20, 16 << 20
	type bomb struct {
		b    []byte
		want error
		most uint64 // bytes allocated
	}
	claim := binary.AppendUvarint(nil, 3<<20)
	bombs := map[string]bomb{
		"snappy claim":              {section(1, batch.Snappy, append(claim, 0, 0)...), batch.ErrInvalid, 1 << 20},
		"xerial claim":              {section(1, batch.Snappy, xerialOf(claim)...), batch.ErrInvalid, 1 << 20},
		"xerial block past the end": {section(1, batch.Snappy, []byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xff\x00")...), batch.ErrInvalid, 1 << 20},
		"zstd claim":                {section(1, batch.Zstd, 0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x30, 0, 1, 0, 0), batch.ErrInvalid, 1 << 20},
		"zstd window":               {section(1, batch.Zstd, 0x28, 0xb5, 0x2f, 0xfd, 0, 0x88, 1, 0, 0), batch.ErrInvalid, 1 << 20},
		"lz4 block past the end":    {section(1, batch.LZ4, 0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73, 0xff, 0xff, 0xff, 0x7f, 0), batch.ErrInvalid, 1 << 20},
		"record length":             {section(1, batch.Gzip, gzipped(t, binary.AppendVarint(nil, 1<<30))...), batch.ErrTooLarge, 1 << 20},
	}
	plain := one(t, batch.None, size)
	for _, shape := range shapes {
		b := bomb{b: one(t, shape.codec, size), want: batch.ErrTooLarge, most: 1 << 20}
		if shape.encode != nil {
			b.b = sectionLike(plain, shape.codec, shape.encode(t, plain[batch.HeaderBytes:]))
			b.most = 4 * bound // two blocks; or a buffer, in steps
		}
		bombs[shape.name] = b
	}
	for name, c := range bombs {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := batch.Validate(c.b, batch.Rules{Walk: true, MaxDecompressedBytes: bound})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, c.want) {
				t.Errorf("error is %v, want %v", err, c.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > c.most {
				t.Errorf("refusing it took %d bytes", n)
			}
			if _, err := read(c.b, bound); err == nil {
				t.Error("Records takes it")
			}
		})
	}
}

func zstdStream(tb tb, data []byte) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(tb tb, data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// framed is data in an lz4 frame with these options.
func framed(tb tb, data []byte, options ...lz4.Option) []byte {
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if err := w.Apply(options...); err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// TestForeignFrames: every shape of frame that some client may send, and those
// that Kafka's Java clients could not read.
func TestForeignFrames(t *testing.T) {
	whole := one(t, batch.None, 200_000)
	data := whole[batch.HeaderBytes:]
	half := len(data) / 2
	lz4Plain := framed(t, data)
	linked := must(t)(os.ReadFile("testdata/linked.lz4")) // by the lz4 tool, with -BD
	if got, err := io.ReadAll(lz4.NewReader(bytes.NewReader(linked))); err != nil || !bytes.Equal(got, data) {
		t.Fatal("linked.lz4 is not the data", err)
	}
	xerial := one(t, batch.Snappy, 200_000)[batch.HeaderBytes:]
	for _, c := range []struct {
		name  string
		codec batch.Codec
		data  []byte
		ok    bool
	}{
		{"gzip", batch.Gzip, gzipped(t, data), true},
		{"gzip of two members", batch.Gzip, append(gzipped(t, data[:half]), gzipped(t, data[half:])...), true},
		{"gzip with something after it", batch.Gzip, append(gzipped(t, data), 0), false},
		{"gzip cut", batch.Gzip, gzipped(t, data)[:100], false},
		{"gzip without its checksum", batch.Gzip, gzipped(t, data)[:len(gzipped(t, data))-8], false},
		{"no gzip", batch.Gzip, data, false},

		{"lz4", batch.LZ4, lz4Plain, true},
		{"lz4, blocks of 4 MiB", batch.LZ4, framed(t, data, lz4.BlockSizeOption(lz4.Block4Mb)), true},
		{"lz4, blocks of 64 KiB with sums", batch.LZ4, framed(t, data, lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true)), true},
		{"lz4 that says its size", batch.LZ4, framed(t, data, lz4.SizeOption(uint64(len(data)))), true},
		{"lz4 not compressible", batch.LZ4, framed(t, noise(len(data))), false}, // a frame, but no records
		{"lz4 with linked blocks", batch.LZ4, linked, false},
		{"two lz4 frames", batch.LZ4, append(framed(t, data[:half]), framed(t, data[half:])...), false},
		{"lz4 with something after it", batch.LZ4, append(slices.Clone(lz4Plain), 0), false},
		{"lz4 with a wrong sum", batch.LZ4, flip(lz4Plain, len(lz4Plain)-1), false},
		{"lz4 with a wrong header", batch.LZ4, flip(lz4Plain, 6), false},
		{"lz4 cut", batch.LZ4, lz4Plain[:len(lz4Plain)-5], false},

		{"snappy, raw", batch.Snappy, s2.EncodeSnappy(nil, data), true},
		{"snappy, framed", batch.Snappy, xerial, true},
		{"snappy, framed, by one block", batch.Snappy, xerialOf(s2.EncodeSnappy(nil, data)), true},
		{"snappy, framed, with something after it", batch.Snappy, append(slices.Clone(xerial), 0), false},
		{"snappy, framed for a reader of version 0", batch.Snappy, slices.Replace(slices.Clone(xerial), 12, 16, 0, 0, 0, 0), false},
		{"snappy, a header alone", batch.Snappy, xerial[:16], false},
		{"snappy, less than a header", batch.Snappy, xerial[:12], false},
		{"s2, which is not snappy", batch.Snappy, s2.Encode(nil, data), false},
		{"snappy cut", batch.Snappy, s2.EncodeSnappy(nil, data)[:50], false},

		{"zstd", batch.Zstd, zstdStream(t, data), true},
		{"two zstd frames", batch.Zstd, append(zstdStream(t, data[:half]), zstdStream(t, data[half:])...), true},
		{"zstd with something after it", batch.Zstd, append(zstdStream(t, data), 0), false},
		{"zstd with a wrong sum", batch.Zstd, flip(zstdStream(t, data), len(zstdStream(t, data))-1), false},
		{"zstd cut", batch.Zstd, zstdStream(t, data)[:20], false},
		{"no zstd", batch.Zstd, data, false},
		{"zstd damaged behind much", batch.Zstd, flip(zstdStream(t, noise(3_000_000)), 2_999_000), false},
		{"nothing", batch.Zstd, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := sectionLike(whole, c.codec, c.data)
			_, err := batch.Validate(b, batch.Rules{Walk: true})
			if c.ok && err != nil || !c.ok && !errors.Is(err, batch.ErrInvalid) {
				t.Errorf("error is %v", err)
			}
			again, err := batch.Recompress(b, batch.None, 0, 0)
			if c.ok && (err != nil || !bytes.Equal(again[batch.HeaderBytes:], data)) {
				t.Errorf("recompressed, it is not the same: %v", err)
			}
		})
	}
}

// TestZstdGrows: a frame that does not say how much it is gets the room it
// needs, also where that ends within a block.
func TestZstdGrows(t *testing.T) {
	var text bytes.Buffer
	for random := noise(120_000); len(random) > 0; random = random[4:] {
		fmt.Fprintf(&text, "a line of a hundred bytes, of which a few, these, %x, are like no others, and the rest is the same\n", random[:4])
	}
	builder := batch.NewBuilder(batch.None, 0)
	builder.Append(batch.Record{Value: text.Bytes()})
	plain := must(t)(builder.Build())
	frame := zstdStream(t, plain[batch.HeaderBytes:])
	if len(frame)*9 > text.Len() || len(frame) < 32<<10 {
		t.Fatalf("%d bytes are too like to %d for this test", len(frame), text.Len())
	}
	b := sectionLike(plain, batch.Zstd, frame)
	if _, err := batch.Validate(b, batch.Rules{Walk: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := read(b, 0); err != nil || !bytes.Equal(got[0].Value, text.Bytes()) {
		t.Fatal("Records reads something else", err)
	}
}

func flip(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 1
	return b
}

func noise(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func xerialOf(block []byte) []byte {
	b := []byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
	return append(binary.BigEndian.AppendUint32(b, uint32(len(block))), block...)
}

// TestLargeTakeTurns: more walks of large batches than there are places, with
// loops over large batches around them, all end.
func TestLargeTakeTurns(t *testing.T) {
	var wg sync.WaitGroup
	for _, codec := range compressed {
		b := one(t, codec, 5<<20)
		for range 2 * runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				for r, err := range batch.Records(b, 0) {
					if err != nil || len(r.Value) != 5<<20 {
						t.Errorf("%s: %v", codec, err)
					}
					if _, err := batch.Validate(b, batch.Rules{Walk: true}); err != nil {
						t.Errorf("%s: %v", codec, err)
					}
					if len(r.Value) != 5<<20 || r.Value[0] != 0 || string(r.Key) != "k" {
						t.Errorf("%s: a record changed under its reader", codec)
					}
				}
			})
		}
	}
	wg.Wait()
}

// TestBubbles: pools outlive a synctest bubble, and nothing in them is its.
func TestBubbles(t *testing.T) {
	use := func(t *testing.T) {
		for _, codec := range codecs {
			b := must(t)(batch.Recompress(sixteen(t, batch.None), codec, 0, 0))
			if _, err := batch.Validate(b, batch.Rules{Walk: true}); err != nil {
				t.Error(err)
			}
		}
	}
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if i%2 == 0 {
				synctest.Test(t, use)
			} else {
				use(t)
			}
		})
	}
}
