package s3_test

import (
	"testing"

	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote/remotetest"
	"github.com/siltstone-io/siltstone/tiered/bucket/s3"
)

func TestS3(t *testing.T) {
	remotetest.Run(t, func(t *testing.T, l remotetest.Location) *remote.Bucket {
		b, err := s3.Open(t.Context(), s3.Options{
			Bucket: l.Bucket, Prefix: l.Prefix, Endpoint: "http://" + l.Addr,
			PartBytes: l.PartBytes, Timeout: l.Timeout, Transport: l.Transport,
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}
