package batch_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

var update = flag.Bool("update", false, "write testdata/siltstone-*.bin anew")

const goldenTime = 1_750_000_000_000

// goldenMix is what testdata/java/Golden.java appends: all mixes of null, empty
// and full, a text of more than one block, and a record without a timestamp.
func goldenMix(textBytes int) []batch.Record {
	header := func(k string, v []byte) batch.RecordHeader { return batch.RecordHeader{Key: []byte(k), Value: v} }
	mix := [][]byte{nil, {}, {'x'}}
	var out []batch.Record
	for _, key := range mix {
		for _, value := range mix {
			out = append(out, batch.Record{
				Timestamp: goldenTime + 5 - int64(len(out)), Key: key, Value: value,
				Headers: []batch.RecordHeader{header("h", nil), header("h", []byte{}), header("h", []byte("y")), header("", []byte("z"))},
			})
		}
	}
	var text bytes.Buffer
	for i := 0; text.Len() < textBytes; i++ {
		fmt.Fprintf(&text, "line %d\n", i*7919%1000)
	}
	out = append(out,
		batch.Record{Timestamp: goldenTime, Key: []byte("text"), Value: text.Bytes()},
		batch.Record{Timestamp: batch.NoTimestamp, Key: []byte("none")})
	for i := range out {
		out[i].Offset = siltstone.Offset(i)
	}
	return out
}

func textBytes(file string) int {
	if strings.Contains(file, "-none") || strings.Contains(file, "-transactional") {
		return 1_000
	}
	return 150_000
}

// TestGoldenRecords reads batches of Kafka's Java client 4.0.0 (with every
// codec, zstd also with the level whose window is 128 MiB) and our own.
func TestGoldenRecords(t *testing.T) {
	for _, codec := range codecs {
		if file := fmt.Sprintf("testdata/siltstone-%s.bin", codec); *update {
			b := batch.NewBuilder(codec, 0)
			b.Header.Epoch = 7
			for _, r := range goldenMix(textBytes(file)) {
				b.Append(r)
			}
			if err := os.WriteFile(file, must(t)(b.Build()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files := append(glob(t, "testdata/java-*.bin", 10), glob(t, "testdata/siltstone-*.bin", 5)...)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			b := must(t)(os.ReadFile(file))
			h, err := batch.Validate(b, batch.Rules{Walk: true})
			if err != nil {
				t.Fatal(err)
			}
			if h.Attributes.Control() {
				return // TestGoldenMarkers
			}
			want := goldenMix(textBytes(file))
			got, err := read(b, 0)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "Records", got, want)
			if h.Epoch != 7 || h.MaxTimestamp != goldenTime+5 || int(h.Records) != len(want) {
				t.Errorf("header is %+v", h)
			}
			byKgo, err := kgoRead(b)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "kgo", byKgo, want)
		})
	}
}

// TestGoldenBytes: what we write uncompressed is what Java writes.
func TestGoldenBytes(t *testing.T) {
	java, ours := must(t)(os.ReadFile("testdata/java-none.bin")), must(t)(os.ReadFile("testdata/siltstone-none.bin"))
	if !bytes.Equal(java, ours) {
		t.Error("siltstone-none.bin is not java-none.bin")
	}
	b := batch.NewBuilder(batch.None, 0)
	b.Header.Epoch, b.Header.ProducerID, b.Header.ProducerEpoch, b.Header.BaseSequence = 7, 4711, 3, 42
	b.Header.Attributes = batch.TransactionalBit
	for _, r := range goldenMix(textBytes("-none")) {
		b.Append(r)
	}
	if got := must(t)(b.Build()); !bytes.Equal(got, must(t)(os.ReadFile("testdata/java-transactional.bin"))) {
		t.Error("a transactional batch is not java-transactional.bin")
	}
}

func TestGoldenMarkers(t *testing.T) {
	for file, kind := range map[string]batch.MarkerType{"abort": batch.Abort, "commit": batch.Commit} {
		java := must(t)(os.ReadFile("testdata/java-" + file + ".bin"))
		want := batch.Marker{Type: kind, CoordinatorEpoch: 12}
		if got, err := batch.ParseMarker(java); err != nil || got != want {
			t.Errorf("%s: %+v, %v", file, got, err)
		}
		b := batch.NewBuilder(batch.None, 0)
		b.Header.BaseOffset, b.Header.Epoch, b.Header.ProducerID, b.Header.ProducerEpoch = 77, 9, 4711, 3
		b.Header.Attributes = batch.ControlBit | batch.TransactionalBit
		b.Append(want.Record(goldenTime))
		if got := must(t)(b.Build()); !bytes.Equal(got, java) {
			t.Errorf("%s: we write\n%x, Java\n%x", file, got, java)
		}
	}
}

// TestGoldenLibrdkafka reads batches that kcat 1.7.1 sent: snappy is a raw
// block, zstd does not say its size.
func TestGoldenLibrdkafka(t *testing.T) {
	for _, file := range glob(t, "testdata/librdkafka-*.bin", 5) {
		t.Run(file, func(t *testing.T) {
			b := must(t)(os.ReadFile(file))
			h, err := batch.Validate(b, batch.Rules{Walk: true})
			if err != nil {
				t.Fatal(err)
			}
			if name := filepath.Base(file); name != "librdkafka-"+h.Attributes.Codec().String()+".bin" {
				t.Errorf("codec %s", h.Attributes.Codec())
			}
			got, err := read(b, 0)
			if err != nil {
				t.Fatal(err)
			}
			byKgo, err := kgoRead(b)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "kgo", byKgo, got)
			headers := `[{h } {h y} {n }]`
			var show []string
			for _, r := range got {
				show = append(show, fmt.Sprintf("%d %s=%.5s %v", r.Offset, null(r.Key), null(r.Value), headersOf(r)))
			}
			want := []string{"0 k1=v1 " + headers, "1 k2=null " + headers, "2 null=v3 " + headers, "3 big=line  " + headers}
			if !slices.Equal(show, want) {
				t.Errorf("records are %q", show)
			}
			if r := got[0]; r.Headers[0].Value == nil || r.Headers[2].Value != nil {
				t.Error("null and empty header values are mixed up")
			}
		})
	}
}

func null(b []byte) string {
	if b == nil {
		return "null"
	}
	return string(b)
}

func headersOf(r batch.Record) string {
	var s []string
	for _, h := range r.Headers {
		s = append(s, fmt.Sprintf("{%s %s}", h.Key, h.Value))
	}
	return "[" + strings.Join(s, " ") + "]"
}

func glob(tb tb, pattern string, atLeast int) []string {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) < atLeast {
		tb.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}
