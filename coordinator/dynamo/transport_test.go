package dynamo

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// A body is there for as long as the transport needs it, though the reply has come.
func TestBodiesOutliveReplies(t *testing.T) {
	var sent *http.Request
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = r
		return says(http.StatusOK, done)(r)
	})
	if err := over(t, transport, Options{}).Append(t.Context(), "a", mine); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(sent.Body)
	if err != nil || !json.Valid(body) || int64(len(body)) != sent.ContentLength {
		t.Errorf("%q of %d bytes, %v", body, sent.ContentLength, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
