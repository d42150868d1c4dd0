package remotetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/localstack/servers"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// outcomes are all that a caller can tell apart; nil is success.
var outcomes = []error{bucket.ErrExists, bucket.ErrNotFound, bucket.ErrRange, bucket.ErrRefused, siltstone.ErrUnavailable}

// wantOutcome checks that an error is one thing, and no other.
func wantOutcome(t *testing.T, what string, err, want error) {
	t.Helper()
	for _, o := range outcomes {
		if errors.Is(err, o) != errors.Is(want, o) {
			t.Errorf("%s: %v; want %v", what, err, want)
			return
		}
	}
	if want == nil && err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// server answers as the handler does, and counts requests.
func server(t *testing.T, open Open, handler http.HandlerFunc) (b *remote.Bucket, requests *atomic.Int64) {
	requests = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return open(t, Location{
		Addr: strings.TrimPrefix(s.URL, "http://"), Bucket: servers.BucketName, Prefix: "p",
		PartBytes: remote.MinPartBytes, Transport: remote.NewTransport(nil),
	}), requests
}

func xmlError(code string) string {
	if code == "" {
		return ""
	}
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>" + code + "</Code><Message>so it is</Message><RequestId>1</RequestId></Error>"
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func testMisbehaving(t *testing.T, open Open) {
	t.Run("Answers", func(t *testing.T) { testAnswers(t, open) })
	t.Run("Reads", func(t *testing.T) { testReads(t, open) })
	t.Run("Deletes", func(t *testing.T) { testDeletes(t, open) })
	t.Run("Lists", func(t *testing.T) { testLists(t, open) })
	t.Run("Parts", func(t *testing.T) { testBadParts(t, open) })
	t.Run("PartsForACallerWhoGoes", func(t *testing.T) { testPartsForACallerWhoGoes(t, open) })
	t.Run("Conditions", func(t *testing.T) { testNoConditions(t, open) })
	t.Run("Silence", func(t *testing.T) { testSilence(t, open) })
	t.Run("LateReader", func(t *testing.T) { testLateReader(t, open) })
	t.Run("EarlyRefusal", func(t *testing.T) { testEarlyRefusal(t, open) })
}

// testAnswers has each call meet each answer, once: nothing is tried again.
func testAnswers(t *testing.T, open Open) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{503, "SlowDown", siltstone.ErrUnavailable},
		{503, "", siltstone.ErrUnavailable},
		{500, "InternalError", siltstone.ErrUnavailable},
		{502, "", siltstone.ErrUnavailable},
		{429, "TooManyRequests", siltstone.ErrUnavailable},
		{400, "ExpiredToken", siltstone.ErrUnavailable},
		{403, "ExpiredToken", siltstone.ErrUnavailable},
		{403, "RequestTimeTooSkewed", siltstone.ErrUnavailable},
		{400, "RequestTimeout", siltstone.ErrUnavailable},
		{400, "BadDigest", siltstone.ErrUnavailable},
		{409, "ConditionalRequestConflict", siltstone.ErrUnavailable},
		{409, "OperationAborted", siltstone.ErrUnavailable},
		{307, "TemporaryRedirect", siltstone.ErrUnavailable},
		{301, "PermanentRedirect", bucket.ErrRefused},
		{403, "AccessDenied", bucket.ErrRefused},
		{403, "SignatureDoesNotMatch", bucket.ErrRefused},
		{404, "NoSuchBucket", bucket.ErrRefused},
		{404, "", bucket.ErrRefused}, // of a proxy
		{400, "InvalidRequest", bucket.ErrRefused},
		{501, "NotImplemented", bucket.ErrRefused},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			b, requests := server(t, open, func(w http.ResponseWriter, r *http.Request) {
				if c.status/100 == 3 {
					w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
				}
				answer(w, c.status, xmlError(c.code))
			})
			once := func(what string, err error, most int64) {
				t.Helper()
				wantOutcome(t, what, err, c.want)
				if n := requests.Swap(0); n < 1 || n > most {
					t.Errorf("%s sent %d requests, at most %d are due", what, n, most)
				}
			}
			once("Put", b.Put(t.Context(), "k", bucket.Body{[]byte("x")}), 1)
			_, err := b.Get(t.Context(), "k", 0, -1)
			once("Get", err, 1)
			_, err = b.Size(t.Context(), "k")
			once("Size", err, 2) // HEAD has no body, so GET asks for the reason
			_, err = b.List(t.Context(), "", "", 1)
			once("List", err, 1)
			once("Delete", b.Delete(t.Context(), []string{"k"}), 1)
			once("Put of parts", b.Put(t.Context(), "k", bucket.Body{make([]byte, remote.MinPartBytes+1)}), 1)
			_, err = b.Reap(t.Context(), time.Now())
			once("Reap", err, 1)
		})
	}
}

