package open_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/localstack/faultproxy"
	"github.com/siltstone-io/siltstone/localstack/servers"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/open"
)

const partBytes = 5 << 20

// behind opens buckets in a MinIO server behind a proxy, by both adapters.
type behind struct {
	proxy  *faultproxy.Proxy
	addr   string
	number int
}

func startBehind(t *testing.T) *behind {
	t.Helper()
	p, err := faultproxy.New(faultproxy.Options{Upstream: "http://" + servers.ForTest(t, servers.MinIO), Secret: servers.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
	return &behind{proxy: p, addr: strings.TrimPrefix(front.URL, "http://")}
}

// each runs a test over an empty bucket of each adapter, with faults.
func (e *behind) each(t *testing.T, test func(*testing.T, *open.Bucket), faults ...faultproxy.Fault) {
	for _, scheme := range []string{"minio", "s3"} {
		e.number++
		url := fmt.Sprintf("minio://%s/%s/n%d?part-bytes=%d", e.addr, servers.BucketName, e.number, partBytes)
		if scheme == "s3" {
			url = fmt.Sprintf("s3://%s/n%d?endpoint=http://%s&region=%s&part-bytes=%d", servers.BucketName, e.number, e.addr, servers.Region, partBytes)
		}
		t.Run(scheme, func(t *testing.T) {
			b, err := open.URL(t.Context(), url, options(nil))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close() //nolint:errcheck // a test
			if err := e.proxy.Set(faults...); err != nil {
				t.Fatal(err)
			}
			test(t, b)
		})
	}
}

// until calls as those above a bucket do, again and again while it is unavailable.
func until(t *testing.T, what string, call func() error) error {
	t.Helper()
	for range 50 {
		err := call()
		if !errors.Is(err, siltstone.ErrUnavailable) {
			return err
		}
		if errors.Is(err, bucket.ErrNotFound) || errors.Is(err, bucket.ErrExists) {
			t.Fatalf("%s: trouble is taken for an answer: %v", what, err)
		}
	}
	t.Fatalf("%s does not get through", what)
	return nil
}

// store puts an object and compares what is there, if something is.
func store(t *testing.T, b bucket.Bucket, key string, object []byte) {
	t.Helper()
	err := until(t, "put "+key, func() error { return b.Put(t.Context(), key, bucket.Body{object}) })
	if err != nil && !errors.Is(err, bucket.ErrExists) {
		t.Fatalf("put %s: %v", key, err)
	}
	var got []byte
	err = until(t, "get "+key, func() (err error) {
		got, err = b.Get(t.Context(), key, 0, -1)
		return err
	})
	if err != nil || !bytes.Equal(got, object) {
		t.Fatalf("get %s: %d bytes of %d, %v", key, len(got), len(object), err)
	}
}

func TestFaults(t *testing.T) {
	e := startBehind(t)
	slowDown := faultproxy.Fault{Action: faultproxy.Answer, Error: faultproxy.SlowDown}
	on := func(every int, action faultproxy.Action, operations ...string) faultproxy.Fault {
		return faultproxy.Fault{Every: every, Action: action, Operations: operations}
	}
	refusing := func(every int, with *faultproxy.Error, operations ...string) faultproxy.Fault {
		return faultproxy.Fault{Every: every, Action: faultproxy.Answer, Error: with, Operations: operations}
	}
	throttled := slowDown
	throttled.Share = 0.3
	for name, faults := range map[string][]faultproxy.Fault{
		"throttled":       {throttled},
		"puts are lost":   {on(2, faultproxy.DropReply, "PutObject")},
		"parts are lost":  {on(3, faultproxy.DropReply, "UploadPart"), on(2, faultproxy.DropReply, "CompleteMultipartUpload", "CreateMultipartUpload")},
		"expired":         {refusing(5, faultproxy.ExpiredToken, "UploadPart"), refusing(4, faultproxy.ExpiredToken, "PutObject", "GetObject")},
		"a clock is off":  {refusing(3, faultproxy.TimeTooSkewed)},
		"replies are cut": {on(2, faultproxy.CutReply, "GetObject"), on(3, faultproxy.CutReply, "ListObjects", "DeleteObjects", "CompleteMultipartUpload")},
		"uploads are cut": {on(2, faultproxy.CutUpload, "PutObject"), on(5, faultproxy.CutUpload, "UploadPart")},
		"deletes fail":    {refusing(2, faultproxy.InternalError, "DeleteObjects", "AbortMultipartUpload")},
	} {
		t.Run(name, func(t *testing.T) {
			e.each(t, func(t *testing.T, b *open.Bucket) {
				var keys []string
				for i := range 8 {
					keys = append(keys, fmt.Sprintf("small-%d", i))
					store(t, b, keys[i], bytes.Repeat([]byte{byte(i)}, 1000+i))
				}
				for i := range 2 {
					keys = append(keys, fmt.Sprintf("large-%d", i))
					store(t, b, keys[8+i], bytes.Repeat([]byte{byte(i), 7, 9}, 4<<20))
				}
				err := until(t, "list", func() error {
					found, err := b.List(t.Context(), "", "", 100)
					if err == nil && len(found) != len(keys) {
						t.Errorf("%d of %d listed", len(found), len(keys))
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
				if err := until(t, "delete", func() error { return b.Delete(t.Context(), keys) }); err != nil {
					t.Error(err)
				}
				// The store is well again.
				if err := e.proxy.Set(); err != nil {
					t.Fatal(err)
				}
				if left, err := b.List(t.Context(), "", "", 100); err != nil || len(left) != 0 {
					t.Errorf("%v are left, %v", left, err)
				}
				if _, err := b.Reap(t.Context(), time.Now().Add(time.Hour)); err != nil {
					t.Error(err)
				}
				if n, err := b.Reap(t.Context(), time.Now().Add(time.Hour)); n != 0 || err != nil {
					t.Errorf("%d uploads are left, %v", n, err)
				}
			}, faults...)
		})
	}
}

func TestStoreWithoutConditions(t *testing.T) {
	startBehind(t).each(t, func(t *testing.T, b *open.Bucket) {
		if err := bucket.CheckConditions(t.Context(), b, 1); !errors.Is(err, bucket.ErrConditions) {
			t.Errorf("CheckConditions: %v", err)
		}
	}, faultproxy.Fault{Action: faultproxy.StripConditions})
}

// TestRefusingStore: callers who do not give up send a store that refuses
// everything no more than 20 requests a second, beside those that are under way
// when it begins to, and go on when it recovers.
func TestRefusingStore(t *testing.T) {
	e := startBehind(t)
	e.each(t, func(t *testing.T, b *open.Bucket) {
		e.proxy.ResetCounts()
		start := time.Now()
		var callers sync.WaitGroup
		for i := range 3 {
			callers.Go(func() {
				err := until(t, "put", func() error { return b.Put(t.Context(), fmt.Sprintf("k%d", i), bucket.Body{[]byte("x")}) })
				if err != nil && !errors.Is(err, bucket.ErrExists) {
					t.Error(err)
				}
			})
			callers.Go(func() {
				if err := until(t, "list", func() error { _, err := b.List(t.Context(), "", "", 1); return err }); err != nil {
					t.Error(err)
				}
			})
			callers.Go(func() {
				if err := until(t, "delete", func() error { return b.Delete(t.Context(), []string{"none"}) }); err != nil {
					t.Error(err)
				}
			})
		}
		for time.Since(start) < 2*time.Second {
			if _, err := b.Size(t.Context(), "k0"); !errors.Is(err, siltstone.ErrUnavailable) {
				t.Errorf("Size: %v", err)
			}
		}
		for second, n := range e.proxy.PerSecond() {
			most := 20
			if second == 0 {
				most = 15 + 10 // those that the gate lets through, and the callers that were under way
			}
			if n > most {
				t.Errorf("%d requests in second %d", n, second)
			}
		}
		if err := e.proxy.Set(); err != nil {
			t.Fatal(err)
		}
		callers.Wait()
	}, faultproxy.Fault{Action: faultproxy.Answer, Error: faultproxy.SlowDown})
}
