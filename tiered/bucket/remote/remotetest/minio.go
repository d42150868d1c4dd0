package remotetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/localstack/servers"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/buckettest"
	"github.com/siltstone-io/siltstone/tiered/bucket/faulty"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// fresh opens buckets in one MinIO, each with a prefix of its own.
type fresh struct {
	open   Open
	addr   string
	number atomic.Int64
}

func (f *fresh) bucket(t *testing.T, transport http.RoundTripper) *remote.Bucket {
	l := f.location()
	l.Transport = transport
	return f.open(t, l)
}

func (f *fresh) location() Location {
	return Location{
		Addr: f.addr, Bucket: servers.BucketName, Prefix: fmt.Sprintf("test-%d/p", f.number.Add(1)),
		PartBytes: remote.MinPartBytes, Transport: remote.NewTransport(nil),
	}
}

func testMinIO(t *testing.T, open Open) {
	f := &fresh{open: open, addr: servers.ForTest(t, servers.MinIO)}
	t.Run("Suite", func(t *testing.T) {
		buckettest.Run(t, func(t *testing.T) bucket.Bucket { return f.bucket(t, remote.NewTransport(nil)) })
	})
	t.Run("SuiteWithDelays", func(t *testing.T) {
		buckettest.Run(t, func(t *testing.T) bucket.Bucket {
			return faulty.Wrap(f.bucket(t, remote.NewTransport(nil)), func(faulty.Op, string) faulty.Fate {
				return faulty.Fate{Delay: time.Microsecond}
			})
		})
	})
	t.Run("Conditions", func(t *testing.T) {
		if err := bucket.CheckConditions(t.Context(), f.bucket(t, remote.NewTransport(nil)), 1); err != nil {
			t.Error(err)
		}
	})
	t.Run("Prefixes", func(t *testing.T) { testPrefixes(t, f) })
	t.Run("PrefixThatIsAKey", func(t *testing.T) { testPrefixThatIsAKey(t, f) })
	t.Run("Parts", func(t *testing.T) { testParts(t, f) })
	t.Run("OneOfManyInParts", func(t *testing.T) { testOneOfManyInParts(t, f) })
	t.Run("PartsThatFail", func(t *testing.T) { testPartsThatFail(t, f) })
	t.Run("Reap", func(t *testing.T) { testReap(t, f) })
	t.Run("Checksums", func(t *testing.T) { testChecksums(t, f) })
	t.Run("WrongBucket", func(t *testing.T) { testWrongBucket(t, f) })
	t.Run("WrongKey", func(t *testing.T) { testWrongKey(t, f) })
}

// tripper is a transport that looks at requests.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func isPart(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Query().Has("partNumber")
}

func put(t *testing.T, b bucket.Bucket, key string, body []byte) {
	t.Helper()
	if err := b.Put(t.Context(), key, bucket.Body{body}); err != nil {
		t.Fatal(err)
	}
}

func wantObject(t *testing.T, b bucket.Bucket, key string, want []byte) {
	t.Helper()
	got, err := b.Get(t.Context(), key, 0, -1)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("Get(%s) = %d bytes, %v; want the %d that were put", key, len(got), err, len(want))
	}
}

// large is a body of n bytes that differ, in pieces.
func large(n int, seed byte) (body bucket.Body, whole []byte) {
	whole = make([]byte, n)
	for i := range whole {
		whole[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16) ^ seed
	}
	for rest := whole; len(rest) > 0; {
		cut := min(len(rest), 1_000_003)
		body, rest = append(body, rest[:cut]), rest[cut:]
	}
	return body, whole
}

// wantNoUploads checks that nothing is left of uploads.
func wantNoUploads(t *testing.T, b *remote.Bucket) {
	t.Helper()
	if n, err := b.Reap(t.Context(), time.Now().Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("%d uploads were pending, %v", n, err)
	}
}

func testPrefixes(t *testing.T, f *fresh) {
	inner := f.location()
	inner.Prefix = "prefixes/a"
	outer := inner
	outer.Prefix = "prefixes"
	beside := inner
	beside.Prefix = "prefixes/a-"
	a, all, other := f.open(t, inner), f.open(t, outer), f.open(t, beside)
	put(t, a, "x/y", []byte("in a"))
	put(t, other, "x/y", []byte("in a-"))
	wantObject(t, a, "x/y", []byte("in a"))
	wantObject(t, all, "a/x/y", []byte("in a"))
	for b, want := range map[*remote.Bucket]string{a: "x/y", other: "x/y", all: "a-/x/y a/x/y"} {
		found, err := b.List(t.Context(), "", "", 10)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, info := range found {
			keys = append(keys, info.Key)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("List = %s, want %s", got, want)
		}
	}
	if err := a.Delete(t.Context(), []string{"x/y"}); err != nil {
		t.Fatal(err)
	}
	wantObject(t, other, "x/y", []byte("in a-"))
}

