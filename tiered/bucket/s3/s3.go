// Package s3 is a bucket in Amazon S3, or in a store that speaks its protocol,
// by the AWS SDK. It starts nothing, and the SDK tries nothing twice.
package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/siltstone-io/siltstone/tiered/bucket/remote"
)

// Options of a bucket. Region, credentials and endpoint come from where the
// AWS tools have them (environment, shared files, roles), unless they are here.
type Options struct {
	Bucket string
	// Prefix of all keys, without a slash at its ends; may be empty.
	Prefix string
	Region string
	// Endpoint is a URL.
	Endpoint string
	// PathStyle says whether the bucket is in the path of a request, not in
	// its host name. nil is: where there is an endpoint that is not AWS's own.
	PathStyle *bool
	// PartBytes and Timeout are remote.Options'.
	PartBytes int64
	Timeout   time.Duration
	// Transport sends the requests.
	Transport http.RoundTripper
}

// Open returns the bucket. It sends nothing to the store.
func Open(ctx context.Context, o Options) (*remote.Bucket, error) {
	c, err := newClient(ctx, o)
	if err != nil {
		return nil, err
	}
	prefix := o.Prefix
	if prefix != "" {
		prefix += "/"
	}
	return remote.New(remote.Options{Objects: c, Uploads: c, Prefix: prefix, PartBytes: o.PartBytes, Timeout: o.Timeout})
}

func newClient(ctx context.Context, o Options) (*client, error) {
	load := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		// The SDK's default checksums are trailers, which other stores do not know.
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region: say region= in the bucket's URL, or set AWS_REGION")
	}
	api := s3.NewFromConfig(cfg, func(s *s3.Options) {
		s.HTTPClient = &http.Client{Transport: o.Transport, CheckRedirect: dontFollow}
		if o.Endpoint != "" {
			s.BaseEndpoint = &o.Endpoint
		}
		s.UsePathStyle = s.BaseEndpoint != nil
		if o.PathStyle != nil {
			s.UsePathStyle = *o.PathStyle
		}
	})
	return &client{api: api, bucket: o.Bucket, credentials: cfg.Credentials}, nil
}

// A redirect says that the bucket is in another region. To follow it would
// sign for the wrong one.
func dontFollow(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// client is remote.Objects and remote.Uploads.
type client struct {
	api         *s3.Client
	bucket      string
	credentials aws.CredentialsProvider
}

// explain makes an *remote.Answer of what the store answered, and forgets
// credentials that it finds to be expired.
func (c *client) explain(err error) error {
	var response *smithyhttp.ResponseError
	var code smithy.APIError
	answer := &remote.Answer{}
	if errors.As(err, &response) {
		answer.Status = response.HTTPStatusCode()
	}
	if errors.As(err, &code) {
		answer.Code, answer.Message = code.ErrorCode(), code.ErrorMessage()
	}
	if answer.Status == 0 && answer.Code == "" {
		return err // the store has not answered
	}
	if answer.Code == http.StatusText(answer.Status) || answer.Code == "NotFound" || answer.Code == "UnknownError" {
		answer.Code = "" // the SDK's, where there is no body
	}
	if cache, ok := c.credentials.(*aws.CredentialsCache); ok && answer.Expired() {
		cache.Invalidate()
	}
	return answer
}
