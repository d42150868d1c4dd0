package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// kgoClient is a franz-go client of the server.
func (f *fixture) kgoClient(opts ...kgo.Opt) *kgo.Client {
	f.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(f.listener.Addr().String()),
		kgo.DisableIdempotentWrite(),
	}, opts...)...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(cl.Close)
	return cl
}

// TestFranzTransactions: until there are transactions, they are refused at once.
func TestFranzTransactions(t *testing.T) {
	f := start(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(f.listener.Addr().String()), kgo.TransactionalID("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, _, err := cl.ProducerID(ctx); !errors.Is(err, kerr.ClusterAuthorizationFailed) {
		t.Errorf("%v, want CLUSTER_AUTHORIZATION_FAILED", err)
	}
}

// TestFranz: a whole client, with each codec: null and empty keys, values and
// header values, headers of one name, large records, every offset.
func TestFranz(t *testing.T) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			topic := f.create("t", 1)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			sent := franzRecords()
			cl := f.kgoClient(kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(20*time.Millisecond))
			if err := cl.ProduceSync(ctx, sent...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			want, err := batch.ParseCodec(name)
			if err != nil {
				t.Fatal(err)
			}
			compressed := 0
			for _, b := range f.stored(topic.ID) {
				if h, _ := batch.ParseHeader(b); h.Attributes.Codec() == want {
					compressed++
				}
			}
			if compressed == 0 {
				t.Errorf("no batch of %d is in %s", len(f.stored(topic.ID)), name)
			}
			for _, from := range []int64{0, 1, int64(len(sent)) - 1} {
				got := consume(ctx, t, f, from, len(sent)-int(from))
				for i, r := range got {
					wantSameRecord(t, r, sent[int(from)+i], from+int64(i))
				}
			}
		})
	}
}

func franzRecords() []*kgo.Record {
	fields := [][]byte{nil, {}, []byte("x")}
	var all []*kgo.Record
	for _, key := range fields {
		for _, value := range fields {
			all = append(all, &kgo.Record{Topic: "t", Key: key, Value: value, Headers: []kgo.RecordHeader{
				{Key: "h", Value: nil}, {Key: "h", Value: []byte{}}, {Key: "h", Value: []byte("v")}, {Key: "", Value: []byte("v")},
			}})
		}
	}
	all = append(all, &kgo.Record{Topic: "t", Value: bytes.Repeat([]byte("large "), 150_000)})
	for i := range 500 {
		all = append(all, &kgo.Record{Topic: "t", Key: fmt.Append(nil, "k", i), Value: bytes.Repeat(fmt.Append(nil, i), 30)})
	}
	for i, r := range all {
		r.Timestamp = time.UnixMilli(1_700_000_000_000 + int64(i))
	}
	return all
}

func consume(ctx context.Context, t *testing.T, f *fixture, from int64, n int) []*kgo.Record {
	t.Helper()
	cl := f.kgoClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(from)}}))
	defer cl.Close()
	var got []*kgo.Record
	for len(got) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", len(got), n, err)
		}
		got = append(got, fetches.Records()...)
	}
	return got
}

func wantSameRecord(t *testing.T, got, want *kgo.Record, offset int64) {
	t.Helper()
	same := func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }
	if got.Offset != offset || !same(got.Key, want.Key) || !same(got.Value, want.Value) || !got.Timestamp.Equal(want.Timestamp) {
		t.Errorf("offset %d: key %q, value of %d bytes, time %v", got.Offset, got.Key, len(got.Value), got.Timestamp)
	}
	if len(got.Headers) != len(want.Headers) {
		t.Errorf("offset %d: headers %v", offset, got.Headers)
		return
	}
	for i, h := range got.Headers {
		if h.Key != want.Headers[i].Key || !same(h.Value, want.Headers[i].Value) {
			t.Errorf("offset %d: header %d is %q %v", offset, i, h.Key, h.Value)
		}
	}
}