func testPrefixThatIsAKey(t *testing.T, f *fresh) {
	b := f.bucket(t, remote.NewTransport(nil))
	put(t, b, "a", nil)
	put(t, b, "a0/x", nil)
	for _, after := range []string{"a", "a/", "a0"} { // one of them is no key
		if found, err := b.List(t.Context(), "a", after, 1); err != nil || len(found) != 1 || found[0].Key != "a0/x" {
			t.Errorf("List(a, %s, 1) = %v, %v", after, found, err)
		}
	}
}

func testParts(t *testing.T, f *fresh) {
	var parts atomic.Int64
	transport := remote.NewTransport(nil)
	b := f.bucket(t, tripper(func(r *http.Request) (*http.Response, error) {
		if isPart(r) {
			parts.Add(1)
		}
		return transport.RoundTrip(r)
	}))
	for i, c := range []struct{ sizeBytes, parts int }{
		{remote.MinPartBytes, 0}, {remote.MinPartBytes + 1, 2}, {2 * remote.MinPartBytes, 2}, {8 << 20, 2}, {13<<20 + 7, 3},
	} {
		key := fmt.Sprintf("k%d", i)
		body, whole := large(c.sizeBytes, byte(i))
		parts.Store(0)
		if err := b.Put(t.Context(), key, body); err != nil {
			t.Fatal(err)
		}
		if n := parts.Load(); n != int64(c.parts) {
			t.Errorf("%d bytes went in %d parts, want %d", c.sizeBytes, n, c.parts)
		}
		wantObject(t, b, key, whole)
		other, _ := large(c.sizeBytes, 77)
		wantOutcome(t, "Put again", b.Put(t.Context(), key, other), bucket.ErrExists)
		wantObject(t, b, key, whole)
		if got, err := b.Get(t.Context(), key, remote.MinPartBytes-3, 6); err != nil || !bytes.Equal(got, whole[remote.MinPartBytes-3:][:len(got)]) {
			t.Errorf("Get across parts: %x, %v", got, err)
		}
	}
	wantNoUploads(t, b)
}

func testOneOfManyInParts(t *testing.T, f *fresh) {
	b := f.bucket(t, remote.NewTransport(nil))
	const writers = 4
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			body, _ := large(6<<20, byte(i))
			for range 5 {
				// A store may answer that another's request is under way.
				if errs[i] = b.Put(t.Context(), "race", body); !errors.Is(errs[i], siltstone.ErrUnavailable) {
					return
				}
			}
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Errorf("writers %d and %d both made the object", winner, i)
		case err == nil:
			winner = i
		default:
			wantOutcome(t, fmt.Sprint("writer ", i), err, bucket.ErrExists)
		}
	}
	if winner < 0 {
		t.Fatal("no writer made the object")
	}
	_, whole := large(6<<20, byte(winner))
	wantObject(t, b, "race", whole)
	wantNoUploads(t, b)
}

