package s3

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// BenchmarkPut is what a flush of 8 MiB costs to send, with the ways to protect
// its bytes. The receiver is in the process, and the same for all.
func BenchmarkPut(b *testing.B) {
	b.Setenv("AWS_ACCESS_KEY_ID", "k")
	b.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer server.Close()
	o := Options{Bucket: "records", Region: "us-east-1", Endpoint: server.URL, Transport: remote.NewTransport(nil)}
	store, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	sender, err := newClient(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	object := make([]byte, 8<<20)
	in := func() *s3.PutObjectInput {
		return &s3.PutObjectInput{Bucket: aws.String("records"), Key: aws.String("k"), Body: bytes.NewReader(object)}
	}
	for name, put := range map[string]func() error{
		"crc32c": func() error { return store.Put(b.Context(), "k", bucket.Body{object}) },
		"sha256": func() error {
			_, err := sender.api.PutObject(b.Context(), in())
			return err
		},
		"nothing": func() error {
			_, err := sender.api.PutObject(b.Context(), in(), unsigned)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(object)))
			before := cpu(b)
			for b.Loop() {
				if err := put(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}

// cpu is what this process has used, in nanoseconds.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
