// Package minio is a bucket in MinIO, or in another store that speaks S3's
// protocol, by MinIO's client. It starts nothing, and the client tries nothing
// twice, though it waits for up to 200 ms after what it would try again.
package minio

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// Options of a bucket. Credentials are those in AWS's environment variables,
// or else in MinIO's.
type Options struct {
	Addr   string // host:port
	TLS    bool
	Bucket string
	// Prefix of all keys, without a slash at its ends; may be empty.
	Prefix string
	// Region is what the server is configured with; empty is us-east-1, as there.
	Region string
	// PartBytes and Timeout are remote.Options'.
	PartBytes int64
	Timeout   time.Duration
	// Transport sends the requests.
	Transport http.RoundTripper
}

// Open returns the bucket. It sends nothing to the store.
func Open(o Options) (*remote.Bucket, error) {
	if o.Region == "" {
		o.Region = "us-east-1" // otherwise the client asks for it
	}
	who := credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.EnvMinio{}})
	if found, err := who.GetWithContext(nil); err != nil || found.AccessKeyID == "" {
		return nil, errors.Join(errors.New("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or MINIO_ROOT_USER and MINIO_ROOT_PASSWORD"), err)
	}
	core, err := minio.NewCore(o.Addr, &minio.Options{
		Creds: who, Secure: o.TLS, Transport: onePage{o.Transport}, Region: o.Region,
		BucketLookup: minio.BucketLookupPath, MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("MinIO at %s: %w", o.Addr, err)
	}
	c := &client{api: core, bucket: o.Bucket, region: o.Region, credentials: who}
	prefix := o.Prefix
	if prefix != "" {
		prefix += "/"
	}
	return remote.New(remote.Options{Objects: c, Uploads: c, Prefix: prefix, PartBytes: o.PartBytes, Timeout: o.Timeout})
}

// client is remote.Objects and remote.Uploads.
type client struct {
	api         *minio.Core
	bucket      string
	region      string
	credentials *credentials.Credentials
}

// explain makes an *remote.Answer of what the store answered, and forgets
// credentials that it finds to be expired.
func (c *client) explain(err error) error {
	var response minio.ErrorResponse
	if !errors.As(err, &response) {
		return err
	}
	answer := &remote.Answer{Status: response.StatusCode}
	if response.XMLName.Local != "" { // otherwise there was no body, and the client guesses
		answer.Code, answer.Message = response.Code, response.Message
	}
	if answer.Expired() {
		c.credentials.Expire()
	}
	return answer
}
