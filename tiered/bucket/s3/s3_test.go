package s3_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/siltstone-io/siltstone/localstack/servers"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/buckettest"
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

// TestEndpointOfTheEnvironment: AWS's variable is enough, and a store of
// others is asked with the bucket in the path.
func TestEndpointOfTheEnvironment(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path
		w.Header().Set("ETag", `"1"`)
	}))
	defer s.Close()
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	b, err := s3.Open(t.Context(), s3.Options{Bucket: "records", Prefix: "p", Region: "eu-central-1", Transport: remote.NewTransport(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Put(t.Context(), "k", nil); err != nil || asked != "PUT /records/p/k" {
		t.Errorf("%v; asked for %q", err, asked)
	}
}

// TestEmulator is the port's suite over the emulator of AWS.
func TestEmulator(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
	addr, number := servers.ForTest(t, servers.AWS), 0
	makeBucket(t, addr)
	buckettest.Run(t, func(t *testing.T) bucket.Bucket {
		number++
		b, err := s3.Open(t.Context(), s3.Options{
			Bucket: servers.BucketName, Prefix: fmt.Sprintf("n%d", number), Region: servers.Region, Endpoint: "http://" + addr,
			Transport: remote.NewTransport(nil),
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

// makeBucket has a signature that the emulator does not check.
func makeBucket(t *testing.T, addr string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+addr+"/"+servers.BucketName, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+servers.AccessKey+"/20260101/"+servers.Region+"/s3/aws4_request, SignedHeaders=host, Signature=0")
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		t.Fatalf("make the bucket: %s", reply.Status)
	}
}