func testReads(t *testing.T, open Open) {
	const object = "0123456789"
	headers := func(w http.ResponseWriter, contentRange string, status, length int) {
		if contentRange != "" {
			w.Header().Set("Content-Range", contentRange)
		}
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.Header().Set("Content-Length", fmt.Sprint(length))
		w.WriteHeader(status)
	}
	for _, c := range []struct {
		name         string
		off, n       int64
		contentRange string
		status       int
		length       int
		body         string
		want         error
	}{
		{"whole", 0, -1, "", 200, 10, object, nil},
		{"range", 2, 3, "bytes 2-4/10", 206, 3, "234", nil},
		{"suffix", -3, 0, "bytes 7-9/10", 206, 3, "789", nil},
		{"end is past the object", 8, 9, "bytes 8-9/10", 206, 2, "89", nil},
		{"empty, as MinIO says it", -3, 0, "bytes 0--1/0", 206, 0, "", nil},
		{"cut", 0, -1, "", 200, 10, "01234", siltstone.ErrUnavailable},
		{"range is cut", 2, 3, "bytes 2-4/10", 206, 3, "2", siltstone.ErrUnavailable},
		{"range is ignored", 2, 3, "", 200, 10, object, siltstone.ErrUnavailable},
		{"another range", 2, 3, "bytes 3-5/10", 206, 3, "345", siltstone.ErrUnavailable},
		{"shorter range", 2, 3, "bytes 2-3/10", 206, 2, "23", siltstone.ErrUnavailable},
		{"longer range", 2, 3, "bytes 2-5/10", 206, 4, "2345", siltstone.ErrUnavailable},
		{"not the length that it says", 2, 3, "bytes 2-4/10", 206, 2, "23", siltstone.ErrUnavailable},
		{"short suffix", -3, 0, "bytes 8-9/10", 206, 2, "89", siltstone.ErrUnavailable},
		{"nonsense", 2, 3, "bytes 4-2/10", 206, 3, "234", siltstone.ErrUnavailable},
		{"more nonsense", 2, 3, "items 2-4/*", 206, 3, "234", siltstone.ErrUnavailable},
		{"overflow", 2, 3, "bytes 2-9223372036854775807/9223372036854775807", 206, 3, "234", siltstone.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, requests := server(t, open, func(w http.ResponseWriter, r *http.Request) {
				headers(w, c.contentRange, c.status, c.length)
				_, _ = io.WriteString(w, c.body)
			})
			got, err := b.Get(t.Context(), "k", c.off, c.n)
			wantOutcome(t, "Get", err, c.want)
			if c.want == nil && string(got) != c.body {
				t.Errorf("Get = %q, want %q", got, c.body)
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests for one Get", requests.Load())
			}
		})
	}
}

func testDeletes(t *testing.T, open Open) {
	deleted := func(keys ...string) string {
		s := `<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`
		for _, k := range keys {
			s += "<Deleted><Key>p/" + k + "</Key></Deleted>"
		}
		return s
	}
	failed := func(key, code string) string {
		return "<Error><Key>p/" + key + "</Key><Code>" + code + "</Code><Message>no</Message></Error>"
	}
	for _, c := range []struct {
		name, body string
		want       error
		names      string // in the error
	}{
		{"all", deleted("a", "b") + "</DeleteResult>", nil, ""},
		{"one is missing", deleted("a") + failed("b", "NoSuchKey") + "</DeleteResult>", nil, ""},
		{"one is refused", deleted("a") + failed("b", "AccessDenied") + "</DeleteResult>", bucket.ErrRefused, "p/b"},
		{"one fails", deleted("a") + failed("b", "InternalError") + "</DeleteResult>", siltstone.ErrUnavailable, "p/b"},
		{"one is not said", deleted("a") + "</DeleteResult>", siltstone.ErrUnavailable, ""},
		{"an error as a success", xmlError("InternalError"), siltstone.ErrUnavailable, ""},
		{"nothing", "", siltstone.ErrUnavailable, ""},
		{"cut", deleted("a", "b"), siltstone.ErrUnavailable, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, requests := server(t, open, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Content-MD5") == "" {
					t.Error("no Content-MD5, which many stores want")
				}
				answer(w, 200, c.body)
			})
			err := b.Delete(t.Context(), []string{"a", "b", "a"})
			wantOutcome(t, "Delete", err, c.want)
			if err != nil && !strings.Contains(err.Error(), c.names) {
				t.Errorf("%v does not name %s", err, c.names)
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests for one Delete", requests.Load())
			}
			if err := b.Delete(t.Context(), nil); err != nil || requests.Load() != 1 {
				t.Errorf("Delete of nothing: %v, %d requests", err, requests.Load()-1)
			}
		})
	}
}

