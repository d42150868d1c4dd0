package minio_test

import (
	"testing"

	"github.com/siltstone-io/siltstone/tiered/bucket/minio"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote/remotetest"
)

func TestMinIO(t *testing.T) {
	remotetest.Run(t, func(t *testing.T, l remotetest.Location) *remote.Bucket {
		b, err := minio.Open(minio.Options{
			Addr: l.Addr, Bucket: l.Bucket, Prefix: l.Prefix,
			PartBytes: l.PartBytes, Timeout: l.Timeout, Transport: l.Transport,
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

// TestExpiredCredentials: those that the store calls expired are looked up anew.
func TestExpiredCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "old")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	remotetest.Expired(t, func(addr string) *remote.Bucket {
		b, err := minio.Open(minio.Options{Addr: addr, Bucket: "records", Transport: remote.NewTransport(nil)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, func() { t.Setenv("AWS_ACCESS_KEY_ID", "new") })
}
