package s3_test

import (
	"fmt"
	"os"
	"path/filepath"
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

// TestExpiredCredentials: those that the store calls expired are fetched anew.
func TestExpiredCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	dir := t.TempDir()
	issued, config := filepath.Join(dir, "issued"), filepath.Join(dir, "config")
	issue := func(key string) {
		text := fmt.Sprintf(`{"Version": 1, "AccessKeyId": %q, "SecretAccessKey": "secret", "SessionToken": "token"}`, key)
		if err := os.WriteFile(issued, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	issue("old")
	if err := os.WriteFile(config, []byte("[default]\nregion = us-east-1\ncredential_process = cat "+issued+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", config)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "none"))
	remotetest.Expired(t, func(addr string) *remote.Bucket {
		b, err := s3.Open(t.Context(), s3.Options{Bucket: "records", Endpoint: "http://" + addr, Transport: remote.NewTransport(nil)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, func() { issue("new") })
}