func testLists(t *testing.T, open Open) {
	page := func(truncated bool, keys ...string) string {
		s := fmt.Sprintf(`<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>%v</IsTruncated><NextContinuationToken>t</NextContinuationToken>`, truncated)
		for _, k := range keys {
			s += "<Contents><Key>" + k + "</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
		}
		return s + "</ListBucketResult>"
	}
	for _, c := range []struct {
		name string
		page string
		want error
	}{
		{"in order", page(false, "p/a", "p/b"), nil},
		{"foreign ones among them", page(false, "p/a", "p/a b", "p/b"), nil},
		{"out of order", page(false, "p/b", "p/a"), siltstone.ErrUnavailable},
		{"the same page for ever", page(true, "p/a", "p/b"), siltstone.ErrUnavailable},
		{"no end and no keys", page(true), siltstone.ErrUnavailable},
		{"another prefix", page(false, "q/a"), siltstone.ErrUnavailable},
		{"an error as a success", xmlError("InternalError"), siltstone.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, requests := server(t, open, func(w http.ResponseWriter, r *http.Request) { answer(w, 200, c.page) })
			found, err := b.List(t.Context(), "", "", 10)
			if n := requests.Load(); n > 2 {
				t.Errorf("%d requests", n)
			}
			wantOutcome(t, "List", err, c.want)
			if c.want == nil && (len(found) != 2 || found[0].Key != "a" || found[1].Key != "b") {
				t.Errorf("List = %v", found)
			}
		})
	}
}

const uploadCreated = `<InitiateMultipartUploadResult><Bucket>records</Bucket><Key>p/k</Key><UploadId>u1</UploadId></InitiateMultipartUploadResult>`

// testBadParts: what cannot be completed is aborted, and a part that fails is sent again.
func testBadParts(t *testing.T, open Open) {
	const completed = `<CompleteMultipartUploadResult><Bucket>records</Bucket><Key>p/k</Key><ETag>"1-2"</ETag></CompleteMultipartUploadResult>`
	for _, c := range []struct {
		name     string
		fails    func(part int64) bool // the nth request for a part
		complete string
		want     error
		parts    int64 // requests
		aborts   int64
	}{
		{"well", func(int64) bool { return false }, completed, nil, 9, 0},
		{"each third part fails", func(n int64) bool { return n%3 == 0 }, completed, nil, 13, 0},
		{"no part goes well", func(int64) bool { return true }, completed, siltstone.ErrUnavailable, 4, 1},
		{"an error as a success", func(int64) bool { return false }, xmlError("InternalError"), siltstone.ErrUnavailable, 9, 1},
		{"another was first", func(int64) bool { return false }, xmlError("PreconditionFailed"), bucket.ErrExists, 9, 1},
		{"nothing as a success", func(int64) bool { return false }, "", siltstone.ErrUnavailable, 9, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var parts, aborts atomic.Int64
			b, _ := server(t, open, func(w http.ResponseWriter, r *http.Request) {
				switch q := r.URL.Query(); {
				case q.Has("uploads"):
					answer(w, 200, uploadCreated)
				case r.Method == http.MethodPut && q.Get("uploadId") == "u1":
					if c.fails(parts.Add(1)) {
						answer(w, 403, xmlError("ExpiredToken"))
						return
					}
					w.Header().Set("ETag", `"e`+q.Get("partNumber")+`"`)
				case r.Method == http.MethodPost && q.Get("uploadId") == "u1":
					if r.Header.Get("If-None-Match") != "*" {
						t.Error("an upload is completed without a condition")
					}
					answer(w, 200, c.complete)
				case r.Method == http.MethodDelete && q.Get("uploadId") == "u1":
					aborts.Add(1)
					w.WriteHeader(http.StatusNoContent)
				default:
					t.Errorf("%s %s", r.Method, r.URL)
				}
			})
			err := b.Put(t.Context(), "k", bucket.Body{make([]byte, 9*remote.MinPartBytes)})
			wantOutcome(t, "Put", err, c.want)
			if n := parts.Load(); n < 9 && c.want == nil || n > c.parts {
				t.Errorf("%d parts sent; want at most %d", n, c.parts)
			}
			if n := aborts.Load(); n != c.aborts {
				t.Errorf("%d aborts, want %d", n, c.aborts)
			}
		})
	}
}

