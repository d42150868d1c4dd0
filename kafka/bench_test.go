package kafka

import (
	"bytes"
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// replay is a connection on which one request arrives again and again.
type replay struct {
	net.Conn
	frame []byte
	left  int // requests
	at    int // in the frame
	got   int // bytes of answers
}

func (r *replay) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) && r.left > 0 {
		m := copy(b[n:], r.frame[r.at:])
		n, r.at = n+m, r.at+m
		if r.at == len(r.frame) {
			r.at, r.left = 0, r.left-1
		}
	}
	if n == 0 {
		return 0, os.ErrDeadlineExceeded // idle, once all is answered
	}
	return n, nil
}

func (r *replay) Write(b []byte) (int, error)      { r.got += len(b); return len(b), nil }
func (r *replay) Close() error                     { return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }

// benchLog takes all, and gives one batch.
type benchLog struct {
	*fakeLog
	records [][]byte
}

func (benchLog) Append(_ context.Context, r *siltstone.AppendRequest) error {
	for i := range r.Parts {
		r.Parts[i].Base, r.Parts[i].LogStart = 0, 0
	}
	close(r.Done)
	return nil
}

func (l benchLog) Fetch(context.Context, *siltstone.FetchRequest) (*siltstone.FetchResult, error) {
	return &siltstone.FetchResult{Parts: []siltstone.FetchedPart{{
		HighWatermark: 9, LastStable: 9, DivergingEpoch: -1, DivergingEnd: -1, Records: l.records,
	}}}, nil
}

// sixteenKiB is a batch of 16 KiB, of records of 1 KiB.
func sixteenKiB(b *testing.B, codec batch.Codec) []byte {
	builder := batch.NewBuilder(codec, 0)
	for range 15 {
		builder.Append(batch.Record{Timestamp: time.Now().UnixMilli(), Value: bytes.Repeat([]byte("0123456789abcdef"), 64)})
	}
	return build(b, builder)
}

func benchmark(b *testing.B, frame func(f *fixture) []byte, records [][]byte) {
	f := start(b, func(f *fixture, o *Options) { o.Log = benchLog{f.log, records} })
	conn := &replay{frame: frame(f), left: b.N}
	b.SetBytes(int64(len(conn.frame)))
	b.ReportAllocs()
	b.ResetTimer()
	_ = newConn(b.Context(), f.server, conn, 1).serve()
	b.StopTimer()
	if conn.left != 0 || conn.got == 0 {
		b.Fatalf("%d requests are left; %d bytes of answers", conn.left, conn.got)
	}
}

func BenchmarkProduce(b *testing.B) {
	for _, codec := range []batch.Codec{batch.None, batch.LZ4} {
		b.Run(codec.String(), func(b *testing.B) {
			benchmark(b, func(f *fixture) []byte {
				q := produce(f.create("t", 1), -1, sixteenKiB(b, codec))
				q.SetVersion(12)
				return formatter.AppendRequest(nil, q, 1)
			}, nil)
		})
	}
}

func BenchmarkFetch(b *testing.B) {
	records := [][]byte{sixteenKiB(b, batch.None), sixteenKiB(b, batch.None)}
	benchmark(b, func(f *fixture) []byte {
		topic := f.create("t", 1)
		q := fetchOf(topic.ID, "t", 0)
		q.SetVersion(13)
		return formatter.AppendRequest(nil, q, 1)
	}, records)
}
