// Package remotetest is what every adapter of S3's protocol passes: the port's
// suite and more against a MinIO server, and calls to a server that misbehaves.
package remotetest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/localstack/servers"
	"github.com/siltstone-io/siltstone/tiered/bucket"
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

// Expired has a store take the credentials with the key "old" for expired, and
// those with "new" for good, which are there after renew.
func Expired(t *testing.T, open func(addr string) *remote.Bucket, renew func()) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch who := r.Header.Get("Authorization"); {
		case strings.Contains(who, "Credential=old/"):
			answer(w, http.StatusBadRequest, xmlError("ExpiredToken"))
		case !strings.Contains(who, "Credential=new/"):
			t.Errorf("Authorization: %q", who)
		default:
			w.Header().Set("ETag", `"1"`)
		}
	}))
	defer s.Close()
	b := open(strings.TrimPrefix(s.URL, "http://"))
	wantOutcome(t, "Put with old credentials", b.Put(t.Context(), "k", bucket.Body{[]byte("x")}), siltstone.ErrUnavailable)
	renew()
	wantOutcome(t, "Put once there are new ones", b.Put(t.Context(), "k", bucket.Body{[]byte("x")}), nil)
}