func testPartsForACallerWhoGoes(t *testing.T, open Open) {
	ctx, cancel := context.WithCancel(t.Context())
	var aborts atomic.Int64
	b, _ := server(t, open, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Has("uploads"):
			answer(w, http.StatusOK, uploadCreated)
		case r.Method == http.MethodPut:
			cancel()
			<-r.Context().Done()
		case r.Method == http.MethodDelete:
			aborts.Add(1)
			w.WriteHeader(http.StatusNoContent)
		}
	})
	if err := b.Put(ctx, "k", bucket.Body{make([]byte, 3*remote.MinPartBytes)}); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
	if n := aborts.Load(); n != 1 {
		t.Errorf("%d aborts", n)
	}
}

// testNoConditions: a store that overwrites is found out.
func testNoConditions(t *testing.T, open Open) {
	var conditional atomic.Int64
	b, _ := server(t, open, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == "*" {
			conditional.Add(1)
		}
		w.Header().Set("ETag", `"1"`)
	})
	if err := bucket.CheckConditions(t.Context(), b, 1); !errors.Is(err, bucket.ErrConditions) {
		t.Errorf("CheckConditions: %v", err)
	}
	if n := conditional.Load(); n != 2 {
		t.Errorf("%d of 2 puts had a condition", n)
	}
}

// testSilence: a store that does not answer costs the deadline, one that is not
// there nothing; a caller who goes is told so.
func testSilence(t *testing.T, open Open) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then it sees the client go
		<-r.Context().Done()
	}))
	defer silent.Close()
	l := Location{
		Addr: strings.TrimPrefix(silent.URL, "http://"), Bucket: servers.BucketName, Prefix: "p",
		Timeout: 50 * time.Millisecond, Transport: remote.NewTransport(nil),
	}
	body := []byte("x")
	wantOutcome(t, "Put to a silent store", open(t, l).Put(t.Context(), "k", bucket.Body{body}), siltstone.ErrUnavailable)
	clear(body) // the port's promise; the race detector looks whether the client still reads it
	_, err := open(t, l).Get(t.Context(), "k", 0, -1)
	wantOutcome(t, "Get from a silent store", err, siltstone.ErrUnavailable)

	l.Timeout = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err = open(t, l).Get(ctx, "k", 0, -1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Get for a caller who goes: %v", err)
	}
	silent.Close()
	wantOutcome(t, "Put to nobody", open(t, l).Put(t.Context(), "k", bucket.Body{body}), siltstone.ErrUnavailable)
}

// testLateReader: HTTP clients may read a body when the call is over. By then
// its memory holds other records.
func testLateReader(t *testing.T, open Open) {
	for name, body := range map[string]bucket.Body{"whole": {[]byte("records")}, "parts": {make([]byte, remote.MinPartBytes+1)}} {
		var kept []io.Reader
		var mu sync.Mutex
		b := open(t, Location{Addr: "127.0.0.1:1", Bucket: servers.BucketName, PartBytes: remote.MinPartBytes, Transport: tripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				mu.Lock()
				defer mu.Unlock()
				kept = append(kept, r.Body)
				return nil, errors.New("the connection broke")
			}
			status := http.StatusOK
			if r.Method == http.MethodHead {
				status = http.StatusNotFound
			}
			return &http.Response{
				StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader(uploadCreated)),
			}, nil
		})})
		wantOutcome(t, "Put of "+name, b.Put(t.Context(), "k", body), siltstone.ErrUnavailable)
		if len(kept) == 0 {
			t.Errorf("%s: no request", name)
		}
		for _, r := range kept {
			if late, _ := io.ReadAll(r); len(late) > 0 {
				t.Errorf("%s: %d bytes are read after Put", name, len(late))
			}
		}
	}
}

// testEarlyRefusal: a store refuses before it has read all, and what reaches
// the sender is a broken connection. It is looked for the object, then.
func testEarlyRefusal(t *testing.T, open Open) {
	for _, c := range []struct {
		name   string
		status int // of the HEAD that follows
		want   error
	}{
		{"it is there", http.StatusOK, bucket.ErrExists},
		{"it is not", http.StatusNotFound, siltstone.ErrUnavailable},
	} {
		b := open(t, Location{Addr: "127.0.0.1:1", Bucket: servers.BucketName, Transport: tripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				return nil, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
			}
			return &http.Response{
				StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: http.NoBody,
				Header: http.Header{"Content-Length": {"1"}, "Etag": {`"1"`}, "Last-Modified": {"Mon, 02 Jan 2006 15:04:05 GMT"}},
			}, nil
		})})
		wantOutcome(t, c.name, b.Put(t.Context(), "k", bucket.Body{[]byte("x")}), c.want)
	}
}