// testPartsThatFail: parts are sent again one by one, as long as others get
// through; an upload that fails leaves nothing, not even after a lost answer.
func testPartsThatFail(t *testing.T, f *fresh) {
	transport := remote.NewTransport(nil)
	expired := func(r *http.Request) (*http.Response, error) {
		body := xmlError("ExpiredToken")
		return &http.Response{
			StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
			Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
	var parts atomic.Int64
	b := f.bucket(t, tripper(func(r *http.Request) (*http.Response, error) {
		if isPart(r) && parts.Add(1)%5 == 0 {
			return expired(r)
		}
		return transport.RoundTrip(r)
	}))
	body, whole := large(40<<20+1, 1)
	if err := b.Put(t.Context(), "each-fifth", body); err != nil {
		t.Fatal(err)
	}
	wantObject(t, b, "each-fifth", whole)

	var sent atomic.Int64
	broken := f.bucket(t, tripper(func(r *http.Request) (*http.Response, error) {
		if isPart(r) && sent.Add(1) > 2 {
			return expired(r)
		}
		return transport.RoundTrip(r)
	}))
	wantOutcome(t, "Put", broken.Put(t.Context(), "never", body), siltstone.ErrUnavailable)
	_, err := broken.Size(t.Context(), "never")
	wantOutcome(t, "Size", err, bucket.ErrNotFound)
	wantNoUploads(t, broken)

	lossy := f.bucket(t, tripper(func(r *http.Request) (*http.Response, error) {
		response, err := transport.RoundTrip(r)
		if err == nil && r.Method == http.MethodPost && r.URL.Query().Has("uploadId") {
			_ = response.Body.Close()
			return nil, errors.New("the connection broke")
		}
		return response, err
	}))
	wantOutcome(t, "Put whose answer is lost", lossy.Put(t.Context(), "lost", body), bucket.ErrExists)
	wantObject(t, lossy, "lost", whole)
	wantNoUploads(t, lossy)
}

func testReap(t *testing.T, f *fresh) {
	transport := remote.NewTransport(nil)
	l := f.location()
	l.Transport = tripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodDelete || isPart(r) {
			return nil, errors.New("no network")
		}
		return transport.RoundTrip(r)
	})
	cut := f.open(t, l)
	body, _ := large(6<<20, 1)
	for i := range 3 {
		wantOutcome(t, "Put", cut.Put(t.Context(), fmt.Sprintf("k%d", i), body), siltstone.ErrUnavailable)
	}
	l.Transport = transport
	b := f.open(t, l)
	if n, err := f.bucket(t, transport).Reap(t.Context(), time.Now().Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("a bucket with another prefix reaped %d, %v", n, err)
	}
	if n, err := b.Reap(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("reaped %d young uploads, %v", n, err)
	}
	if n, err := b.Reap(t.Context(), time.Now().Add(time.Hour)); n != 3 || err != nil {
		t.Errorf("reaped %d uploads, %v; want 3", n, err)
	}
	wantNoUploads(t, b)
}

// testChecksums: payloads are not hashed for the signature, and yet no bit of
// one gets lost on the way.
func testChecksums(t *testing.T, f *fresh) {
	transport := remote.NewTransport(nil)
	flip := false
	b := f.bucket(t, tripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut {
			if got := r.Header.Get("X-Amz-Content-Sha256"); got != "UNSIGNED-PAYLOAD" {
				t.Errorf("a payload is signed: %s", got)
			}
			if r.Header.Get("X-Amz-Checksum-Crc32c") == "" || r.Header.Get("Content-Encoding") != "" {
				t.Errorf("no plain payload with a CRC32C in its header: %v", r.Header)
			}
			if flip {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				body[len(body)/2] ^= 4
				r = r.Clone(r.Context())
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
		}
		return transport.RoundTrip(r)
	}))
	small, _ := large(1000, 1)
	parts, _ := large(6<<20, 1)
	flip = true
	for key, body := range map[string]bucket.Body{"small": small, "parts": parts} {
		wantOutcome(t, "Put of a flipped bit", b.Put(t.Context(), key, body), siltstone.ErrUnavailable)
		_, err := b.Size(t.Context(), key)
		wantOutcome(t, "Size", err, bucket.ErrNotFound)
	}
	flip = false
	for key, body := range map[string]bucket.Body{"small": small, "parts": parts} {
		if err := b.Put(t.Context(), key, body); err != nil {
			t.Error(err)
		}
	}
}

// testWrongBucket: that the bucket is missing is not that its objects are.
func testWrongBucket(t *testing.T, f *fresh) {
	l := f.location()
	l.Bucket = "no-such-bucket"
	wantRefusals(t, f.open(t, l))
}

func testWrongKey(t *testing.T, f *fresh) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
	wantRefusals(t, f.bucket(t, remote.NewTransport(nil)))
}

func wantRefusals(t *testing.T, b *remote.Bucket) {
	t.Helper()
	wantOutcome(t, "Put", b.Put(t.Context(), "k", bucket.Body{[]byte("x")}), bucket.ErrRefused)
	_, err := b.Get(t.Context(), "k", 0, -1)
	wantOutcome(t, "Get", err, bucket.ErrRefused)
	_, err = b.Size(t.Context(), "k")
	wantOutcome(t, "Size", err, bucket.ErrRefused)
	_, err = b.List(t.Context(), "", "", 1)
	wantOutcome(t, "List", err, bucket.ErrRefused)
	wantOutcome(t, "Delete", b.Delete(t.Context(), []string{"k"}), bucket.ErrRefused)
}
