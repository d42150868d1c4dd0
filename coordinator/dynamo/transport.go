package dynamo

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// newTransport has room for one request of every ledger at once: a connection
// that is closed for want of room costs a handshake the next time.
func newTransport() *http.Transport {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = 2 * time.Second }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 64, 64
			t.TLSHandshakeTimeout = 2 * time.Second
		}).GetTransport()
}

// wholeBodies sends each request with a body that is the transport's own. The
// SDK closes its body as soon as there is a reply. A transport that has sent it
// all, but has not yet looked for its end, takes that for a failure and closes
// the connection, while the reply is being read: it is lost. And a body that
// the transport knows to be in memory goes out with the header, in one packet.
type wholeBodies struct{ *http.Client }

// Do implements dynamodb.HTTPClient.
func (c wholeBodies) Do(r *http.Request) (*http.Response, error) {
	body := bytes.NewBuffer(make([]byte, 0, bytes.MinRead+max(0, r.ContentLength)))
	if _, err := body.ReadFrom(r.Body); err != nil {
		return nil, err
	}
	r = r.WithContext(r.Context()) // a copy
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body.Bytes())), nil }
	r.Body, _ = r.GetBody()
	return c.Client.Do(r)
}
