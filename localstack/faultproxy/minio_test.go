package faultproxy_test

import (
	"bytes"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/siltstone-io/siltstone/localstack/faultproxy"
	"github.com/siltstone-io/siltstone/localstack/servers"
)

// TestMinIO: a real store finds the signatures good, of what goes through and of
// what is signed anew.
func TestMinIO(t *testing.T) {
	p, err := faultproxy.New(faultproxy.Options{Upstream: "http://" + servers.ForTest(t, servers.MinIO), Secret: servers.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	c, err := minio.New(strings.TrimPrefix(front.URL, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(servers.AccessKey, servers.SecretKey, ""), Region: servers.Region, MaxRetries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	put := func(body string, o minio.PutObjectOptions) error {
		o.SetMatchETagExcept("*")
		_, err := c.PutObject(t.Context(), servers.BucketName, "a folder/b+c", strings.NewReader(body), int64(len(body)), o)
		return err
	}
	is := func(want string) {
		t.Helper()
		o, err := c.GetObject(t.Context(), servers.BucketName, "a folder/b+c", minio.GetObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = o.Close() }()
		if got, err := io.ReadAll(o); err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%v; %d bytes, want %d", err, len(got), len(want))
		}
	}

	chunks, unsigned := minio.PutObjectOptions{}, minio.PutObjectOptions{DisableContentSha256: true}
	first := strings.Repeat("silt", 1<<20)
	if err := put(first, chunks); err != nil {
		t.Fatal(err)
	}
	if err := put("stone", unsigned); minio.ToErrorResponse(err).Code != minio.PreconditionFailed {
		t.Errorf("a conditional write is %v", err)
	}
	is(first)

	if err := p.Set(faultproxy.Fault{Action: faultproxy.StripConditions}); err != nil {
		t.Fatal(err)
	}
	if err := put("stone", unsigned); err != nil {
		t.Errorf("without its condition it is %v", err)
	}
	is("stone")

	if err := p.Set(faultproxy.Fault{Operations: []string{"PutObject"}, Action: faultproxy.Answer, Error: faultproxy.ExpiredToken}); err != nil {
		t.Fatal(err)
	}
	if err := put("sand", unsigned); minio.ToErrorResponse(err).Code != "ExpiredToken" {
		t.Errorf("refused, it is %v", err)
	}
	is("stone")
}