// TestFranzAdmin: topics by the admin client.
func TestFranzAdmin(t *testing.T) {
	f := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	adm := kadm.NewClient(f.kgoClient())
	size := "2000000"
	if _, err := adm.CreateTopic(ctx, 3, -1, map[string]*string{"max.message.bytes": &size}, "made"); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.CreatePartitions(ctx, 2, "made"); err != nil {
		t.Fatal(err)
	}
	listed, err := adm.ListTopics(ctx)
	if err != nil || len(listed["made"].Partitions) != 5 {
		t.Fatalf("%+v, %v", listed, err)
	}
	ends, err := adm.ListEndOffsets(ctx, "made")
	if err != nil || ends.Error() != nil || len(ends["made"]) != 5 {
		t.Fatalf("%+v, %v", ends, err)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, "made")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range configs[0].Configs {
		found = found || c.Key == "max.message.bytes" && c.MaybeValue() == size && c.Source == kmsg.ConfigSourceDynamicTopicConfig
	}
	if !found {
		t.Error("max.message.bytes is not described as it was set")
	}
	if _, err := adm.DeleteTopic(ctx, "made"); err != nil {
		t.Fatal(err)
	}
	if left := f.topics.Topics().Len(); left != 0 {
		t.Errorf("%d topics are left", left)
	}
}

// kcat runs kcat 1.7.1 against the server.
func (f *fixture) kcat(stdin string, args ...string) (stdout, stderr string) {
	f.t.Helper()
	path, err := exec.LookPath("kcat")
	if err != nil {
		if testing.Short() {
			f.t.Skip("NOT TESTED: kcat is not installed; make test installs it")
		}
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-b", f.listener.Addr().String()}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		f.t.Fatalf("kcat %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), errs.String()
}

// TestKcat: old librdkafka decides by the versions shown which message format
// and which codecs it may use: all of them, and they come back.
func TestKcat(t *testing.T) {
	lines := strings.Repeat("a line that compresses well\n", 200)
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			topic := f.create("t", 1)
			_, log := f.kcat(lines, "-P", "-t", "t", "-z", name, "-X", "linger.ms=100", "-d", "feature,broker")
			for _, feature := range []string{"MsgVer2", "LZ4", "ZSTD", "ApiVersion"} {
				if !strings.Contains(log, "Enabling feature "+feature) {
					t.Errorf("kcat does not enable %s:\n%s", feature, log)
				}
			}
			want, err := batch.ParseCodec(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range f.stored(topic.ID) {
				if h, _ := batch.ParseHeader(b); h.Attributes.Codec() != want {
					t.Errorf("a batch in %s, want %s", h.Attributes.Codec(), name)
				}
			}
			if out, _ := f.kcat("", "-C", "-t", "t", "-o", "beginning", "-e", "-q"); out != lines {
				t.Errorf("%d bytes come back of %d", len(out), len(lines))
			}
		})
	}
}

// TestKcatNull: what kcat makes null stays so, and what it makes empty too.
func TestKcatNull(t *testing.T) {
	f := start(t)
	f.create("t", 1)
	f.kcat("k:v\n:v\nk:\n", "-P", "-t", "t", "-K", ":", "-Z")
	out, _ := f.kcat("", "-C", "-t", "t", "-o", "beginning", "-e", "-q", "-f", "%o %K %S\n")
	if want := "0 1 1\n1 -1 1\n2 1 -1\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// TestKcatLists: metadata, and offsets by time.
func TestKcatLists(t *testing.T) {
	f := start(t)
	f.create("t", 2)
	f.kcat("a\nb\n", "-P", "-t", "t", "-p", "1")
	out, _ := f.kcat("", "-L")
	for _, want := range []string{"2 brokers", `topic "t" with 2 partitions`, "partition 1, leader 0"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out, _ = f.kcat("", "-Q", "-t", "t:1:0"); !strings.Contains(out, "t [1] offset 0") {
		t.Errorf("%q", out)
	}
	if out, _ = f.kcat("", "-Q", "-t", "t:1:-1"); !strings.Contains(out, "t [1] offset 2") {
		t.Errorf("%q", out)
	}
}

// TestFranzDefault: a client with its own defaults, which is idempotent.
func TestFranzDefault(t *testing.T) {
	f := start(t)
	f.create("t", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(f.listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
		t.Error(err)
	}
}
