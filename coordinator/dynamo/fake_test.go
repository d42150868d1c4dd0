package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/prometheus/client_golang/prometheus"
)

// fake is a store in the place of a network: it answers each request from a
// script, without a socket, so that tests may run in virtual time.
type fake struct {
	mu     sync.Mutex
	script []reply // the last goes on
	sent   []sentRequest
}

// sentRequest is what came.
type sentRequest struct {
	kind string
	body map[string]any
	at   time.Time
}

// reply is what a request is answered with.
type reply func(*http.Request) (*http.Response, error)

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s := sentRequest{kind: r.Header.Get("X-Amz-Target")[len("DynamoDB_20120810."):], at: time.Now()}
	if err := json.Unmarshal(body, &s.body); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.sent = append(f.sent, s)
	next := f.script[0]
	if len(f.script) > 1 {
		f.script = f.script[1:]
	}
	f.mu.Unlock()
	return next(r)
}

// connected tells the request's trace that there is a connection.
func connected(r *http.Request) {
	if t := httptrace.ContextClientTrace(r.Context()); t != nil && t.GotConn != nil {
		t.GotConn(httptrace.GotConnInfo{})
	}
}

// says answers with a status and a body.
func says(status int, body string) reply {
	return func(r *http.Request) (*http.Response, error) {
		connected(r)
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
		}, nil
	}
}

// fails answers with one of DynamoDB's errors.
func fails(status int, code string) reply {
	return says(status, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"so says the test"}`, code))
}

var errCut = errors.New("connection reset by the test")

// unanswered takes the request, and answers nothing.
func unanswered(r *http.Request) (*http.Response, error) {
	connected(r)
	return nil, errCut
}

// undialled has no connection.
func undialled(*http.Request) (*http.Response, error) { return nil, errCut }

// hangs takes the request, and never answers.
func hangs(r *http.Request) (*http.Response, error) {
	connected(r)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// cut answers with half a body.
func cut(status int, body string) reply {
	return func(r *http.Request) (*http.Response, error) {
		response, err := says(status, body)(r)
		half := io.MultiReader(strings.NewReader(body[:len(body)/2]), errReader{})
		response.Body = io.NopCloser(half)
		return response, err
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// over is a coordinator over the fake.
func over(t testing.TB, f http.RoundTripper, o Options) *Coordinator {
	t.Helper()
	return overCredentials(t, f, credentials.NewStaticCredentialsProvider("key", "secret", ""), o)
}

func overCredentials(t testing.TB, f http.RoundTripper, provider aws.CredentialsProvider, o Options) *Coordinator {
	t.Helper()
	o.Table = "table"
	c := newCoordinator(aws.Config{Region: "eu-west-1", Credentials: aws.NewCredentialsCache(provider)}, o, f)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// counted are the metrics that are not 0, by name and label.
func counted(t testing.TB, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimSuffix(strings.TrimPrefix(f.GetName(), "siltstone_coordinator_"), "_total")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if v := m.GetCounter().GetValue(); v != 0 {
				all[name] = v
			}
		}
	}
	return all
}

// countingCredentials are others each time: key1, key2, ...
type countingCredentials struct{ n int }

func (p *countingCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	p.n++
	return aws.Credentials{AccessKeyID: fmt.Sprintf("key%d", p.n), SecretAccessKey: "secret"}, nil
}
