package remote

import (
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Transport sends requests, and counts each where it is sent, for it is
// billed: a try that is repeated, a hedge and a part count like any other.
type Transport struct {
	inner          http.RoundTripper
	requests       *prometheus.CounterVec
	failures       *prometheus.CounterVec
	sent, received *prometheus.CounterVec
}

// Kinds of requests, by how they are billed: kindPut has all that makes
// objects, kindGet also HEAD.
const (
	kindPut    = "put"
	kindGet    = "get"
	kindList   = "list"
	kindDelete = "delete"
)

// NewTransport returns a transport with connections of its own, whose counters
// are registered, if reg is not nil.
func NewTransport(reg prometheus.Registerer) *Transport {
	counter := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "siltstone", Subsystem: "bucket", Name: name, Help: help}, []string{"kind"})
		for _, kind := range []string{kindPut, kindGet, kindList, kindDelete} { // they show as 0 from the start
			c.WithLabelValues(kind)
		}
		if reg != nil {
			reg.MustRegister(c)
		}
		return c
	}
	return &Transport{
		inner: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout:   5 * time.Second,
			ExpectContinueTimeout: time.Second,
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       30 * time.Second, // stores close idle connections; better to be first
			WriteBufferSize:       64 << 10,
			ReadBufferSize:        64 << 10,
			DisableCompression:    true, // an object is what it is
		},
		requests: counter("requests_total", "Requests sent to the bucket, by how they are billed: every try, hedge and part."),
		failures: counter("failures_total", "Requests that the store failed to answer, or answered with 429 or 5xx."),
		sent:     counter("sent_bytes_total", "Bodies of requests to the bucket."),
		received: counter("received_bytes_total", "Bodies of the bucket's answers."),
	}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := kindOf(r)
	t.requests.WithLabelValues(kind).Inc()
	if r.Body != nil && r.Body != http.NoBody {
		r = r.Clone(r.Context())
		r.Body = &countedBody{ReadCloser: r.Body, bytes: t.sent.WithLabelValues(kind)}
	}
	resp, err := t.inner.RoundTrip(r)
	if err != nil {
		t.failures.WithLabelValues(kind).Inc()
		return nil, err
	}
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		t.failures.WithLabelValues(kind).Inc()
	}
	resp.Body = &countedBody{ReadCloser: resp.Body, bytes: t.received.WithLabelValues(kind)}
	return resp, nil
}

// CloseIdleConnections gives up connections that are not in use.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.inner.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// kindOf knows a request of S3's protocol by its method and query.
func kindOf(r *http.Request) string {
	q := r.URL.Query()
	switch r.Method {
	case http.MethodPut:
		return kindPut
	case http.MethodDelete:
		return kindDelete
	case http.MethodPost:
		if q.Has("delete") {
			return kindDelete
		}
		return kindPut
	}
	if q.Has("list-type") || q.Has("uploads") {
		return kindList
	}
	return kindGet
}

type countedBody struct {
	io.ReadCloser
	bytes prometheus.Counter
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(float64(n))
	return n, err
}
