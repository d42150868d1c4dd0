package open_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/siltstone-io/siltstone/localstack/servers"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/open"
)

func options(reg prometheus.Registerer) open.Options {
	return open.Options{Rand: func() uint64 { return 1 }, Metrics: reg}
}

func TestFolder(t *testing.T) {
	b, err := open.URL(t.Context(), "file://"+filepath.ToSlash(t.TempDir()), options(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := bucket.CheckConditions(t.Context(), b, 1); err != nil {
		t.Error(err)
	}
	if n, err := b.Reap(t.Context(), time.Now()); n != 0 || err != nil {
		t.Errorf("Reap = %d, %v", n, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestCannotOpen(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_REGION", "AWS_DEFAULT_REGION",
		"MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD", "MINIO_ACCESS_KEY", "MINIO_SECRET_KEY",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	for url, says := range map[string]string{
		"minio://127.0.0.1:1/records": "no credentials",
		"s3://records":                "no AWS region",
		"file:///no/such/folder":      "no such file",
		"ftp://records":               "not a bucket's URL",
	} {
		if _, err := open.URL(t.Context(), url, options(nil)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("URL(%s): %v; want it to say %q", url, err, says)
		}
	}
}

// TestBill: each request is counted once, by its kind, with what it carries.
func TestBill(t *testing.T) {
	addr := servers.ForTest(t, servers.MinIO)
	t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
	const part = 5 << 20
	for name, url := range map[string]string{
		"minio": fmt.Sprintf("minio://%s/%s/bill-minio?part-bytes=%d", addr, servers.BucketName, part),
		"s3":    fmt.Sprintf("s3://%s/bill-s3?endpoint=http://%s&region=%s&part-bytes=%d", servers.BucketName, addr, servers.Region, part),
	} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			b, err := open.URL(t.Context(), url, options(reg))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close() //nolint:errcheck // a test
			small, large := bytes.Repeat([]byte("s"), 1000), bytes.Repeat([]byte("l"), 2*part+1)
			for _, err := range []error{
				b.Put(t.Context(), "small", bucket.Body{small}), // a put
				b.Put(t.Context(), "large", bucket.Body{large}), // 5: create, 3 parts, complete
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if got, err := b.Get(t.Context(), "small", 10, 100); err != nil || len(got) != 100 { // a get
				t.Errorf("Get = %d bytes, %v", len(got), err)
			}
			if n, err := b.Size(t.Context(), "large"); err != nil || n != int64(len(large)) { // a get
				t.Errorf("Size = %d, %v", n, err)
			}
			if found, err := b.List(t.Context(), "", "", 10); err != nil || len(found) != 2 { // a list
				t.Errorf("List = %v, %v", found, err)
			}
			if n, err := b.Reap(t.Context(), time.Now()); n != 0 || err != nil { // a list
				t.Errorf("Reap = %d, %v", n, err)
			}
			if err := b.Delete(t.Context(), []string{"small", "large"}); err != nil { // a delete
				t.Error(err)
			}
			want := map[string]float64{"put": 6, "get": 2, "list": 2, "delete": 1}
			if diff := cmp.Diff(want, byKind(t, reg, "siltstone_bucket_requests_total")); diff != "" {
				t.Errorf("requests, -want +got:\n%s", diff)
			}
			if sent := byKind(t, reg, "siltstone_bucket_sent_bytes_total")["put"]; sent < 2*part+1001 || sent > 2*part+3000 {
				t.Errorf("%v bytes sent by puts", sent)
			}
			if got := byKind(t, reg, "siltstone_bucket_received_bytes_total")["get"]; got != 100 {
				t.Errorf("%v bytes received by gets, want 100", got)
			}
			if failed := byKind(t, reg, "siltstone_bucket_failures_total")["put"]; failed != 0 {
				t.Errorf("%v puts failed", failed)
			}
		})
	}
}

func byKind(t *testing.T, reg *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				values[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return values
}
