// Package remotetest is what every adapter of S3's protocol passes: the port's
// suite and more against a MinIO server, and calls to a server that misbehaves.
package remotetest

import (
	"net/http"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone/localstack/servers"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// Location says what to open.
type Location struct {
	Addr           string // host:port, without TLS
	Bucket, Prefix string
	PartBytes      int64
	Timeout        time.Duration
	Transport      http.RoundTripper
}

// Open opens a bucket by the adapter that is tested.
type Open func(t *testing.T, l Location) *remote.Bucket

// Run runs all tests.
func Run(t *testing.T, open Open) {
	t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
	t.Setenv("AWS_REGION", servers.Region)
	t.Run("Misbehaving", func(t *testing.T) { testMisbehaving(t, open) })
	t.Run("MinIO", func(t *testing.T) { testMinIO(t, open) })
}
